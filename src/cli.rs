//! The command line: types only; their doc comments are the help text.

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;

use crate::config::{
    ContextChoice, HoldCycles, LabelKind, SplitMethod, StateEvent, Vocabulary, WindowPlace,
};
use crate::models::{ARCHITECTURES, Architecture, DeviceName};
use crate::tensors::SplitSide;

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

/// How the shards of events, tensors and tables are opened.
#[derive(Debug, Args)]
pub struct ShardArgs {
    /// Do not compare shards with the digests in their manifests, which reads each of them once
    #[arg(long)]
    pub no_verify: bool,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    /// The configuration
    pub config: PathBuf,
    /// Where to leave everything [default: `out` in the configuration]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Do everything anew, also what is finished
    #[arg(long)]
    pub overwrite: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}

/// Arguments of `collect`.
#[derive(Debug, Args)]
pub struct CollectArgs {
    /// Global event logs; their rotated generations are found beside them
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The archive, a directory of its own
    #[arg(short, long, value_name = "ARCHIVE")]
    pub out: PathBuf,
    /// Print what the archive holds as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `parse`.
#[derive(Debug, Args)]
pub struct ParseArgs {
    /// Event logs: text, JSON or XML; plain, gzip, xz or zstd, told apart by content. Rotated generations beside a global
    /// event log are read, too
    #[arg(required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The directory to write
    #[arg(short, long, value_name = "DIR", required_unless_present = "dump")]
    pub out: Option<PathBuf>,
    /// The access point's name [default: what the log says]
    #[arg(long)]
    pub ap: Option<String>,
    /// The year of the first event, for stamps without a year in a log without a header
    #[arg(long, value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Replace an earlier result
    #[arg(long)]
    pub overwrite: bool,
    /// Damage within a log is an error
    #[arg(long)]
    pub strict: bool,
    /// Print the holds by code, too: how many were released, and how many of those succeeded
    #[arg(long, conflicts_with = "json")]
    pub stats: bool,
    /// Print one JSON line an event instead, and write nothing
    #[arg(long, conflicts_with_all = ["out", "json", "stats", "strict"])]
    pub dump: bool,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `tensors`.
#[derive(Debug, Args)]
pub struct TensorsArgs {
    /// A directory that `parse` wrote
    pub events: PathBuf,
    /// The directory to write
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
    /// A configuration file
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Jobs in a sample, the held one included
    #[arg(long)]
    pub j: Option<u32>,
    /// Time frames in a sample
    #[arg(long)]
    pub m: Option<u32>,
    /// Seconds per frame
    #[arg(long, value_name = "SECONDS")]
    pub timeframe_len: Option<u32>,
    /// Where the frames stand
    #[arg(long, value_enum)]
    pub window: Option<WindowPlace>,
    /// Which other jobs stand beside the held one
    #[arg(long, value_enum)]
    pub context: Option<ContextChoice>,
    /// The states of a job that are told apart
    #[arg(long, value_enum)]
    pub vocabulary: Option<Vocabulary>,
    /// The events that are states, such as 0,1,5,12,13,input-transfer,output-transfer [default: every number]
    #[arg(long, value_name = "EVENTS", value_delimiter = ',')]
    pub states: Option<Vec<StateEvent>>,
    /// What is predicted
    #[arg(long, value_enum)]
    pub label: Option<LabelKind>,
    /// Which holds of a job
    #[arg(long, value_enum)]
    pub cycles: Option<HoldCycles>,
    /// How samples are divided
    #[arg(long, value_enum)]
    pub split: Option<SplitMethod>,
    /// The root of every random choice
    #[arg(long)]
    pub seed: Option<u64>,
    /// Also print what could leak from the samples that are learned from into those that are tested
    #[arg(long)]
    pub audit: bool,
    /// Unpack this tar file first, where the program runs; what is there already stays as it is
    #[arg(long, value_name = "FILE")]
    pub unpack: Option<PathBuf>,
    /// Replace an earlier result
    #[arg(long)]
    pub overwrite: bool,
    /// Print the counts as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}

fn models() -> PossibleValuesParser {
    let value = |architecture: &&dyn Architecture| {
        PossibleValue::new(architecture.name()).help(architecture.about())
    };
    PossibleValuesParser::new(ARCHITECTURES.iter().map(value))
}

/// Arguments of `train`.
#[derive(Debug, Args)]
pub struct TrainArgs {
    /// A directory that `tensors` wrote
    pub tensors: PathBuf,
    /// The directory of the run
    #[arg(short, long, value_name = "RUN")]
    pub out: PathBuf,
    /// A configuration file
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What is trained
    #[arg(long, value_parser = models())]
    pub model: Option<String>,
    /// Layers, whatever the model
    #[arg(long, value_name = "N")]
    pub lstm_layers: Option<u32>,
    /// Width of each layer
    #[arg(long, value_name = "N")]
    pub hidden_size: Option<u32>,
    /// Adam's learning rate
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    pub learning_rate: Option<f64>,
    /// The share of the learning rate by which every weight shrinks at each step
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    pub weight_decay: Option<f64>,
    /// The largest norm of a gradient, 0 for no limit
    #[arg(long, value_name = "NORM", allow_negative_numbers = true)]
    pub clip_grad_norm: Option<f64>,
    /// Samples a step
    #[arg(long, value_name = "N")]
    pub batch_size: Option<u32>,
    /// What a success counts in the loss, where a failure counts 1
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    pub pos_weight: Option<f64>,
    /// The most epochs
    #[arg(long, value_name = "N")]
    pub epochs: Option<u32>,
    /// Stop after so many epochs without improvement
    #[arg(long, value_name = "N")]
    pub earlystop_threshold: Option<u32>,
    /// What does not improve by more than this is no improvement
    #[arg(long, value_name = "GAIN", allow_negative_numbers = true)]
    pub earlystop_min_delta: Option<f64>,
    /// The root of every random choice
    #[arg(long)]
    pub seed: Option<u64>,
    /// Write a checkpoint so often within an epoch, too; 0 for every batch
    #[arg(long, value_name = "MINUTES", allow_negative_numbers = true)]
    pub checkpoint_minutes: Option<f64>,
    /// What to train on: cpu, cuda or cuda:N, or auto for the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// Go on from the last checkpoint
    #[arg(long, conflicts_with = "overwrite")]
    pub resume: bool,
    /// As a job with `checkpoint_exit_code = 85`: go on from the last checkpoint, as with --resume; when told to stop
    /// (SIGTERM), and after so many minutes (60 unless given), write one and exit with 85
    #[arg(long, value_name = "MINUTES", num_args = 0..=1, require_equals = true, default_missing_value = "60")]
    #[arg(conflicts_with = "overwrite")]
    pub self_checkpoint: Option<f64>,
    /// Leave once so many epochs are done, whoever did them: the step of a chain of jobs; the next one goes on from there
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub until_epoch: Option<u32>,
    /// Start anew where a training is already
    #[arg(long)]
    pub overwrite: bool,
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}

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

/// Arguments of `sweep init`.
#[derive(Debug, Args)]
pub struct SweepInitArgs {
    /// The configuration
    pub config: PathBuf,
    /// The folder to make [default: `out` in the configuration]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Begin anew where a sweep is; trials that would be the same are found done
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub choice: SweepChoiceArgs,
}

/// What a sweep of pipelines tries: fixed once its folder is made.
#[derive(Debug, Args)]
pub struct SweepChoiceArgs {
    /// The pipelines to try, such as lasso,xgb; without a search space in the configuration each has its default
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Pipelines (docs/pipelines.md)"
    )]
    pub pipeline_names: Vec<String>,
    /// The splits of tables to try, such as A1,B2 for train_A1, validate_A1, train_B2 and validate_B2
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        help_heading = "Pipelines (docs/pipelines.md)"
    )]
    pub split_names: Vec<String>,
    /// Judge by cross-validation with K folds [default: 5 folds if K is not given]
    #[arg(long, value_name = "K", num_args = 0..=1, default_missing_value = "5", value_parser = fold_count)]
    #[arg(help_heading = "Pipelines (docs/pipelines.md)")]
    pub cv: Option<usize>,
    /// Learn from train_NAME and validate on validate_NAME
    #[arg(long, help_heading = "Pipelines (docs/pipelines.md)")]
    pub validate: bool,
}

