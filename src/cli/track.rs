//! The arguments of `poolcast track`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

/// Arguments of `track`.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("tracker").required(true).args(["to", "export"])))]
pub struct TrackArgs {
    /// Directory of a run, a sweep or a DAG [default: the one in the current directory, or the `out` of a configuration
    /// file there]
    pub dir: Option<PathBuf>,
    /// Trackers to send to
    #[arg(long, value_name = "TRACKER", value_delimiter = ',')]
    pub to: Vec<TrackerName>,
    /// Address of the server, instead of the one in the environment or the configuration; needs a
    /// single tracker
    #[arg(long, value_name = "URL", requires = "to")]
    pub server: Option<String>,
    /// Keep sending new results until all runs have ended
    #[arg(long)]
    pub watch: bool,
    /// Time limit in seconds, after which the rest is not sent [default: once a server has not
    /// answered for a minute; never with --watch]
    #[arg(long = "for", value_name = "SECONDS")]
    pub seconds: Option<u64>,
    /// Print everything that would leave this machine, and send nothing
    #[arg(long, conflicts_with_all = ["watch", "seconds", "json"])]
    pub dry_run: bool,
    /// Print what was sent as JSON
    #[arg(long)]
    pub json: bool,
    /// Write the files of a tracker, without a network
    #[arg(long, value_name = "TRACKER", requires = "out", conflicts_with_all = ["to", "server", "watch", "seconds", "dry_run", "json"])]
    pub export: Option<ExportName>,
    /// Directory for the exported files
    #[arg(short, long, value_name = "OUT", requires = "export")]
    pub out: Option<PathBuf>,
}

/// A tracker that runs are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TrackerName {
    /// Weights & Biases
    Wandb,
    /// An MLflow tracking server
    Mlflow,
}

/// A tracker whose files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportName {
    /// W&B's offline files, for `wandb sync` and `wandb leet`
    Wandb,
    /// TensorBoard's event files
    Tensorboard,
}
