//! The steps of `poolcast sweep`.

mod show;
mod trials;
mod work;

use clap::{Args, Subcommand};

pub use show::{SweepEvaluateArgs, SweepListArgs, SweepShowArgs, SweepStatusArgs};
pub use trials::{SweepConcludeArgs, SweepTrialsArgs, TrialNumbers};
pub use work::{
    SweepChoiceArgs, SweepCleanupArgs, SweepInitArgs, SweepManageArgs, SweepPauseArgs,
    SweepRunArgs, SweepWorkArgs,
};

/// Arguments of `sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// Which step
    #[command(subcommand)]
    pub step: SweepStep,
}

/// The steps of a sweep.
#[derive(Debug, Subcommand)]
pub enum SweepStep {
    /// Make the folder: parse the logs, make the tensors, or join the tables; keep the search space
    ///
    /// Example: poolcast sweep init config/quickstart.yaml -o out/sweep
    #[command(verbatim_doc_comment)]
    Init(SweepInitArgs),
    /// Fill the queue, watch the workers, leave the results; one manager works, others leave
    ///
    /// Example: poolcast sweep manage out/sweep
    #[command(verbatim_doc_comment)]
    Manage(SweepManageArgs),
    /// Do trials, one after the other, until none is left
    ///
    /// Told to stop (SIGTERM), a worker leaves a checkpoint and gives its trial back.
    ///
    /// Example: poolcast sweep work out/sweep --threads 1
    #[command(verbatim_doc_comment)]
    Work(SweepWorkArgs),
    /// Manage, and do as many trials at once as there are threads
    ///
    /// Example: poolcast sweep run out/sweep
    #[command(verbatim_doc_comment)]
    Run(SweepRunArgs),
    /// Show how far the trials are; on a terminal, until all have ended
    ///
    /// Example: poolcast sweep status out/sweep
    #[command(verbatim_doc_comment)]
    Status(SweepStatusArgs),
    /// List all trials, the best first: how they ended, how long they took, their metrics and hyper-parameters
    ///
    /// Example: poolcast sweep list out/sweep --top 20
    #[command(verbatim_doc_comment)]
    List(SweepListArgs),
    /// Take no more trials until `sweep resume`: workers give back what they are at, with a checkpoint, and wait
    ///
    /// Example: poolcast sweep pause out/sweep
    #[command(verbatim_doc_comment)]
    Pause(SweepPauseArgs),
    /// Go on after `sweep pause`
    ///
    /// Example: poolcast sweep resume out/sweep
    #[command(verbatim_doc_comment)]
    Resume(SweepPauseArgs),
    /// Show the best trial of those that have ended
    ///
    /// Example: poolcast sweep best out/sweep
    #[command(verbatim_doc_comment)]
    Best(SweepShowArgs),
    /// Score the best trials of a finished sweep on rows they have not seen: bestmodel.info, selection.json
    ///
    /// Example: poolcast sweep evaluate out/sweep
    #[command(verbatim_doc_comment)]
    Evaluate(SweepEvaluateArgs),
    /// Do some trials, one after the other, in a directory that travels: what a job of a DAG does
    ///
    /// Trials that have a row are not done again; a training goes on from its last checkpoint.
    ///
    /// Exit code: 85 checkpointed, run me again (with --self-checkpoint); 1 and 2 errors.
    ///
    /// Example: poolcast sweep trials out/dag 1-8,12 -o parts/mine
    #[command(verbatim_doc_comment)]
    Trials(SweepTrialsArgs),
    /// The rows that the jobs of a DAG have left into the results of the sweep
    ///
    /// Example: poolcast sweep conclude out/dag -o best
    #[command(verbatim_doc_comment)]
    Conclude(SweepConcludeArgs),
    /// Tidy the folder once all trials have ended; what a DAG left goes to one directory of the sweep's name in it
    ///
    /// Example: poolcast sweep cleanup out/sweep --keep 3
    #[command(verbatim_doc_comment)]
    Cleanup(SweepCleanupArgs),
}
