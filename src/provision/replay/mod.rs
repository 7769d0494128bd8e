//! Replays a trace with a simulated scheduler, and compares simulated with logged starts.

mod comparison;
mod found_capacity;
mod published_files;
mod published_replay;
mod replayed_trace;
mod slurm_replay;
mod slurm_world;

pub use comparison::{ComparedJobs, ReplayComparison, compare_starts};
pub use published_files::{BackfillFile, PublishedFiles, SlurmFile};
pub use published_replay::replay_published;
pub use replayed_trace::longest_limit_s;
pub(crate) use replayed_trace::number_users;
pub use replayed_trace::{DatedNodes, ReplayedTrace, SimulatedClock};
pub use slurm_replay::replay_slurm;
pub use slurm_world::{SlurmReplay, SlurmWorld};