fn fold_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (2..=1000).contains(count));
    count.ok_or_else(|| {
        "it takes a number of folds, from 2 on, or nothing for 5; leave `--cv` out for none"
            .to_owned()
    })
}

/// Arguments of `sweep manage`.
#[derive(Debug, Args)]
pub struct SweepManageArgs {
    /// The folder that `sweep init` made
    pub dir: PathBuf,
    /// Keep the models of the K best trials, of pipelines those of each split; the others are removed as it goes, and can be
    /// made again
    #[arg(long, value_name = "K", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: u32,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub choice: SweepChoiceArgs,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}

/// Arguments of `sweep cleanup`.
#[derive(Debug, Args)]
pub struct SweepCleanupArgs {
    /// The folder that `sweep init` or `dag` made
    pub dir: PathBuf,
    /// Keep the models of the K best trials only [default: all]; the others can be trained again
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
    /// Only print what would be moved of a DAG's
    #[arg(long, conflicts_with = "keep")]
    pub dry_run: bool,
}

/// Arguments of `sweep work`.
#[derive(Debug, Args)]
pub struct SweepWorkArgs {
    /// The folder that `sweep init` made
    pub dir: PathBuf,
    /// A trial that takes longer has failed [default: none takes too long]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub trial_timeout: Option<u32>,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}

/// Arguments of `sweep run`.
#[derive(Debug, Args)]
pub struct SweepRunArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub manage: SweepManageArgs,
    /// A trial that takes longer has failed [default: none takes too long]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub trial_timeout: Option<u32>,
}

/// Arguments of `sweep status`.
#[derive(Debug, Args)]
pub struct SweepStatusArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub show: SweepShowArgs,
    /// Print it once and leave, on a terminal, too
    #[arg(long)]
    pub once: bool,
}

