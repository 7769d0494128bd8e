//! The steps of `poolcast provision`.

mod advise;
mod chain;
mod decision_args;
mod replay;
mod samples;
mod trace;
mod train;
mod validate;
mod window_args;

use clap::{Args, Subcommand};

pub use advise::ProvisionAdviseArgs;
pub use chain::ProvisionChainArgs;
pub use decision_args::DecisionArgs;
pub use replay::ProvisionReplayArgs;
pub use samples::ProvisionSamplesArgs;
pub use trace::ProvisionTraceArgs;
pub use train::ProvisionTrainArgs;
pub use validate::ProvisionValidateArgs;
pub use window_args::WindowArgs;

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
    /// Simulate what models of waits learn from
    ///
    /// In window after window of a simulated trace, a job of a chain comes to the queue, and a successor is submitted at each of several moments up to its end. A sample has what the queue was like at that moment, in numbers, and how long the successor then waits. Nothing later is in those numbers.
    ///
    /// Example: poolcast provision samples trace -o samples --end-time 2023-02-20
    #[command(verbatim_doc_comment)]
    Samples(ProvisionSamplesArgs),
    /// Learn from samples how long a successor would wait, or when to submit it
    ///
    /// Trees and a perceptron learn from the features of a moment; a transformer, a mixture of such, convolutions and an LSTM from the snapshots of the day before it. On top, `policy_gradient` learns a head for a model that stays as it is, and `dqn` the values of submitting now and of going on. The last fifth of the windows is held back: it chooses the epoch, and the table shows what the model comes to on it. Stopped or killed, the same command goes on.
    ///
    /// Example: poolcast provision train samples -o model
    #[command(verbatim_doc_comment)]
    Train(ProvisionTrainArgs),
    /// Compare ways to choose the moment at which a chained job's successor is submitted
    ///
    /// In window after window of a simulated trace, a job of a chain comes to the queue, and each policy submits its successor: when the job has ended (reactive), by the last waits, by a bound on the waits of like jobs, by the time limits of all others, or by a forecast that draws their run times from jobs that have ended. The table has how long nothing ran, how long both did, and the best in hindsight. Forecasts of waits that jobs of the trace really had stand below.
    ///
    /// Example: poolcast provision validate trace -o validation --start-time 2023-03-01
    #[command(verbatim_doc_comment)]
    Validate(ProvisionValidateArgs),
    /// Say whether the successor of a running job is to be submitted now
    ///
    /// Asks `squeue`, `sinfo` and `sacct` what runs and waits now and how long jobs ran before, or takes their files; draws how long each job will run; and simulates from when on a job like the running one would start. Submits nothing. The exit code says what to do: 0 submit now, 30 later, 40 no advice.
    ///
    /// Example: poolcast provision advise trace --after 4711
    #[command(verbatim_doc_comment)]
    Advise(ProvisionAdviseArgs),
    /// Submit a script again and again, each job so that it starts when the one before it ends
    ///
    /// Submits the first job, decides once a minute as `advise` does whether to submit the next one, and goes on until there are as many as wanted and the last one has started. Jobs find the number of the one before them in POOLCAST_PREDECESSOR, and their own in the chain in POOLCAST_LINK. What is known of the chain is in a directory: killed and typed again at any moment, the command goes on where it was, and no job runs twice.
    ///
    /// Example: poolcast provision chain train.sbatch --links 10 --trace trace
    #[command(verbatim_doc_comment)]
    Chain(ProvisionChainArgs),
}
