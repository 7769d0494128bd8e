//! The command line: types only, a file for each verb. Their doc comments are the help text.

mod advise;
mod collect;
mod dag;
mod evaluate;
mod manual;
mod parse;
mod predict;
mod run;
mod shards;
mod simulate;
mod sweep;
mod tensors;
mod train;

use clap::{ArgAction, Parser, Subcommand};

pub use advise::AdviseArgs;
pub use collect::CollectArgs;
pub use dag::DagArgs;
pub use evaluate::EvaluateArgs;
pub use manual::{CompletionsArgs, ConfigArgs, ManArgs};
pub use parse::ParseArgs;
pub use predict::PredictArgs;
pub use run::RunArgs;
pub use shards::ShardArgs;
pub use simulate::SimulateArgs;
pub use sweep::{
    SweepArgs, SweepChoiceArgs, SweepCleanupArgs, SweepConcludeArgs, SweepEvaluateArgs,
    SweepInitArgs, SweepListArgs, SweepManageArgs, SweepPauseArgs, SweepRunArgs, SweepShowArgs,
    SweepStatusArgs, SweepStep, SweepTrialsArgs, SweepWorkArgs, TrialNumbers,
};
pub use tensors::TensorsArgs;
pub use train::TrainArgs;

/// What `--version` says; `-V` says the number alone. `build.rs` sets what Cargo does not.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("BUILD_COMMIT"),
    "\ntarget: ",
    env!("BUILD_TARGET"),
    "\nfeatures: ",
    env!("BUILD_FEATURES"),
);

/// What to do with held HTCondor jobs, learned from an access point's event logs.
#[derive(Debug, Parser)]
#[command(version, long_version = VERSION, bin_name = "poolcast", propagate_version = true, max_term_width = 100)]
pub struct Cli {
    /// Say more on stderr; -vv says still more [default: as POOLCAST_LOG says, else notes and warnings]
    #[arg(short, long, global = true, display_order = 901, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Say nothing on stderr but errors; no bars either
    #[arg(short, long, global = true, display_order = 902)]
    pub quiet: bool,
    /// Threads to use [default: RAYON_NUM_THREADS, else OMP_NUM_THREADS, else the cores of this slot or machine]
    #[arg(long, global = true, display_order = 900, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// What to do
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs, in the order the data flows.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// The whole line: parse, tensors, a sweep of trials, the best model, its evaluation, advice on jobs still held
    ///
    /// Finished steps are kept, and an interrupted run goes on where it stopped.
    ///
    /// Example: poolcast run config/quickstart.yaml
    #[command(verbatim_doc_comment)]
    Run(RunArgs),
    /// A live, rotating global event log into an archive that only grows
    ///
    /// Each call adds what is new since the last one, whatever was rotated meanwhile. Nothing is
    /// there twice, also after a kill at any moment; what was rotated away before is reported.
    ///
    /// Example: poolcast collect /var/log/condor/EventLog -o archive
    #[command(verbatim_doc_comment)]
    Collect(CollectArgs),
    /// Event logs into event shards
    ///
    /// Example: poolcast parse /var/log/condor/EventLog -o events
    #[command(verbatim_doc_comment)]
    Parse(ParseArgs),
    /// Event shards into train, validate and test tensors
    ///
    /// What no flag sets comes from the configuration file, else from the defaults that
    /// `poolcast config` prints.
    ///
    /// Example: poolcast tensors events -o tensors --j 20 --m 20 --timeframe-len 60
    #[command(verbatim_doc_comment)]
    Tensors(TensorsArgs),
    /// Tensors into a trained model, its metrics, its history and its checkpoint
    ///
    /// What no flag sets comes from the configuration file, else from the defaults that
    /// `poolcast config` prints.
    ///
    /// Exit code: 85 checkpointed, run me again (with --self-checkpoint); 1 and 2 errors.
    ///
    /// Example: poolcast train tensors -o run --hidden-size 32
    #[command(verbatim_doc_comment)]
    Train(TrainArgs),
    /// A search space into trials, by any number of workers that share a folder, and the best of them
    ///
    /// The folder needs no server: any host that sees it can work, now or later. Managers and
    /// workers may be killed and started again at any moment.
    ///
    /// Example: poolcast sweep init config/quickstart.yaml -o out/sweep
    #[command(verbatim_doc_comment)]
    Sweep(SweepArgs),
    /// A search space into a DAG of HTCondor jobs, and its submit files
    ///
    /// Every step runs as a job in one container image; a trial that fails does not end the others.
    /// `poolcast sweep status`, `best` and `cleanup` know the directory that it writes.
    ///
    /// Example: poolcast dag config/quickstart.yaml -o out/dag --image poolcast.sif --dry-run
    #[command(verbatim_doc_comment)]
    Dag(DagArgs),
    /// A model and a split into scores beside baselines
    ///
    /// Example: poolcast evaluate run tensors
    #[command(verbatim_doc_comment)]
    Evaluate(EvaluateArgs),
    /// What to do with held jobs, and why
    ///
    /// Exit code: 0 release, 10 fix first, 20 remove, 30 wait, 40 no advice,
    /// also where several jobs differ; 1 and 2 errors.
    ///
    /// Example: poolcast advise out/quickstart --log EventLog 1086.0
    #[command(verbatim_doc_comment)]
    Advise(AdviseArgs),
    /// A fitted pipeline and new rows, or a network and the holds of a log, into probabilities
    ///
    /// A pipeline over tables gives each row of a CSV or Parquet table a probability of each class. It finds
    /// its columns by name, and reads no target. A network gives each hold of a log, of events or of tensors
    /// the probability that the job succeeds once it is released unchanged.
    ///
    /// Example: poolcast predict out/table new.csv --split A1 -o predictions.csv
    #[command(verbatim_doc_comment)]
    Predict(PredictArgs),
    /// The log of a pool whose truth is known, to try everything on
    ///
    /// Example: poolcast simulate -o EventLog --truth truth.safetensors --jobs 20000
    #[command(verbatim_doc_comment)]
    Simulate(SimulateArgs),
    /// Print the configuration: every key with its default, or what a file and the environment make of it
    ///
    /// Example: poolcast config config/quickstart.yaml
    #[command(verbatim_doc_comment)]
    Config(ConfigArgs),
    /// Print a script that makes a shell complete the words of `poolcast`
    ///
    /// Example: poolcast completions bash > ~/.local/share/bash-completion/completions/poolcast
    #[command(verbatim_doc_comment)]
    Completions(CompletionsArgs),
    /// Write the manual pages, one for each verb
    ///
    /// Example: poolcast man -o ~/.local/share/man/man1
    #[command(verbatim_doc_comment)]
    Man(ManArgs),
}
