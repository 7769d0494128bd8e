//! The arguments of `poolcast advise`.

use std::path::PathBuf;

use clap::Args;

use crate::moment::parse_moment_ms;

/// Arguments of `advise`.
#[derive(Debug, Args)]
pub struct AdviseArgs {
    /// The run directory of a model, or the directory of a sweep that has chosen its best
    pub run: PathBuf,
    /// The held jobs: `123.0`, or `123` for a whole cluster [default: every held job]
    #[arg(value_name = "JOB")]
    pub jobs: Vec<String>,
    /// The event log to read; give the option again for each further log
    #[arg(long = "log", required = true, value_name = "LOG")]
    pub logs: Vec<PathBuf>,
    /// The moment of asking: advise on the jobs that were held then, with what was known then; such as 2026-11-21T02:20:00Z (UTC if no zone is named), or seconds since 1970 [default: the end of the log]
    #[arg(long, value_name = "TIME", value_parser = moment_ms)]
    pub at: Option<i64>,
    /// The year of the first event, for a log without a header whose time stamps have no year
    #[arg(long, value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Print the advice as JSON
    #[arg(long)]
    pub json: bool,
}

/// A moment as epoch ms: seconds since 1970, or as [`parse_moment_ms`] reads it.
fn moment_ms(text: &str) -> Result<i64, String> {
    let moment_ms = match text.parse::<i64>() {
        Ok(seconds) => jiff::Timestamp::from_second(seconds)
            .ok()
            .map(jiff::Timestamp::as_millisecond),
        Err(_) => parse_moment_ms(text),
    };
    moment_ms.ok_or_else(|| "write 2026-11-21T02:20:00Z, or seconds since 1970".to_owned())
}
