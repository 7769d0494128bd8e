//! The keys at the top of the configuration that apply to every training.

use serde::Deserialize;

use super::metric::Metric;

/// The keys at the top of the configuration that apply to every training of a network, whatever it
/// learns from.
#[derive(Debug, Clone, Deserialize)]
#[expect(missing_docs, reason = "config/default.yaml documents each key")]
pub struct TrainingKeys {
    pub epochs: usize,
    pub earlystop_threshold: usize,
    pub earlystop_min_delta: f64,
    pub earlystop_metric: Metric,
    pub seed: u64,
}
