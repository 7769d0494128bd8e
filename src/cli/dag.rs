//! The arguments of `poolcast dag`.

use std::path::PathBuf;

use clap::Args;

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
