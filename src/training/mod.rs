//! Tensors → a trained model with its history, and its scores beside baselines.

mod adam;
mod baselines;
mod bootstrap;
mod calibration;
mod checkpoint;
mod classes;
mod early_stopping;
mod epoch;
mod evaluate;
mod holds;
mod metrics;
mod progress;
mod run;
mod run_dir;
mod samples;
mod score;
mod scores;
mod settings;
mod state;
mod train;

pub use adam::{Adam, AdamSettings};
pub use baselines::{SuccessRate, SuccessRates};
pub(crate) use bootstrap::{SampleGroups, percentile_interval};
pub use calibration::Calibration;
pub use checkpoint::{checkpoint_key, copy_checkpoint};
pub use classes::{ClassScores, class_score};
pub use epoch::{Epoch, read_history};
pub use evaluate::{MethodScores, ModelEvaluation, ScoreInterval, evaluate_run, predict_side};
pub use holds::{HoldModel, HoldPrediction, predict_holds, predict_samples};
pub use metrics::{TrainingMetrics, TrainingStatus};
pub use progress::{NonFiniteLoss, TrainError, TrainingStopped, TrainingUpdate};
pub use run::{RunSummary, TrainingRun};
pub use run_dir::{RUN_FORMAT, evaluation_path, remove_checkpoint, remove_model};
pub use scores::Scores;
pub use settings::TrainingSettings;
pub use train::{RunPlace, StartMode, train, train_until};
