//! The arguments of `poolcast rehearse`.

use std::path::PathBuf;

use clap::Args;
use jiff::{Span, SpanRelativeTo};

use super::shared_flags::JsonFlag;

/// Arguments of `rehearse`.
#[derive(Debug, Args)]
pub struct RehearseArgs {
    /// Event log to read, or an archive that `collect` writes; repeat the option for further logs
    #[arg(long = "log", value_name = "LOG", required = true)]
    pub logs: Vec<PathBuf>,
    /// Truth file about the holds of the log, as `simulate` writes it: it settles the answers, also
    /// about jobs that nobody released [default: the log settles them where it can]
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,
    /// Number of models, which learn one after the other through the log; all held jobs are asked
    /// about at three moments of each
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub models: u32,
    /// Time between two models, such as 1d or 6h, instead of a number of models
    #[arg(long, value_name = "TIME", value_parser = interval_ms, conflicts_with = "models")]
    pub learn_every: Option<i64>,
    /// Time between two moments at which the latest model is asked about all held jobs [default: a
    /// third of `--learn-every`]
    #[arg(long, value_name = "TIME", value_parser = interval_ms, requires = "learn_every")]
    pub ask_every: Option<i64>,
    /// Year of the first event, for a log without a header whose time stamps have no year
    #[arg(long, value_parser = clap::value_parser!(i16).range(1970..=2100))]
    pub year: Option<i16>,
    /// Configuration file: `advice` and `seed` apply
    #[arg(short, long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory for `answers.jsonl`, which has a line for each answer, and for `rehearsal.json`,
    /// which has the counts; a call that was stopped goes on from there
    #[arg(short, long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Replace an earlier rehearsal in the directory
    #[arg(long, requires = "out")]
    pub overwrite: bool,
    /// The format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}

/// Parses a time such as `1d` or `6h`, in ms. A day has 24 hours.
fn interval_ms(text: &str) -> Result<i64, String> {
    let span: Span = text
        .parse()
        .map_err(|_| "not a time such as 1d, 6h or 30m".to_owned())?;
    let duration = span.to_duration(SpanRelativeTo::days_are_24_hours());
    match duration.map(|duration| duration.as_millis()) {
        Ok(ms @ 1..) => i64::try_from(ms).map_err(|_| "too long".to_owned()),
        Ok(_) => Err("not longer than 0".to_owned()),
        Err(_) => Err("a month or a year has no fixed length".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_times_of_a_fixed_length() {
        assert_eq!(interval_ms("1d"), Ok(86_400_000));
        assert_eq!(interval_ms("1h 30m"), Ok(5_400_000));
        for bad in ["", "6", "0s", "-1h", "1mo", "99999y", "nightly"] {
            assert!(interval_ms(bad).is_err(), "{bad}");
        }
    }
}
