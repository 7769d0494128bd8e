//! The steps of `poolcast sweep`.

mod show;
mod trials;
mod work;

use clap::{Args, Subcommand};

pub use show::{SweepEvaluateArgs, SweepListArgs, SweepShowArgs, SweepStatusArgs};
pub use trials::{SweepConcludeArgs, SweepTrialsArgs, TrialsArg};
pub use work::{
    SweepChoiceArgs, SweepCleanupArgs, SweepInitArgs, SweepManageArgs, SweepPauseArgs,
    SweepRunArgs, SweepWorkArgs,
};

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The step and its arguments.
    #[command(subcommand)]
    pub step: SweepStep,
}

/// The steps of a sweep.
#[derive(Debug, Subcommand)]
pub enum SweepStep {
    /// Make the folder of a sweep: parse the logs, or join the tables
    ///
    /// Example: poolcast sweep init config/quickstart.yaml -o out/sweep
    #[command(verbatim_doc_comment)]
    Init(SweepInitArgs),
    /// Fill the queue, watch the workers, and write the results
    ///
    /// A sweep has one manager; a second one exits.
    ///
    /// Example: poolcast sweep manage out/sweep
    #[command(verbatim_doc_comment)]
    Manage(SweepManageArgs),
    /// Work on trials, one after another, until none is left
    ///
    /// On SIGTERM, a worker writes a checkpoint and returns its trial to the queue.
    ///
    /// Example: poolcast sweep work out/sweep --threads 1
    #[command(verbatim_doc_comment)]
    Work(SweepWorkArgs),
    /// Manage a sweep in this process, and work on as many trials at once as there are threads
    ///
    /// Example: poolcast sweep run sweep.yaml -o out/sweep
    #[command(verbatim_doc_comment)]
    Run(SweepRunArgs),
    /// Show progress; on a terminal, refresh until all trials end
    ///
    /// Example: poolcast sweep status out/sweep
    #[command(verbatim_doc_comment)]
    Status(SweepStatusArgs),
    /// List all trials, the best first, with their state, run time, metrics and hyper-parameters
    ///
    /// Example: poolcast sweep list out/sweep --top 20
    #[command(verbatim_doc_comment)]
    List(SweepListArgs),
    /// Pause a sweep: workers write a checkpoint, return their trials to the queue, and wait
    ///
    /// Example: poolcast sweep pause out/sweep
    #[command(verbatim_doc_comment)]
    Pause(SweepPauseArgs),
    /// Resume a sweep after `sweep pause`
    ///
    /// Example: poolcast sweep resume out/sweep
    #[command(verbatim_doc_comment)]
    Resume(SweepPauseArgs),
    /// Prepare a finished sweep to run its failed and quarantined trials again
    ///
    /// Other trials keep their results. `poolcast sweep run` then runs the failed ones, also with another time limit.
    ///
    /// Example: poolcast sweep retry out/sweep
    #[command(verbatim_doc_comment)]
    Retry(SweepPauseArgs),
    /// Show the best trial so far
    ///
    /// Example: poolcast sweep best out/sweep
    #[command(verbatim_doc_comment)]
    Best(SweepShowArgs),
    /// Score the best trials of a finished sweep on samples that they have not seen
    ///
    /// The scores are written to bestmodel.info and selection.json.
    ///
    /// Example: poolcast sweep evaluate out/sweep
    #[command(verbatim_doc_comment)]
    Evaluate(SweepEvaluateArgs),
    /// Run some trials as a job of a DAG, in a directory that travels with the job
    ///
    /// A trial that has a row of results is not repeated, and a training continues from its last checkpoint.
    ///
    /// Exit codes: 0 done; 85 stopped with a checkpoint, run the command again (with --self-checkpoint); 1 and 2 errors.
    ///
    /// Example: poolcast sweep trials out/dag 1-8,12 -o parts/mine
    #[command(verbatim_doc_comment)]
    Trials(SweepTrialsArgs),
    /// Write the results of a sweep from the rows that the jobs of a DAG have written
    ///
    /// Example: poolcast sweep conclude out/dag -o best
    #[command(verbatim_doc_comment)]
    Conclude(SweepConcludeArgs),
    /// Tidy the folder of a sweep once all trials have ended
    ///
    /// The results of a DAG are moved to one directory, which has the name of the sweep.
    ///
    /// Example: poolcast sweep cleanup out/sweep --keep 3
    #[command(verbatim_doc_comment)]
    Cleanup(SweepCleanupArgs),
}
