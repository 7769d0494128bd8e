//! The directory of a run, and the model that is read from it.

mod ensemble;
mod ensemble_summary;
mod hold_encoder;
mod holds;
mod learned_holds;
mod learned_network;
mod metrics;
mod model_file;
mod pipeline_run;
mod run;
mod run_dir;
mod sample_features;
mod trained_model;

pub use ensemble::{NewEnsemble, pooled_predictions, read_as_member};
pub use ensemble_summary::{EnsembleMember, member_dir};
pub(crate) use hold_encoder::{EncodedHolds, HoldEncoder, SampleInputs};
pub use holds::{HoldPrediction, predict_holds, predict_samples};
pub use learned_holds::LearnedHolds;
pub(crate) use learned_network::{LearnedNetwork, TrainedNetwork};
pub use metrics::{TrainingMetrics, TrainingStatus};
pub(crate) use model_file::{open_model, write_model};
pub use pipeline_run::{FitScores, FitSummary, PipelineRun, SampleFit, pipeline_sha256};
pub(crate) use run::FinishedTraining;
pub use run::{RunSummary, TrainingRun};
pub(crate) use run_dir::{
    CHECKPOINT_FILE, CHECKPOINT_FORMAT, HISTORY_FILE, PREDICTIONS_FILE, PREDICTIONS_FORMAT,
    TIMES_FILE, remove_training, reopen_training,
};
pub use run_dir::{
    ENSEMBLE, FIT, RUN_FORMAT, check_predictions, copy_training, evaluation_path,
    remove_checkpoint, remove_model, training_key,
};
pub use sample_features::{hold_features, sample_features};
pub use trained_model::TrainedModel;
