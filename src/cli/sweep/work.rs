//! The arguments of the steps that make the folder of a sweep, work in it and tidy it.

use std::path::PathBuf;

use clap::Args;

use crate::shards::ShardArgs;

/// Arguments of `sweep init`.
#[derive(Debug, Args)]
pub struct SweepInitArgs {
    /// Configuration file
    pub config: PathBuf,
    /// Folder to make [default: `out` in the configuration]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace an earlier sweep: all trials run again, but a network whose earlier trial has the same number, settings and samples keeps its model. Without this flag, a configuration with more trials runs only the new ones
    #[arg(long)]
    pub overwrite: bool,
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub choice: SweepChoiceArgs,
}

/// Choices of a sweep of pipelines, fixed once its folder exists.
#[derive(Debug, Clone, Args)]
pub struct SweepChoiceArgs {
    /// Pipelines to try, such as lasso,xgb; a pipeline without a search space in the configuration
    /// gets the default one
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = trimmed_name,
        help_heading = "Pipelines (docs/pipelines.md)"
    )]
    pub pipeline_names: Vec<String>,
    /// Splits of tables to try, such as A1,B2 for train_A1, validate_A1, train_B2 and validate_B2
    #[arg(
        long,
        value_name = "NAMES",
        value_delimiter = ',',
        value_parser = trimmed_name,
        help_heading = "Pipelines (docs/pipelines.md)"
    )]
    pub split_names: Vec<String>,
    /// Validate by cross-validation with K folds; without K, 5 folds
    #[arg(long, value_name = "K", num_args = 0..=1, default_missing_value = "5", value_parser = fold_count)]
    #[arg(help_heading = "Pipelines (docs/pipelines.md)")]
    pub cv: Option<usize>,
    /// Fit on train_NAME and validate on validate_NAME
    #[arg(long, help_heading = "Pipelines (docs/pipelines.md)")]
    pub validate: bool,
}

fn trimmed_name(text: &str) -> Result<String, std::convert::Infallible> {
    Ok(text.trim().to_owned())
}

fn fold_count(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (2..=1000).contains(count));
    count.ok_or_else(|| {
        "expected a number of folds from 2 to 1000, or nothing for 5; omit `--cv` for no folds"
            .to_owned()
    })
}

/// Arguments of `sweep manage`.
#[derive(Debug, Args)]
pub struct SweepManageArgs {
    /// Folder that `sweep init` made; for `sweep run` also a configuration or a W&B sweep file
    pub dir: PathBuf,
    /// Number of best trials whose models are kept, for pipelines per split; the other models are
    /// removed, and can be trained again [default: 1000, or 10 if a split of tables has more trials than that]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
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

/// Arguments of `sweep work`.
#[derive(Debug, Args)]
pub struct SweepWorkArgs {
    /// Folder that `sweep init` made
    pub dir: PathBuf,
    /// Time limit of a trial, in seconds; a trial that takes longer has failed [default: no limit]
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
    /// Folder to make for the sweep of a file [default: `out` in the configuration]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Time limit of a trial, in seconds; a trial that takes longer has failed [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub trial_timeout: Option<u32>,
}

impl SweepRunArgs {
    /// The arguments of `sweep init` that make the folder of the sweep.
    pub fn init(&self) -> SweepInitArgs {
        SweepInitArgs {
            config: self.manage.dir.clone(),
            out: self.out.clone(),
            overwrite: false,
            choice: self.manage.choice.clone(),
        }
    }
}

/// Arguments of `sweep pause`, `sweep resume` and `sweep retry`.
#[derive(Debug, Args)]
pub struct SweepPauseArgs {
    /// Folder that `sweep init` made
    pub dir: PathBuf,
}

/// Arguments of `sweep cleanup`.
#[derive(Debug, Args)]
pub struct SweepCleanupArgs {
    /// Folder that `sweep init` or `dag` made
    pub dir: PathBuf,
    /// Number of best trials whose models are kept; the others can be trained again [default: all]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
    /// Print the planned moves in the directory of a DAG, and move nothing
    #[arg(long, conflicts_with = "keep")]
    pub dry_run: bool,
}
