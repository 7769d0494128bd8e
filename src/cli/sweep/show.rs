//! The arguments of the steps that show the results of a sweep.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `sweep best`, and of other steps that show results of a sweep.
#[derive(Debug, Args)]
pub struct SweepShowArgs {
    /// Folder that `sweep init` or `dag` made [default: the one in the current directory, or the `out` of a
    /// configuration file there]
    pub dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
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
    /// Print the status once and exit, even on a terminal
    #[arg(long)]
    pub once: bool,
    /// Keep printing until all trials have ended, even if stdout is not a terminal: a line at each
    /// change, and one per minute
    #[arg(long, conflicts_with_all = ["once", "json"])]
    pub watch: bool,
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
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    pub csv: bool,
    /// List only the N best trials
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
}

/// Arguments of `sweep evaluate`.
#[derive(Debug, Args)]
pub struct SweepEvaluateArgs {
    /// Folder of a finished sweep
    pub dir: PathBuf,
    /// Directory for the scores [default: the folder of the sweep]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}
