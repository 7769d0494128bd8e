//! What a live Slurm says of its jobs and nodes → whether the successor of a job is to be submitted
//! now.

mod host_list;
mod live_queue;
mod node_listing;
mod past_runs;
mod queue_listing;
mod slurm_programs;
mod slurm_state;
mod submission_advice;

pub use live_queue::{ClusterView, QueueCounts};
pub use node_listing::NodeListing;
pub use past_runs::PastRuns;
pub use queue_listing::{IdleReason, ListedJob, QueueListing};
pub use slurm_programs::{
    RecordedEnd, SlurmFault, SubmissionAttempt, ask_accounting, ask_ended_job, ask_nodes,
    ask_planned_start, ask_queue, cancel_job, release_job, submit_job, test_script,
};
pub use slurm_state::{JobOutcome, QueueState};
pub use submission_advice::{
    AdviceSettings, AskedJob, ExpectedStart, NoAdviceReason, SubmissionAdvice, SubmissionAnswer,
    advise_submission,
};
