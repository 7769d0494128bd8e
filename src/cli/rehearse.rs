//! The arguments of `poolcast rehearse`.

use std::path::PathBuf;

use clap::Args;

use super::shared_flags::JsonFlag;

/// Arguments of `rehearse`.
#[derive(Debug, Args)]
pub struct RehearseArgs {
    /// Event log to read, or an archive that `collect` writes; repeat the option for further logs
    #[arg(long = "log", value_name = "LOG", required = true)]
    pub logs: Vec<PathBuf>,
    /// Truth file about the holds of the log, as `simulate` writes it: it settles the answers, also
    /// about jobs that nobody released [default: the log settles them, as far as it can]
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Number of models, which learn one after the other through the log; all held jobs are asked
    /// about at three moments of each
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub models: u32,
    /// Year of the first event, for a log without a header whose time stamps have no year
    #[arg(long, value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Configuration file: `advice` and `seed` apply
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory for `answers.jsonl`, which has a line for each answer, and for `rehearsal.json`,
    /// which has the counts
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// The format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}
