//! The whole configuration, and the sections that only a sweep uses.

mod command;
mod conditions;
mod configuration;
mod dag;
mod init_points;
mod pipelines;
mod sweep;
mod tracker;
mod tracker_sections;
mod wandb_file;

pub use command::{CommandConfig, CommandParameter};
pub(crate) use conditions::{drawn_and_constants, drawn_under};
pub use configuration::{Config, TrialSource};
pub use dag::{DagConfig, SharedInputs, SubmitCommand, SubmitCommands, SubmitConfig};
pub use init_points::InitPoints;
pub(crate) use init_points::read_init_points;
pub use pipelines::{MAX_TRIALS, PipelineSpace, PipelineSpaces, TrialOrder};
pub use sweep::{Asha, EarlyTerminate, GivenSweep, Hyperband, Method, SweepConfig};
pub use tracker::Tracker;
pub use tracker_sections::{MlflowConfig, WandbConfig};
