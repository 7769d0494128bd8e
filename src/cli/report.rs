//! The arguments of `poolcast report`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// The directory of a run, a sweep or a DAG
    pub dir: PathBuf,
    /// The file for the page [default: report.html in the directory]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write the page anew while trials run; an open page loads itself again and keeps its place
    #[arg(long)]
    pub watch: bool,
    /// Leave out names, paths, hosts, job ids, commands and words of logs
    #[arg(long)]
    pub anonymous: bool,
    /// Print the report as JSON, and write no page
    #[arg(long, conflicts_with_all = ["out", "watch"])]
    pub json: bool,
}
