//! A configuration → everything that decides what a training gives.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::adam::AdamSettings;
use super::run_dir::RUN_FORMAT;
use crate::config::{Config, Metric, Threshold};
use crate::manifest;
use crate::models::{Architecture, find_architecture};

/// Everything that decides what a training gives, apart from its tensors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrainingSettings {
    /// The name of the architecture that is trained.
    pub model: String,
    /// Layers.
    pub lstm_layers: usize,
    /// Width of each layer.
    pub hidden_size: usize,
    /// Adam's learning rate.
    pub learning_rate: f64,
    /// The share of the learning rate by which every weight shrinks at each step.
    pub weight_decay: f64,
    /// The largest norm of a gradient; 0 is no limit.
    pub clip_grad_norm: f64,
    /// Samples a step.
    pub batch_size: usize,
    /// What a success counts in the loss, where a failure counts 1.
    pub pos_weight: f64,
    /// The most epochs.
    pub epochs: usize,
    /// Epochs without improvement after which training stops.
    pub earlystop_threshold: usize,
    /// What does not improve the metric by more than this is no improvement.
    pub earlystop_min_delta: f64,
    /// What early stopping watches on the validation side.
    pub metric: Metric,
    /// From which probability on success is predicted.
    pub threshold: Threshold,
    /// The root seed.
    pub seed: u64,
}

impl TrainingSettings {
    /// The settings in `config`, whose training parameters must be numbers and not distributions.
    pub fn from_config(config: &Config) -> Result<TrainingSettings> {
        let parameters = &config.training.parameters;
        let model = parameters.model.constant("model")?;
        Ok(TrainingSettings {
            model: find_architecture(&model)?.name().to_owned(),
            lstm_layers: parameters.lstm_layers.whole("lstm_layers", 1..=16)?,
            hidden_size: parameters.hidden_size.whole("hidden_size", 1..=4096)?,
            learning_rate: parameters.learning_rate.real("learning_rate", 0.0..=10.0)?,
            weight_decay: parameters.weight_decay.real("weight_decay", 0.0..=1000.0)?,
            clip_grad_norm: parameters
                .clip_grad_norm
                .real("clip_grad_norm", 0.0..=1e9)?,
            batch_size: parameters.batch_size.whole("batch_size", 1..=1_000_000)?,
            pos_weight: parameters.pos_weight.real("pos_weight", 1e-6..=1e6)?,
            epochs: config.epochs,
            earlystop_threshold: config.earlystop_threshold,
            earlystop_min_delta: config.earlystop_min_delta,
            metric: config.earlystop_metric.clone(),
            threshold: config.training.threshold,
            seed: config.seed,
        })
    }

    /// What is trained.
    pub(super) fn architecture(&self) -> Result<&'static dyn Architecture> {
        find_architecture(&self.model)
    }

    /// How the optimiser steps.
    pub(super) fn adam(&self) -> AdamSettings {
        AdamSettings {
            learning_rate: self.learning_rate,
            weight_decay: self.weight_decay,
            clip_grad_norm: self.clip_grad_norm,
        }
    }

    /// The digest of everything that a training on the tensors `tensors_key` depends on.
    pub fn key(&self, tensors_key: &str) -> Result<String> {
        manifest::key(&(RUN_FORMAT.version, self, tensors_key))
    }
}
