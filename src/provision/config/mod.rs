//! The section `provision` of the configuration.

mod provision;
mod wait_model;

pub use provision::{CostRatio, NodeCount, ProvisionConfig, SchedulerKind};
pub use wait_model::default_wait_model;
