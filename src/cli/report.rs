//! The arguments of `poolcast report`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Directory of a run, a sweep or a DAG [default: the one in the current directory, or the `out` of a configuration
    /// file there]
    pub dir: Option<PathBuf>,
    /// File for the page [default: report.html in the directory]
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Rewrite the page while trials run; an open page reloads itself and keeps its scroll position
    #[arg(long)]
    pub watch: bool,
    /// Omit names, paths, hosts, job ids, commands and texts of logs
    #[arg(long)]
    pub anonymous: bool,
    /// Compare an earlier report with the results of now, and write no page: what is held now and was not, what was and
    /// is not, and which answers have changed. FILE is the `report.json` of a run, or what `poolcast advise --json` printed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "watch", "anonymous"])]
    pub diff: Option<PathBuf>,
    /// Print the report as JSON, and write no page
    #[arg(long, conflicts_with_all = ["out", "watch"])]
    pub json: bool,
}
