//! The steps of `poolcast provision`.

mod advise;
mod chain;
mod chain_options;
mod check;
mod cluster_args;
mod replay;
mod samples;
mod start;
mod trace;
mod train;
mod validate;
mod window_args;

use clap::{Args, Subcommand};

pub use advise::ProvisionAdviseArgs;
pub use chain::{ProvisionChainArgs, ProvisionLinkArgs};
pub use chain_options::ChainOptions;
pub use check::ProvisionCheckArgs;
pub use cluster_args::{ClusterArgs, QueueArgs};
pub use replay::ProvisionReplayArgs;
pub use samples::ProvisionSamplesArgs;
pub use start::{ProvisionScoreArgs, ProvisionStartArgs};
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
    /// Read a cluster's accounting of its jobs
    ///
    /// The files are exports of `sacct` (`--parsable2` with any columns in any order, or `--json`), the Standard Workload Format of the Parallel Workloads Archive, or aligned tables of `sacct`. The format is recognised by the content. Unusable rows are counted by reason. Users are stored as salted hashes, and names of jobs are not stored.
    ///
    /// Example: poolcast provision trace jobs.txt -o trace --tz America/Chicago --stats
    #[command(verbatim_doc_comment)]
    Trace(ProvisionTraceArgs),
    /// Simulate the scheduler on a trace, and compare the starts with the logged ones
    ///
    /// The scheduler is Slurm's: priority by age and size, backfill, and a limit for each user. If the configuration lacks the number of nodes of the cluster or that limit, they are taken from the trace and printed. Alternatively, it is the simulator that the project Mirage published, decision for decision.
    ///
    /// Example: poolcast provision replay trace --since 2022-11-01
    #[command(verbatim_doc_comment)]
    Replay(ProvisionReplayArgs),
    /// Simulate the training samples of wait models
    ///
    /// In each window of a simulated trace, a job of a chain enters the queue, and a successor is submitted at each of several times up to its end. A sample has the state of the queue at that time, in numbers, and the wait of the successor. The numbers contain nothing later than that time.
    ///
    /// Example: poolcast provision samples trace -o samples --end-time 2023-02-20
    #[command(verbatim_doc_comment)]
    Samples(ProvisionSamplesArgs),
    /// Learn from samples how long a successor would wait, or when to submit it
    ///
    /// Trees and a perceptron learn from the features at prediction time; a transformer, a mixture of transformers, convolutions and an LSTM from the snapshots of the preceding day. In addition, `policy_gradient` learns a head for a model that is not changed, and `dqn` learns the values of submitting now and of continuing. The last fifth of the windows is held back: it selects the epoch, and the table shows the results of the model on it. After a stop or a kill, the same command continues.
    ///
    /// Example: poolcast provision train samples -o model
    #[command(verbatim_doc_comment)]
    Train(ProvisionTrainArgs),
    /// Compare policies for the submit time of a chained job's successor
    ///
    /// In each window of a simulated trace, a job of a chain enters the queue, and each policy submits its successor: when the job has ended (reactive), by the last waits, by a bound on the waits of similar jobs, by the time limits of all others, or by a forecast that draws their run times from jobs that have ended. The table has the hours of interruption, the hours of overlap, and the best result in hindsight. Below it are forecasts for the real waits of jobs in the trace.
    ///
    /// Example: poolcast provision validate trace -o validation --start-time 2023-03-01
    #[command(verbatim_doc_comment)]
    Validate(ProvisionValidateArgs),
    /// Advise whether to submit the successor of a running job now
    ///
    /// Queries `squeue`, `sinfo` and `sacct` for the jobs that run and wait now and for past run times, or reads their files; draws a run time for each job; and simulates when a job like the running one would start. Submits nothing. The exit code encodes the answer: 0 submit now, 30 later, 40 no advice. Where jobs share nodes, the simulation counts cores, memory and GPUs. There is no advice if jobs share cores, if Slurm hides jobs, or if the forecast contradicts `sbatch --test-only`.
    ///
    /// Example: poolcast provision advise trace --after 4711
    #[command(verbatim_doc_comment)]
    Advise(ProvisionAdviseArgs),
    /// Forecast when a pending job starts, also with other nodes or limits
    ///
    /// Queries `squeue`, `sinfo` and `sacct`, or reads their files, draws a run time for each job that runs or waits, and simulates the queue. Prints the 10 % quantile, the median and the 90 % quantile of the start, beside the start that Slurm plans as if all jobs ran to their limits. With `--shape`, it does the same for jobs of other shapes that are submitted now in its place, such as one with a shorter limit. Submits and changes nothing. Exit code 40 means that there is no forecast: the job is held, depends on another, or the queue cannot be simulated.
    ///
    /// Example: poolcast provision start 4711 --shape 11:50:00 --shape 2x1-00
    #[command(verbatim_doc_comment)]
    Start(ProvisionStartArgs),
    /// Compare your earlier forecasts with the starts of their jobs
    ///
    /// `start` keeps each forecast of a job in your state directory (`XDG_STATE_HOME`, else `~/.local/state`). This step reads the starts of these jobs from the accounting, and prints how many were between the 10 % and the 90 % quantile.
    ///
    /// Example: poolcast provision score
    #[command(verbatim_doc_comment)]
    Score(ProvisionScoreArgs),
    /// Examine what can be known of a Slurm cluster before a chain
    ///
    /// Asks Slurm's programs what you may see and what a chain meets, and says for each thing what follows: other users' jobs and accounting, whole or shared nodes, the order of jobs, limits of accounts and of the partition, and Slurm's own plan. Submits nothing. Exit code 0 means that waits can be forecast, 40 that they cannot.
    ///
    /// Example: poolcast provision check --partition gpu
    #[command(verbatim_doc_comment)]
    Check(ProvisionCheckArgs),
    /// Submit a script repeatedly, so that each job starts when the previous one ends
    ///
    /// Submits the first job, decides once a minute like `advise` whether to submit the next one, and ends once all requested jobs are submitted and the last one has started. Jobs find the number of the previous job in POOLCAST_PREDECESSOR, and their own number in the chain in POOLCAST_LINK. The state of the chain is in a directory: killed and restarted at any time, the command continues where it was, and no job runs twice. Exit code 40 means that the queue cannot be forecast: jobs share cores, Slurm hides jobs, or a job started far earlier than forecast.
    ///
    /// Example: poolcast provision chain train.sbatch --links 10 --trace trace
    #[command(verbatim_doc_comment)]
    Chain(ProvisionChainArgs),
    /// Make a batch script a chain of jobs, by one line at its top
    ///
    /// The line is `eval "$(poolcast provision link --links 20)"`. Prints commands for the shell of the script: they export POOLCAST_LINK and POOLCAST_PREDECESSOR, as `chain` does, or end the script if the work is done. Starts a process in the background of the job, which submits the same script again before the job ends, looks at the queue every five minutes, and ends with the job. The work is done once `--done` exits with 0; without it, once the script exits with 0 before Slurm asks it to end. The first `sbatch` is all that a user types. Where there is no job or no chain for it, prints an error and no commands, and the script runs as it is.
    ///
    /// Example: poolcast provision link --links 20 --done 'test -e results/final.pt'
    #[command(verbatim_doc_comment)]
    Link(ProvisionLinkArgs),
}
