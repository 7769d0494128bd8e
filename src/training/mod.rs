//! Tensors → a trained model with its history, and its scores beside baselines.

mod adam;
mod baselines;
mod bootstrap;
mod calibration;
mod checkpoint;
mod classes;
mod early_stopping;
mod evaluate;
mod holds;
mod metrics;
mod outcome;
mod run;
mod samples;
mod train;

pub use adam::{Adam, AdamSettings};
pub use baselines::{Rate, Rates};
pub(crate) use bootstrap::percentiles;
pub use calibration::Calibration;
pub use checkpoint::{checkpoint_key, copy_checkpoint};
pub use classes::{ClassScores, score};
pub use evaluate::{Evaluation, Method, Score, evaluate, probabilities};
pub use holds::{HoldModel, HoldPrediction, predict_holds, predict_samples};
pub use metrics::Scores;
pub use outcome::{Metrics, Status};
pub use run::{RUN, Run, RunSummary, read_history, remove_checkpoint, remove_model};
pub use train::{Epoch, Mode, NonFinite, Progress, Settings, Stopped, train, train_until};
