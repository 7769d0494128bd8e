//! The command line: only types, one file per verb. Their doc comments are the help text.

mod advise;
mod collect;
mod dag;
mod doctor;
mod evaluate;
mod explain;
mod manual;
mod parameter_flags;
mod parse;
mod policy;
mod predict;
mod program;
mod provision;
mod publish;
mod rehearse;
mod report;
mod run;
mod shards;
mod share;
mod shared_flags;
mod simulate;
mod site;
mod sweep;
mod tensors;
mod track;
mod train;

use clap::{ArgAction, Parser, Subcommand};

pub use advise::{AdviceFilterArgs, AdviseArgs, HoldCodeFilter, JobOrder};
pub use collect::CollectArgs;
pub use dag::DagArgs;
pub use doctor::DoctorArgs;
pub use evaluate::EvaluateArgs;
pub use explain::ExplainArgs;
pub use manual::{CompletionsArgs, ConfigArgs, ManArgs};
pub use parameter_flags::ParameterFlags;
pub use parse::ParseArgs;
pub use policy::PolicyArgs;
pub use predict::PredictArgs;
pub use program::program;
pub use provision::{
    ChainOptions, ClusterArgs, ProvisionAdviseArgs, ProvisionArgs, ProvisionChainArgs,
    ProvisionCheckArgs, ProvisionLinkArgs, ProvisionReplayArgs, ProvisionSamplesArgs,
    ProvisionScoreArgs, ProvisionStartArgs, ProvisionStep, ProvisionTraceArgs, ProvisionTrainArgs,
    ProvisionValidateArgs, QueueArgs, WindowArgs,
};
pub use publish::PublishArgs;
pub use rehearse::RehearseArgs;
pub use report::ReportArgs;
pub use run::RunArgs;
pub use shards::ShardArgs;
pub use share::ShareArgs;
pub use shared_flags::{JsonFlag, OverwriteFlag};
pub use simulate::SimulateArgs;
pub use site::{SiteArgs, SiteInitArgs, SiteStep};
pub use sweep::{
    SweepArgs, SweepChoiceArgs, SweepCleanupArgs, SweepConcludeArgs, SweepEvaluateArgs,
    SweepInitArgs, SweepListArgs, SweepManageArgs, SweepPauseArgs, SweepRunArgs, SweepShowArgs,
    SweepStatusArgs, SweepStep, SweepTrialsArgs, SweepWorkArgs, TrialsArg,
};
pub use tensors::TensorsArgs;
pub use track::{ExportName, TrackArgs, TrackerName};
pub use train::TrainArgs;

