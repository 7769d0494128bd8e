//! The arguments of `poolcast explain`.

use clap::Args;

use super::shared_flags::JsonFlag;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The hold reason [default: standard input, which may also have the output of `condor_q` with `-hold`,
    /// `-l`, `-json` or `-af HoldReasonCode HoldReasonSubCode HoldReason`, perhaps counted by `sort | uniq -c`]
    #[arg(value_name = "REASON")]
    pub reason: Option<String>,
    /// Hold code, for a reason that says little
    #[arg(long, value_name = "N")]
    pub code: Option<i32>,
    /// Hold subcode
    #[arg(long, value_name = "N", requires = "code", allow_hyphen_values = true)]
    pub subcode: Option<i32>,
    /// The format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}
