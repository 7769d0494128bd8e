//! Simulates a Slurm cluster: priorities, conservative backfill, and limits per user.

mod plan;
mod queue_job;
mod settings;
mod simulated_cluster;

pub use queue_job::{NEVER, QueueJob};
pub use settings::{CapacityStep, SchedulerSettings};
pub use simulated_cluster::{AddedJob, SimulatedCluster, SimulatedRun};
