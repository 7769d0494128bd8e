//! Statistics that several stages need: scores of probabilities, quantiles and means.

mod bootstrap;
mod logistic;
mod quantile;
mod scores;

pub use bootstrap::{
    LabelledPredictions, Resampling, SampleGroups, percentile_interval, score_intervals,
};
pub use logistic::{logit, sigmoid, stable_sigmoid};
pub use quantile::{cost_quantile, mean, quantile};
pub use scores::{SCORE_COUNT, Scores, f_measure, mean_cross_entropy, roc_auc};
