//! Advice from a live Slurm: reads its jobs and nodes, and decides whether a user should submit the
//! successor of a job now.

mod advice_settings;
mod cluster_check;
mod feature_rule;
mod host_list;
mod job_resources;
mod kept_jobs;
mod listed_job;
mod live_queue;
mod model_advice;
mod no_advice_reason;
mod node_listing;
mod node_resources;
mod obstacle;
mod past_runs;
mod pending_reason;
mod queue_json;
mod queue_listing;
mod queue_text;
mod shared_cluster;
mod slurm_programs;
mod slurm_settings;
mod slurm_state;
mod start_forecast;
mod start_journal;
mod submission_advice;

pub use advice_settings::AdviceSettings;
pub use cluster_check::ClusterCheck;
pub use listed_job::ListedJob;
pub use live_queue::{ClusterView, QueueCounts};
pub use model_advice::{ModelAdvice, QueriedModel};
pub use no_advice_reason::NoAdviceReason;
pub use node_listing::NodeListing;
pub use obstacle::ClusterListing;
pub use past_runs::PastRuns;
pub use pending_reason::{IdleReason, PendingRole};
pub use queue_listing::QueueListing;
pub use slurm_programs::{
    PlannedStart, RecordedEnd, RecordedState, SlurmFault, SubmissionAttempt, cancel_job, plan_like,
    plan_script, query_accounting, query_job_command, query_job_record, query_nodes, query_queue,
    query_settings, query_version, release_job, submit_job, test_script,
};
pub use slurm_settings::SlurmSettings;
pub use slurm_state::{JobOutcome, QueueState};
pub use start_forecast::{
    AskedShape, ShapeForecast, StartAnswer, StartForecast, StartTimes, forecast_start,
};
pub use start_journal::{StartJournal, StartRecord};
pub use submission_advice::{
    ExpectedStart, NO_ADVICE_CODE, QueriedJob, SubmissionAdvice, SubmissionAnswer,
    advise_submission,
};
