//! The steps of `poolcast provision`.

mod replay;
mod trace;
mod validate;

use clap::{Args, Subcommand};

pub use replay::ProvisionReplayArgs;
pub use trace::ProvisionTraceArgs;
pub use validate::ProvisionValidateArgs;

/// Arguments of `provision`.
#[derive(Debug, Args)]
pub struct ProvisionArgs {
    /// The step and its arguments.
    #[command(subcommand)]
    pub step: ProvisionStep,
}

/// The steps of provisioning.
#[derive(Debug, Subcommand)]
pub enum ProvisionStep {
    /// Read what a cluster's accounting says of its jobs
    ///
    /// The files are exports of `sacct` (`--parsable2` with any columns in any order, or `--json`), the Standard Workload Format of the Parallel Workloads Archive, or aligned tables of `sacct`. The form is recognised by the content. Rows that cannot be used are counted by reason. Users are stored as salted hashes, and names of jobs not at all.
    ///
    /// Example: poolcast provision trace jobs.txt -o trace --tz America/Chicago --stats
    #[command(verbatim_doc_comment)]
    Trace(ProvisionTraceArgs),
    /// Simulate the scheduler on a trace, beside when the jobs did start
    ///
    /// The scheduler is Slurm's: priority by age and size, backfill, and a limit for each user. What the configuration does not say of the cluster, its number of nodes and that limit, is taken from the trace and printed. Or it is the simulator that the project Mirage published, decision for decision.
    ///
    /// Example: poolcast provision replay trace --since 2022-11-01
    #[command(verbatim_doc_comment)]
    Replay(ProvisionReplayArgs),
    /// Compare ways to choose the moment at which a chained job's successor is submitted
    ///
    /// In window after window of a simulated trace, a job of a chain comes to the queue, and each policy submits its successor: when the job has ended (reactive), by the last waits, by a bound on the waits of like jobs, by the time limits of all others, or by a forecast that draws their run times from jobs that have ended. The table has how long nothing ran, how long both did, and the best in hindsight. Forecasts of waits that jobs of the trace really had stand below.
    ///
    /// Example: poolcast provision validate trace -o validation --start-time 2023-03-01
    #[command(verbatim_doc_comment)]
    Validate(ProvisionValidateArgs),
}
