//! The directory of a run, and the model that is read from it.

mod ensemble;
mod ensemble_summary;
mod holds;
mod learned_holds;
mod metrics;
mod pipeline_run;
mod run;
mod run_dir;
mod sample_features;
mod trained_model;

pub use ensemble::{NewEnsemble, pooled_predictions, read_as_member};
pub use ensemble_summary::{EnsembleMember, member_dir};
pub use holds::{HoldPrediction, predict_holds, predict_samples};
pub use learned_holds::LearnedHolds;
pub use metrics::{TrainingMetrics, TrainingStatus};
pub use pipeline_run::{FitScores, FitSummary, PipelineRun, SampleFit, pipeline_sha256};
pub(crate) use run::FinishedTraining;
pub use run::{RunSummary, TrainingRun};
pub(crate) use run_dir::{
    CHECKPOINT_FILE, CHECKPOINT_FORMAT, HISTORY_FILE, PREDICTIONS_FILE, PREDICTIONS_FORMAT,
    TIMES_FILE, remove_training, reopen_training,
};
pub use run_dir::{
    ENSEMBLE, FIT, RUN_FORMAT, check_predictions, copy_training, evaluation_path,
    remove_checkpoint, remove_model,
};
pub use sample_features::{hold_features, sample_features};
pub use trained_model::{EncodedHolds, TrainedModel};
