//! The arguments of the steps that make the folder of a sweep, work in it and tidy it.

use std::path::PathBuf;

use clap::Args;

use crate::cli::shards::ShardArgs;

/// Arguments of `sweep init`.
#[derive(Debug, Args)]
pub struct SweepInitArgs {
    /// The configuration file
    pub config: PathBuf,
    /// The folder to make [default: `out` in the configuration]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace an earlier sweep; its trials are kept where they would be the same
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
    /// The pipelines to try, such as lasso,xgb; a pipeline without a search space in the configuration gets the default one
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
    /// Validate by cross-validation with K folds; without K, 5 folds
    #[arg(long, value_name = "K", num_args = 0..=1, default_missing_value = "5", value_parser = fold_count)]
    #[arg(help_heading = "Pipelines (docs/pipelines.md)")]
    pub cv: Option<usize>,
    /// Fit on train_NAME and validate on validate_NAME
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
    /// Keep the models of the K best trials, for pipelines those of each split; the other models are removed, and can be made again
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

/// Arguments of `sweep work`.
#[derive(Debug, Args)]
pub struct SweepWorkArgs {
    /// The folder that `sweep init` made
    pub dir: PathBuf,
    /// The time limit of a trial, in seconds; a trial that takes longer has failed [default: no limit]
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
    /// The time limit of a trial, in seconds; a trial that takes longer has failed [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub trial_timeout: Option<u32>,
}

/// Arguments of `sweep pause` and `sweep resume`.
#[derive(Debug, Args)]
pub struct SweepPauseArgs {
    /// The folder that `sweep init` made
    pub dir: PathBuf,
}

/// Arguments of `sweep cleanup`.
#[derive(Debug, Args)]
pub struct SweepCleanupArgs {
    /// The folder that `sweep init` or `dag` made
    pub dir: PathBuf,
    /// Keep only the models of the K best trials; the others can be trained again [default: all]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep: Option<u32>,
    /// Only print what would be moved in the directory of a DAG
    #[arg(long, conflicts_with = "keep")]
    pub dry_run: bool,
}
