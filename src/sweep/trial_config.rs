//! The configuration of a trial as it is written → what the trial is, as plain numbers and words.

use anyhow::{Context as _, Result};

use super::pipeline_fit::PipelineTask;
use crate::config::Config;
use crate::tensors::TensorSettings;
use crate::training::TrainingSettings;

/// What one trial is: plain numbers and words, all of them in range.
#[derive(Debug, Clone)]
pub struct TrialConfig {
    /// As it is written beside what comes of the trial.
    pub written: Config,
    /// What its samples are; `None` over tables.
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
}

impl TrialConfig {
    /// The trial that `written` describes.
    ///
    /// # Errors
    /// Fails for hyper-parameters that a trial cannot have.
    pub fn new(written: Config) -> Result<TrialConfig> {
        let tensors = if written.data.is_given() {
            None
        } else {
            Some(TensorSettings::from_config(&written)?)
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

    /// What its samples are.
    ///
    /// # Errors
    /// Fails for a trial over tables, which has none.
    pub(super) fn tensor_settings(&self) -> Result<&TensorSettings> {
        let settings = self.tensors.as_ref();
        settings.context("a trial over tables has no samples of logs")
    }
}
