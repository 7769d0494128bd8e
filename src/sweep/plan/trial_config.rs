//! The checked configuration of one trial, with plain values instead of distributions.

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::attempts::PipelineTask;
use crate::config::{CommandConfig, Config, TrialSource};
use poolcast_holds::config::{AnswerMember, NetworkSettings, TrainingSettings};
use poolcast_provision::wait_model::{WaitModelSettings, effective_parameters};
use poolcast_tensors::TensorSettings;

/// A trial: plain values, all of them in range.
#[derive(Debug, Clone)]
pub struct TrialConfig {
    /// The configuration as it is written next to the trial's results.
    pub written: Config,
    /// The settings of its samples; `None` for a trial that does not learn from logs.
    pub tensors: Option<TensorSettings>,
    /// The model that it makes.
    pub model: TrialModel,
}

/// The model that a trial makes.
#[derive(Debug, Clone)]
pub enum TrialModel {
    /// A network, trained with these settings.
    Network(TrainingSettings),
    /// A classical pipeline.
    Pipeline(PipelineTask),
    /// A wait model, trained with these settings.
    WaitModel(WaitModelSettings),
    /// Whatever the program of the user makes.
    Command(CommandConfig),
}

impl TrialConfig {
    /// Checks the trial that `written` describes.
    ///
    /// # Errors
    /// Fails for hyper-parameters that a trial cannot have.
    pub fn new(written: Config) -> Result<TrialConfig> {
        if let Some(command) = &written.command {
            command.values()?;
            return Ok(TrialConfig {
                model: TrialModel::Command(command.clone()),
                tensors: None,
                written,
            });
        }
        let tensors = match written.trial_source() {
            TrialSource::Logs => Some(written.tensor_settings()?),
            TrialSource::Tables | TrialSource::Command => None,
            TrialSource::WaitSamples => return TrialConfig::check_wait_trial(written),
        };
        let model = match PipelineTask::from_config(&written)? {
            Some(task) => TrialModel::Pipeline(task),
            None => TrialModel::Network(written.training_settings()?),
        };
        Ok(TrialConfig {
            written,
            tensors,
            model,
        })
    }

    /// Checks the trial over wait samples that `written` describes. Sets parameters without effect
    /// on its kind of model to their defaults, so that `poolcast provision train` trains the same
    /// model from it.
    fn check_wait_trial(mut written: Config) -> Result<TrialConfig> {
        let drawn = written.provision.model.trial()?;
        written.provision.model = serde_json::from_value(json!(effective_parameters(&drawn)))?;
        let settings = written.wait_model_settings()?;
        Ok(TrialConfig {
            written,
            tensors: None,
            model: TrialModel::WaitModel(settings),
        })
    }

    /// The model as a member of the answers about held jobs; `None` for a trial that does not learn from logs.
    ///
    /// # Errors
    /// Fails for a network whose samples the answers cannot make.
    pub(crate) fn answer_member(&self) -> Result<Option<AnswerMember>> {
        Ok(match (&self.model, &self.tensors) {
            (TrialModel::Pipeline(task), _) => Some(AnswerMember::Pipeline {
                name: task.pipeline.clone(),
                parameters: task.parameters.clone(),
            }),
            (TrialModel::Network(training), Some(tensors)) => {
                let network = NetworkSettings::new(training.clone(), tensors.clone())?;
                Some(AnswerMember::Resolved(Box::new(network)))
            }
            _ => None,
        })
    }

    /// The settings of its samples.
    ///
    /// # Errors
    /// Fails for a trial that does not learn from logs, and so has no such settings.
    pub(crate) fn tensor_settings(&self) -> Result<&TensorSettings> {
        let settings = self.tensors.as_ref();
        settings.context("the trial does not learn from logs, so it has no tensor settings")
    }
}
