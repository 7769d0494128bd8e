//! Advice from a live Slurm: reads its jobs and nodes, and decides whether a user should submit the
//! successor of a job now.

mod host_list;
mod listed_job;
mod live_queue;
mod model_advice;
mod node_listing;
mod past_runs;
mod queue_json;
mod queue_listing;
mod queue_text;
mod slurm_programs;
mod slurm_state;
mod submission_advice;

pub use listed_job::{IdleReason, ListedJob};
pub use live_queue::{ClusterView, QueueCounts};
pub use model_advice::{ModelAdvice, QueriedModel};
pub use node_listing::NodeListing;
pub use past_runs::PastRuns;
pub use queue_listing::QueueListing;
pub use slurm_programs::{
    RecordedEnd, SlurmFault, SubmissionAttempt, cancel_job, query_accounting, query_ended_job,
    query_nodes, query_planned_start, query_queue, release_job, submit_job, test_script,
};
pub use slurm_state::{JobOutcome, QueueState};
pub use submission_advice::{
    AdviceSettings, ExpectedStart, NoAdviceReason, QueriedJob, SubmissionAdvice, SubmissionAnswer,
    advise_submission,
};
