//! Training and evaluation: turns tensors into a trained model with its history, and scores it
//! beside baselines.

mod fitting;
mod runs;
mod scoring;

pub use fitting::{
    Epoch, EpochTimes, LEARNED_SPLITS, PooledScores, RunLocation, StartMode, StaticRange, TimeCut,
    TrainError, TrainingUpdate, checkpoint_key, cluster_weights, copy_checkpoint, learned_splits,
    read_epoch_times, read_history, time_cuts, train, train_beside_others, train_until,
};
pub(crate) use fitting::{SampleTimes, TaughtHolds, model_shape, train_in_memory};
pub use runs::{
    ENSEMBLE, EnsembleMember, FIT, FitScores, FitSummary, HoldPrediction, LearnedHolds,
    NewEnsemble, PipelineRun, RUN_FORMAT, RunSummary, SampleFit, TrainedModel, TrainingMetrics,
    TrainingRun, TrainingStatus, check_predictions, copy_training, evaluation_path, hold_features,
    member_dir, pipeline_sha256, pooled_predictions, predict_holds, predict_samples,
    read_as_member, remove_checkpoint, remove_model, sample_features, training_key,
};
pub(crate) use runs::{HoldEncoder, LearnedNetwork, TrainedNetwork, open_model, write_model};
pub(crate) use scoring::score_in_place_of;
pub use scoring::{
    Calibration, ClassScores, MethodScores, ModelEvaluation, NumberScores, ProbedScores,
    RollingPrediction, RollingPredictions, ScoreInterval, SuccessRate, SuccessRates, TargetScores,
    best_f_measure, choose_threshold, evaluate_run, find_score, predict_split, target_score,
    uncalibrated_split,
};
