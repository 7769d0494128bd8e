//! Sends runs and sweeps to W&B, and obeys the requests of its pages.

mod agents;
mod client;
mod extended_json;
mod files;
mod judged_metric;
mod preview;
mod requests;
mod sender;
mod settings;
mod sweep;
mod sweep_control;
mod text;

pub(crate) use extended_json::number_text;
pub use preview::preview_to_wandb;
pub(crate) use sender::WandbSender;
pub(crate) use settings::WandbSettings;
pub(crate) use text::{WandbValues, defined_metrics, goal_number, history_values, summary_values};
