//! The configuration of a trial as it is written → what the trial is, as plain numbers and words.

use anyhow::{Context as _, Result};

use super::pipeline_fit::PipelineTask;
use poolcast_config::{Config, TrialSource, WaitModelConfig};
use poolcast_provision::wait_model::{WaitModelSettings, effective_parameters};
use poolcast_holds::tensors::TensorSettings;
use poolcast_holds::training::TrainingSettings;

/// What one trial is: plain numbers and words, all of them in range.
#[derive(Debug, Clone)]
pub struct TrialConfig {
    /// As it is written beside what comes of the trial.
    pub written: Config,
    /// What its samples are; `None` over tables and over samples of waits.
    pub tensors: Option<TensorSettings>,
    /// What it fits.
    pub model: TrialModel,
}

/// What a trial fits.
#[derive(Debug, Clone)]
pub enum TrialModel {
    /// A network, trained with these settings.
    Network(TrainingSettings),
    /// A classical pipeline.
    Pipeline(PipelineTask),
    /// A model of waits, with these settings.
    WaitModel(WaitModelSettings),
}

impl TrialConfig {
    /// The trial that `written` describes.
    ///
    /// # Errors
    /// Fails for hyper-parameters that a trial cannot have.
    pub fn new(written: Config) -> Result<TrialConfig> {
        let tensors = match written.trial_source() {
            TrialSource::Logs => Some(TensorSettings::from_config(&written)?),
            TrialSource::Tables => None,
            TrialSource::WaitSamples => return TrialConfig::of_waits(written),
        };
        let model = match PipelineTask::from_config(&written)? {
            Some(task) => TrialModel::Pipeline(task),
            None => TrialModel::Network(TrainingSettings::from_config(&written)?),
        };
        Ok(TrialConfig {
            written,
            tensors,
            model,
        })
    }

    /// The trial over samples of waits that `written` describes. What does not count for its kind of
    /// model is as in the defaults, so that `poolcast provision train` learns the same from it.
    fn of_waits(mut written: Config) -> Result<TrialConfig> {
        let drawn = written.provision.model.trial()?;
        written.provision.model = WaitModelConfig::from(&effective_parameters(&drawn));
        let settings = WaitModelSettings::from_config(&written)?;
        Ok(TrialConfig {
            written,
            tensors: None,
            model: TrialModel::WaitModel(settings),
        })
    }

    /// What its samples are.
    ///
    /// # Errors
    /// Fails for a trial that does not learn from logs, which has none.
    pub(super) fn tensor_settings(&self) -> Result<&TensorSettings> {
        let settings = self.tensors.as_ref();
        settings.context("a trial that learns from no logs has no samples of them")
    }
}
