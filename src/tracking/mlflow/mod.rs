//! Sends runs to MLflow.

mod batch;
mod runs;
mod sender;
mod settings;

pub(crate) use sender::MlflowSender;
pub use sender::preview_to_mlflow;
pub(crate) use settings::MlflowSettings;
