//! The arguments of `poolcast provision chain` and `link`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser as _};

use super::chain_options::ChainOptions;
use poolcast_slurm::chain::ChainTiming;

/// Arguments of `provision chain`.
#[derive(Debug, Args)]
pub struct ProvisionChainArgs {
    /// Script to submit; its `#SBATCH` lines contain its requests
    pub script: PathBuf,
    /// Arguments of the script
    #[arg(value_name = "ARG", last = true)]
    pub script_args: Vec<String>,
    /// Number of jobs in the chain; the most, with `--done`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub links: u32,
    /// When to submit the next job [default: `forecast` where there can be one, else `dependency`]
    #[arg(long, value_name = "TIME", value_enum)]
    pub when: Option<ChainTiming>,
    /// The end of the chain, its state and its forecasts.
    #[command(flatten)]
    pub options: ChainOptions,
    /// Interval between submit decisions, in seconds
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub every: u32,
    /// Submit nothing: print the state of the chain, the next command, and whether Slurm would
    /// accept it
    #[arg(long)]
    pub dry_run: bool,
    /// Print the links and their results as JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `provision link`.
#[derive(Debug, Args)]
pub struct ProvisionLinkArgs {
    /// Maximum number of jobs in the chain
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub links: u32,
    /// When to submit the next job: `dependency` for at once, with a dependency on the end of this one [default: as a
    /// forecast of its wait says, where there can be one]
    #[arg(long, value_name = "TIME", value_parser = PossibleValuesParser::new(["dependency"]).map(|_| ChainTiming::Dependency))]
    pub when: Option<ChainTiming>,
    /// The end of the chain, its state and its forecasts.
    #[command(flatten)]
    pub options: ChainOptions,
    /// Interval between submit decisions, in seconds
    #[arg(long, value_name = "S", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub every: u32,
    /// Say that the script ends with this exit code. A script with a trap on EXIT of its own calls this there
    #[arg(long, value_name = "CODE")]
    pub ended: Option<i32>,
    /// Submit the next job, and then end
    #[arg(long, hide = true, conflicts_with = "ended")]
    pub watch: bool,
    /// Script of the job and its arguments [default: as Slurm and the shell of the script show]
    #[arg(hide = true, last = true, requires = "watch")]
    pub command: Vec<String>,
}
