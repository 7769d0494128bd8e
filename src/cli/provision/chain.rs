//! The arguments of `poolcast provision chain`.

use std::path::PathBuf;

use clap::Args;

use super::decision_args::DecisionArgs;

/// Arguments of `provision chain`.
#[derive(Debug, Args)]
pub struct ProvisionChainArgs {
    /// The script to submit; what it asks for stands in its `#SBATCH` lines
    pub script: PathBuf,
    /// What the script is called with
    #[arg(value_name = "ARG", last = true)]
    pub script_args: Vec<String>,
    /// How many jobs the chain is to have
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub links: u32,
    /// The directory that holds what is known of the chain [default: the name of the script with `.chain`]
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// The trace that `provision trace` wrote, from which it is known how long jobs run [default: what `sacct` says of the last 30 days]
    #[arg(long, value_name = "TRACE")]
    pub trace: Option<PathBuf>,
    /// How often it is decided whether to submit, seconds
    #[arg(long, value_name = "S", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub every: u32,
    /// What it is decided by.
    #[command(flatten)]
    pub decision: DecisionArgs,
    /// Submit nothing: say what is known of the chain, what would be typed next, and whether Slurm would take it
    #[arg(long)]
    pub dry_run: bool,
    /// Print what came of the links as JSON
    #[arg(long)]
    pub json: bool,
}
