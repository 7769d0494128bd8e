//! Statistics that several stages need: scores of probabilities, quantiles and means.

mod bootstrap;
mod logistic;
mod quantile;
mod scores;
mod wilson;

pub use bootstrap::{
    LabelledPredictions, Resampling, SampleGroups, percentile_interval, score_intervals,
};
pub use logistic::{logit, sigmoid, stable_sigmoid};
pub use quantile::{
    WeightedNumber, cost_quantile, first_after_share, gap_cost_h, interpolated_quantile, mean,
    median, nearest_rank_quantile, pinball_loss, upper_median, weighted_quantile,
};
pub use scores::{SCORE_COUNT, Scores, f_measure, mean_cross_entropy, roc_auc};
pub use wilson::{wilson_bound, wilson_lower};
