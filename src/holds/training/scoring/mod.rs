//! Scores predictions: calibration, thresholds of answers, and scores by kind of target.

mod baselines;
mod calibration;
mod classes;
mod evaluate;
mod number_scores;
mod rolling_predictions;
mod target_scores;

pub use baselines::{SuccessRate, SuccessRates};
pub use calibration::{Calibration, best_f_measure, choose_threshold};
pub use classes::ClassScores;
pub(crate) use evaluate::score_in_place_of;
pub use evaluate::{
    MethodScores, ModelEvaluation, ProbedScores, ScoreInterval, evaluate_run, find_score,
    predict_split, uncalibrated_split,
};
pub use number_scores::NumberScores;
pub use rolling_predictions::{RollingPrediction, RollingPredictions};
pub use target_scores::{TargetScores, target_score};
