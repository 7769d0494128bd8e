//! The arguments of `poolcast provision trace`.

use std::path::PathBuf;

use clap::Args;

use crate::shared_flags::{JsonFlag, OverwriteFlag};

/// Arguments of `provision trace`.
#[derive(Debug, Args)]
pub struct ProvisionTraceArgs {
    /// Files, plain or compressed with gzip, xz or zstd. Exports may overlap: for each run of a
    /// job, the most complete row is used
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Directory to write
    #[arg(short, long, value_name = "TRACE")]
    pub out: PathBuf,
    /// Zone of the cluster, such as America/Chicago; needed for stamps of local time
    #[arg(long, value_name = "ZONE")]
    pub tz: Option<String>,
    /// Number of processors per node, for the Standard Workload Format [default: the number in its
    /// header, else 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub procs_per_node: Option<u32>,
    /// Also print statistics of the cluster: sizes, limits, run times and waits of its jobs
    #[arg(long)]
    pub stats: bool,
    /// Treatment of an earlier result.
    #[command(flatten)]
    pub earlier: OverwriteFlag,
    /// Format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}
