//! The section `training`: the hyper-parameters of a network, and how it is trained.

use serde::{Deserialize, Serialize};

use super::parameter::Parameter;
use super::threshold::Threshold;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct TrainingConfig {
    pub checkpoint_minutes: f64,
    pub threshold: Threshold,
    pub parameters: ModelParameters,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct ModelParameters {
    pub model: Parameter<String>,
    pub lstm_layers: Parameter,
    pub hidden_size: Parameter,
    pub learning_rate: Parameter,
    pub weight_decay: Parameter,
    pub clip_grad_norm: Parameter,
    pub batch_size: Parameter,
    pub pos_weight: Parameter,
}
