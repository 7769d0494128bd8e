//! Statistics that several stages need: scores of probabilities, quantiles and means.

mod bootstrap;
mod quantile;
mod scores;

pub use bootstrap::{
    LabelledPredictions, Resampling, SampleGroups, percentile_interval, score_intervals,
};
pub use quantile::{cost_quantile, mean, quantile};
pub use scores::{SCORE_COUNT, Scores, f_measure, logit, mean_cross_entropy, roc_auc, sigmoid};
