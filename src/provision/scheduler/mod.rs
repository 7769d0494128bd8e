//! Simulates a Slurm cluster: priorities, conservative backfill, and limits per user. A cluster has
//! whole nodes, or nodes whose cores, memory and GPUs jobs share.

mod node_pool;
mod plan;
mod queue_job;
mod settings;
mod shared_nodes;
mod simulated_cluster;

pub use node_pool::{NodePool, WholeNodes};
pub use queue_job::{NEVER, QueueJob};
pub use settings::{CapacityStep, SchedulerSettings};
pub use shared_nodes::{
    Amounts, JobShape, MAX_KINDS, NodeShare, SharedNode, SharedNodes, SharedQueue,
};
pub use simulated_cluster::{AddedJob, SimulatedCluster, SimulatedRun};
