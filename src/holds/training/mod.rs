//! Training and evaluation: turns tensors into a trained model with its history, and scores it
//! beside baselines.

mod answer_thresholds;
mod baselines;
mod calibration;
mod checkpoint;
mod classes;
mod cluster_weights;
mod cut_choice;
mod early_stopping;
mod ensemble;
mod ensemble_summary;
mod epoch;
mod epoch_times;
mod evaluate;
mod holds;
mod learned_holds;
mod metrics;
mod number_scores;
mod pipeline_run;
mod progress;
mod refit;
mod rolling_predictions;
mod run;
mod run_dir;
mod run_models;
mod sample_features;
mod samples;
mod score;
mod settings;
#[cfg(test)]
mod small_runs;
mod small_steps;
mod state;
mod static_range;
mod target_scores;
mod time_cuts;
mod train;
mod trained_model;

pub use answer_thresholds::{AnswerThreshold, AnswerThresholds, wilson_lower};
pub use baselines::{SuccessRate, SuccessRates};
pub use calibration::{Calibration, best_f_measure, choose_threshold};
pub use checkpoint::{checkpoint_key, copy_checkpoint};
pub use classes::ClassScores;
pub use cluster_weights::cluster_weights;
pub use ensemble::{NewEnsemble, pooled_predictions, read_as_member};
pub use ensemble_summary::{EnsembleMember, member_dir};
pub use epoch::{Epoch, PooledScores, read_history};
pub use epoch_times::{EpochTimes, read_epoch_times};
pub use evaluate::{
    MethodScores, ModelEvaluation, ScoreInterval, evaluate_run, predict_side, uncalibrated_side,
};
pub use holds::{HoldModel, HoldPrediction, predict_holds, predict_samples};
pub use learned_holds::LearnedHolds;
pub use metrics::{TrainingMetrics, TrainingStatus};
pub use number_scores::NumberScores;
pub use pipeline_run::{FitScores, FitSummary, PipelineRun, SampleFit, pipeline_sha256};
pub use progress::{TrainError, TrainingUpdate};
pub use refit::{later_predictions, refit_key, refit_network};
pub use rolling_predictions::{RollingPrediction, RollingPredictions};
pub use run::{RunSummary, TrainingRun};
pub use run_dir::check_predictions;
pub use run_dir::{
    ENSEMBLE, FIT, RUN_FORMAT, copy_training, evaluation_path, refit_dir, remove_checkpoint,
    remove_model,
};
pub use run_models::RunModels;
pub use sample_features::{hold_features, sample_features};
pub use settings::TrainingSettings;
pub use small_steps::train_beside_others;
pub use static_range::StaticRange;
pub use target_scores::{TargetScores, target_score};
pub use time_cuts::{LEARNED_SIDES, TimeCut, learned_sides, time_cuts};
pub use train::{RunPlace, StartMode, train, train_until};
pub use trained_model::{EncodedHolds, TrainedModel};
