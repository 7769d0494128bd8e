//! The arguments of `poolcast dag`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `dag`.
#[derive(Debug, Args)]
pub struct DagArgs {
    /// Configuration file
    pub config: PathBuf,
    /// Directory of the DAG [default: `out` in the configuration]
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Container image: a .sif file, or an osdf:///, docker:// or oras:// address [default:
    /// `dag.image` in the configuration]
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Site: ospool, chtc or pool, or a file of submit commands for every job [default: `dag.site`
    /// in the configuration]
    #[arg(long, value_name = "SITE")]
    pub site: Option<PathBuf>,
    /// Directory of event shards that `poolcast parse` wrote; the DAG then needs no logs [default:
    /// `dag.events` in the configuration]
    #[arg(long, value_name = "DIR")]
    pub events: Option<PathBuf>,
    /// Number of trials per job, run one after another [default: enough for at least a minute, as
    /// measured on this machine]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub trials_per_job: Option<u32>,
    /// Print the DAG and its submit files, and write nothing
    #[arg(long, conflicts_with = "submit")]
    pub dry_run: bool,
    /// Submit the DAG with condor_submit_dag; a DAG that was removed or has failed continues where
    /// it stopped
    #[arg(long)]
    pub submit: bool,
}