/// Arguments of `sweep list`.
#[derive(Debug, Args)]
pub struct SweepListArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub show: SweepShowArgs,
    /// Print it as CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// Only the N best
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
}

/// Arguments of `sweep pause` and `sweep resume`.
#[derive(Debug, Args)]
pub struct SweepPauseArgs {
    /// The folder that `sweep init` made
    pub dir: PathBuf,
}

/// Arguments of `sweep best`, and of others that show something of a sweep.
#[derive(Debug, Args)]
pub struct SweepShowArgs {
    /// The folder that `sweep init` or `dag` made
    pub dir: PathBuf,
    /// Print it as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `sweep evaluate`.
#[derive(Debug, Args)]
pub struct SweepEvaluateArgs {
    /// The folder of a finished sweep
    pub dir: PathBuf,
    /// Where to leave the scores [default: in that folder]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Arguments of `sweep trials`.
#[derive(Debug, Args)]
pub struct SweepTrialsArgs {
    /// The directory of a DAG, or what of it these trials need
    pub dir: PathBuf,
    /// The trials: their numbers, and ranges of them
    #[arg(value_name = "TRIALS", value_parser = trial_numbers)]
    pub trials: TrialNumbers,
    /// The directory that travels, with rows, models and checkpoints
    #[arg(short, long, value_name = "PART")]
    pub out: PathBuf,
    /// What to train on: cpu, cuda or cuda:N, or auto for the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// As a job with `checkpoint_exit_code = 85`: when told to stop (SIGTERM), and after so many minutes (60 unless given),
    /// write a checkpoint and exit with 85
    #[arg(long, value_name = "MINUTES", num_args = 0..=1, require_equals = true, default_missing_value = "60")]
    pub self_checkpoint: Option<f64>,
    /// Leave trainings once so many epochs are done: the step of a chain of jobs
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub until_epoch: Option<u32>,
    /// Unpack this tar file first, where the program runs; what is there already stays as it is
    #[arg(long, value_name = "FILE")]
    pub unpack: Option<PathBuf>,
}

/// Numbers of trials, counted from 1.
#[derive(Debug, Clone)]
pub struct TrialNumbers(pub Vec<usize>);

fn trial_numbers(text: &str) -> Result<TrialNumbers, String> {
    let numbers = crate::condor::parse_trial_ranges(text).map(TrialNumbers);
    numbers.ok_or_else(|| "it takes numbers and ranges of them, such as 1-8,12".to_owned())
}

/// Arguments of `sweep conclude`.
#[derive(Debug, Args)]
pub struct SweepConcludeArgs {
    /// The directory of a DAG, or what of it this needs: config.yaml, rows, the manifest of its events or its table
    pub dir: PathBuf,
    /// Where to leave the results [default: in that directory]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Arguments of `dag`.
#[derive(Debug, Args)]
pub struct DagArgs {
    /// The configuration
    pub config: PathBuf,
    /// The directory to write [default: `out` in the configuration]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The container image: a .sif file, or an osdf:///, docker:// or oras:// address [default: `dag.image`]
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// ospool, chtc or pool, or a file of submit commands that every job gets [default: `dag.site`]
    #[arg(long, value_name = "SITE")]
    pub site: Option<PathBuf>,
    /// What `poolcast parse` wrote: the DAG begins there, and needs no logs [default: `dag.events`]
    #[arg(long, value_name = "DIR")]
    pub events: Option<PathBuf>,
    /// How many trials a job does, one after another [default: a minute's work at least, as it is measured here]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub trials_per_job: Option<u32>,
    /// Print the DAG and its submit files, and write nothing
    #[arg(long, conflicts_with = "submit")]
    pub dry_run: bool,
    /// Submit the DAG with condor_submit_dag; one that was removed or has failed goes on from there
    #[arg(long)]
    pub submit: bool,
}

/// Arguments of `evaluate`.
#[derive(Debug, Args)]
pub struct EvaluateArgs {
    /// A run, or a directory in which a best one was chosen
    pub run: PathBuf,
    /// A directory that `tensors` wrote
    pub tensors: PathBuf,
    /// The side to score
    #[arg(long, value_enum, default_value = "test")]
    pub side: SplitSide,
    /// The truth of a simulated log: also scores the best that anybody could predict at the hold
    #[arg(long, value_name = "TRUTH")]
    pub truth: Option<PathBuf>,
    /// What to score on: cpu, cuda or cuda:N, or auto for the first CUDA device if there is one
    #[arg(long, value_name = "DEVICE", default_value_t = DeviceName::Cpu)]
    pub device: DeviceName,
    /// Bootstrap resamples behind each interval [default: as the run was configured]
    #[arg(long, value_name = "N")]
    pub resamples: Option<usize>,
    /// Print the scores as JSON
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub shards: ShardArgs,
}

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// A run, or a directory in which a best one was chosen
    pub run: PathBuf,
    /// Held jobs: `123.0`, or `123` for a whole cluster [default: every held job]
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
    /// The event log to read; may be given several times
    #[arg(long = "log", required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The year of the first event, for stamps without a year in a log without a header
    #[arg(long, value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Print the advice as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `predict`.
#[derive(Debug, Args)]
pub struct PredictArgs {
    /// A run, a trial, or a sweep in which a best one was chosen
    pub run: PathBuf,
    /// New rows, as a CSV or Parquet table with the index and the features; for a network a directory that `parse` or
    /// `tensors` wrote
    #[arg(
        value_name = "TABLE",
        required_unless_present = "logs",
        conflicts_with = "logs"
    )]
    pub input: Option<PathBuf>,
    /// For a network: an event log to read; may be given several times
    #[arg(long = "log", value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The year of the first event, for stamps without a year in a log without a header
    #[arg(long, requires = "logs")]
    pub year: Option<i16>,
    /// Of a sweep over tables: the split whose best trial predicts, where there are several
    #[arg(long, value_name = "NAME")]
    pub split: Option<String>,
    /// The file to write: Parquet if its name ends in .parquet, else CSV; - is standard output [default: -]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Replace an earlier file
    #[arg(long)]
    pub overwrite: bool,
    /// Print the rows as JSON
    #[arg(long, conflicts_with = "out")]
    pub json: bool,
}

/// Arguments of `simulate`.
#[derive(Debug, Args)]
pub struct SimulateArgs {
    /// The global event log to write
    #[arg(short, long, value_name = "LOG")]
    pub out: PathBuf,
    /// Where to write what is known of each hold: its cause, and the probability that releasing it ends well
    #[arg(long, value_name = "TRUTH")]
    pub truth: PathBuf,
    /// Jobs to submit
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub jobs: u64,
    /// Days until the log ends [default: as many as make 20000 jobs a day, at least 7]
    #[arg(long, value_name = "D", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub days: Option<u32>,
    /// The first day
    #[arg(long, value_name = "YYYY-MM-DD", default_value = "2026-01-05")]
    pub start: jiff::civil::Date,
    /// The root of every random choice
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Rotate the log whenever it has so many bytes: LOG.1 is the newest generation, the highest number the oldest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1000..))]
    pub rotate_bytes: Option<u64>,
    /// Replace an earlier simulation
    #[arg(long)]
    pub overwrite: bool,
    /// Print the summary as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// The configuration file to resolve
    pub file: Option<PathBuf>,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The directory to write them to; pages of the same names are replaced
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
}