/// Advise what to do with held HTCondor jobs, as learned from an access point's event logs
#[derive(Debug, Parser)]
#[command(
    name = "poolcast",
    version,
    bin_name = "poolcast",
    propagate_version = true,
    max_term_width = program::HELP_WIDTH
)]
pub struct Cli {
    /// Print detailed progress on stderr; -vv adds debugging messages [default: POOLCAST_LOG, else
    /// notes and warnings]
    #[arg(short, long, global = true, display_order = 901, action = ArgAction::Count, conflicts_with = "quiet")]
    pub verbose: u8,
    /// Print only errors on stderr, and no progress bars
    #[arg(short, long, global = true, display_order = 902)]
    pub quiet: bool,
    /// Number of threads [default: RAYON_NUM_THREADS, else OMP_NUM_THREADS, else the cores of this
    /// slot or machine]
    #[arg(long, global = true, display_order = 900, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// The verb and its arguments.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs, in the order of the data flow.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Learn from event logs what becomes of held jobs, and advise on the jobs that are still held
    ///
    /// Learn parses the logs, learns from the outcomes of earlier holds, and rehearses its answers: at moments through the log it answers by what was known then, and what happened next shows how right that was. `poolcast advise` answers by the results. Call it again when the log has grown: it learns from the new events and reports the changes.
    ///
    /// Example: poolcast learn --log /var/log/condor/EventLog
    /// Example, with the logs of your own jobs: poolcast learn --log proj/*.log
    #[command(verbatim_doc_comment)]
    Learn(RunArgs),
    /// Run every stage on this machine, from event logs to advice on the jobs that are still held
    ///
    /// The stages are parse, tensors, a sweep of trials, the evaluation of the best trial, and what `poolcast learn` does. Finished stages are kept, and an interrupted run continues where it stopped.
    ///
    /// A log is enough, or the logs of your own jobs: without a configuration file, run uses the search of config/quickstart.yaml, with time frames that fit the log. Call it again when the log has grown: it learns from the new events and reports the changes.
    ///
    /// Example: poolcast run --log /var/log/condor/EventLog
    /// Example, with the logs of your own jobs: poolcast run --log proj/*.log
    #[command(verbatim_doc_comment)]
    Run(RunArgs),
    /// Collect a live, rotating global event log into an archive that only grows
    ///
    /// Each call adds the events that are new since the last call, even if the log was rotated in between. No event is stored twice, even after a killed call. Events that were rotated away before a call are reported.
    ///
    /// Example: poolcast collect /var/log/condor/EventLog -o archive
    #[command(verbatim_doc_comment)]
    Collect(CollectArgs),
    /// Parse event logs into event shards
    ///
    /// Example: poolcast parse /var/log/condor/EventLog -o events
    #[command(verbatim_doc_comment)]
    Parse(ParseArgs),
    /// Make train, validation and test tensors from event shards
    ///
    /// Options that are not given take their values from the configuration file, or else from the defaults that `poolcast config` prints.
    ///
    /// Example: poolcast tensors events -o tensors --j 20 --m 20 --timeframe-len 60
    #[command(verbatim_doc_comment)]
    Tensors(TensorsArgs),
    /// Train a network on tensors
    ///
    /// The run directory gets the model, its metrics, its history and its checkpoint. Options that are not given take their values from the configuration file, or else from the defaults that `poolcast config` prints.
    ///
    /// Exit codes: 0 trained; 85 stopped with a checkpoint, run the command again (with --self-checkpoint); 1 and 2 errors.
    ///
    /// Example: poolcast train tensors -o run --hidden-size 32
    #[command(verbatim_doc_comment)]
    Train(TrainArgs),
    /// Search for the best hyper-parameters, with any number of workers that share a folder
    ///
    /// A sweep needs no server: any host that sees the folder can work on its trials at any time. Managers and workers may be killed and restarted at any time.
    ///
    /// Example: poolcast sweep init config/quickstart.yaml -o out/sweep
    #[command(verbatim_doc_comment)]
    Sweep(SweepArgs),
    /// Write a sweep as a DAG of HTCondor jobs, with their submit files
    ///
    /// Every step runs as a job in one container image. A trial that fails does not stop the others. `poolcast sweep status`, `best` and `cleanup` also work on the directory of a DAG.
    ///
    /// Example: poolcast dag config/quickstart.yaml -o out/dag --image poolcast.sif --dry-run
    #[command(verbatim_doc_comment)]
    Dag(DagArgs),
    /// Score a model on tensors, beside baselines
    ///
    /// Example: poolcast evaluate run tensors
    #[command(verbatim_doc_comment)]
    Evaluate(EvaluateArgs),
    /// Advise what to do with held jobs, and say why
    ///
    /// Prints a page with a row for each thing that failed, such as a server or a full disk, or with the causes and their commands if they are few. It uses what there is: logs, the queue, and a run. Without a run, rules and the outcomes in the logs answer.
    ///
    /// Exit codes: 0 done, also if a named job has ended; for one held job, or with --exit-code: 0 release; 10 fix first; 20 remove; 30 wait; 40 no advice, or different advice for several jobs; 1 and 2 errors; 130 interrupted, with --watch.
    ///
    /// Example: poolcast advise *.log
    /// Example, with a model: poolcast advise out/quickstart --log EventLog --queue now
    /// Example, about one of your jobs: poolcast advise 1086.0 --log mine
    /// Example, until no job is held: poolcast advise --watch=60
    /// Example, about jobs that wait for a machine: poolcast advise --idle
    /// Example, as the SCRIPT HOLD of a node: poolcast advise held-jobs/out --dag NODE
    #[command(verbatim_doc_comment)]
    Advise(AdviseArgs),
    /// Explain a hold reason: what it means, what to do, and what can be looked at
    ///
    /// Reads the text of any part of HTCondor, of transfer plug-ins and of sites. It needs no job, no log and no queue.
    ///
    /// Example: poolcast explain "Error from slot1@ep: Job has gone over memory limit of 2048 megabytes."
    /// Example, with the code: poolcast explain --code 12 --subcode 2 "Reason unspecified"
    /// Example, of a job in the queue: condor_q -af HoldReason 1086.0 | poolcast explain
    #[command(verbatim_doc_comment)]
    Explain(ExplainArgs),
    /// Learn which held jobs HTCondor should release automatically, as an expression for `periodic_release`
    ///
    /// The expression names a hold code only if releases after holds with it have paid, and adds a wait and a limit on the holds of a job. The policy is learned on the earlier part of the log and judged on the later part, beside other policies.
    ///
    /// Exit codes: 0 done, even if no hold code pays; 1 and 2 errors.
    ///
    /// Example: poolcast policy --log /var/log/condor/EventLog
    #[command(verbatim_doc_comment)]
    Policy(PolicyArgs),
    /// Replay a log as if this program had been used, and count how its answers turned out
    ///
    /// At moments through the log, it learns from what was known then, asks about every job that is held, and settles each answer by what happened, as of the second of the question. The table has, for each kind of answer, the share of right ones, and the successes kept and the runs wasted, beside other policies.
    ///
    /// Example: poolcast rehearse --log /var/log/condor/EventLog
    #[command(verbatim_doc_comment)]
    Rehearse(RehearseArgs),
    /// Write what this access point can teach others: the rows that its log teaches, as numbers alone
    ///
    /// A row has the columns of one moment of a hold, and whether a release succeeds: no names, no hashes of names, no times. Rows about a hold code are in it only if at least three owners are behind them, and at least three are behind each combination of numbers: rows get the means of those that are most like them. Without --out, it prints what it would write, and writes nothing.
    ///
    /// Example: poolcast share out/quickstart -o contribution.safetensors
    #[command(verbatim_doc_comment)]
    Share(ShareArgs),
    /// Publish a run's model, so that users who may not read the log can advise with it
    ///
    /// The directory or tar file has what `advise` needs: the model of the answers, their limits, and the settings of advice. It has no events, no names or hashes of jobs, owners, machines or files, and no predictions for single jobs. Everyone may read it. An earlier model there is replaced in one step, if the rehearsal of the run shows that the new one is better than the rules for hold codes alone: else nothing is written. `advise` uses /var/lib/poolcast/model where there is no run, or the directory that `advice.site_model` names.
    ///
    /// Example: poolcast publish out -o /var/lib/poolcast/model
    #[command(verbatim_doc_comment)]
    Publish(PublishArgs),
    /// Examine what advice needs here: event log, queue, history and model, and what to type if it is missing
    ///
    /// Nothing is changed. Each line is good, bad, or a plain fact.
    ///
    /// Exit codes: 0 all is good; 1 something is to be done; 2 errors.
    ///
    /// Example: poolcast doctor
    #[command(verbatim_doc_comment)]
    Doctor(DoctorArgs),
    /// Set up a service that learns once and advises all users of an access point
    ///
    /// Example: poolcast site init
    #[command(verbatim_doc_comment)]
    Site(SiteArgs),
    /// Write one HTML page on a run, a sweep or a DAG: advice on held jobs, the best model, every trial
    ///
    /// The page needs no network and no server: it opens from a file, and can be mailed. It has every number of its plots as a table. `poolcast run` writes one as report.html.
    ///
    /// Example: poolcast report out/quickstart -o report.html
    #[command(verbatim_doc_comment)]
    Report(ReportArgs),
    /// Send a run, a sweep or a DAG to an experiment tracker, or write its files
    ///
    /// Runs can be sent while they are running, when they have ended, and after a cleanup, from any machine that sees the directory, as often as you like: the server gets only what it lacks. The key is in WANDB_API_KEY or in netrc; WANDB_BASE_URL, WANDB_ENTITY and WANDB_PROJECT name the destination. For MLflow, the variables of its own client apply: MLFLOW_TRACKING_URI, MLFLOW_TRACKING_USERNAME with MLFLOW_TRACKING_PASSWORD or MLFLOW_TRACKING_TOKEN, and MLFLOW_EXPERIMENT_NAME.
    ///
    /// Exit codes: 0 sent; 1 the server did not answer in time, run the command again; 2 the server rejects the data, or other errors.
    ///
    /// Example: poolcast track out/quickstart --to wandb
    /// Example, without a network: poolcast track out/quickstart --export tensorboard -o out/events
    #[command(verbatim_doc_comment)]
    Track(TrackArgs),
    /// Predict the classes of new rows with a pipeline, or the outcomes of holds with a network
    ///
    /// A pipeline predicts the probability of each class for every row of a CSV or Parquet table. It finds its columns by name, and reads no target column.
    ///
    /// A network predicts the probability that a job succeeds if it is released unchanged, for every hold in a log, in events or in tensors.
    ///
    /// Example: poolcast predict out/table new.csv --split A1 -o predictions.csv
    #[command(verbatim_doc_comment)]
    Predict(PredictArgs),
    /// Simulate the event log of a pool, with the true probability of success of every hold
    ///
    /// Example: poolcast simulate -o EventLog --truth truth.safetensors --jobs 20000
    #[command(verbatim_doc_comment)]
    Simulate(SimulateArgs),
    /// Learn from a Slurm cluster's accounting when to submit the next job of a chain
    ///
    /// Under a wall time limit, a long training is a chain of jobs. While one job runs, the next waits in the queue, and should start when the first ends.
    ///
    /// Example: poolcast provision trace jobs.txt -o trace --tz America/Chicago
    #[command(verbatim_doc_comment)]
    Provision(ProvisionArgs),
    /// Print the configuration: every key with its default, or with its value from a file and the environment
    ///
    /// Example: poolcast config config/quickstart.yaml
    #[command(verbatim_doc_comment)]
    Config(ConfigArgs),
    /// Print a shell script that completes the commands and options of `poolcast`
    ///
    /// Example: poolcast completions bash > ~/.local/share/bash-completion/completions/poolcast
    #[command(verbatim_doc_comment)]
    Completions(CompletionsArgs),
    /// Write the manual pages, one for each command
    ///
    /// Example: poolcast man -o ~/.local/share/man/man1
    #[command(verbatim_doc_comment)]
    Man(ManArgs),
    /// Look at the paths on standard input; `advise` runs this, and gives it up if a mount hangs
    #[command(hide = true)]
    Look {
        /// User with whose rights root looks
        user: Option<String>,
    },
}
