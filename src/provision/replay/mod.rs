//! A trace → when a simulated scheduler would have started its jobs, beside when they did start.

mod comparison;
mod found_capacity;
mod published_files;
mod published_replay;
mod replayed_trace;
mod slurm_replay;

pub use comparison::{ComparedJobs, ReplayComparison, compare_starts};
pub use published_files::{BackfillFile, PublishedFiles, SlurmFile};
pub use published_replay::replay_published;
pub use replayed_trace::{DatedNodes, ReplayedTrace};
pub use slurm_replay::{SlurmReplay, replay_slurm};
