//! The arguments of `poolcast explain`.

use clap::Args;

use super::shared_flags::JsonFlag;

/// Arguments of `explain`.
#[derive(Debug, Args)]
pub struct ExplainArgs {
    /// The hold reason, as the log or `condor_q -hold` has it [default: standard input]
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
