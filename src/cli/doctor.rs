//! The arguments of `poolcast doctor`.

use clap::Args;

use super::advise::moment_ms;
use super::shared_flags::JsonFlag;

/// Arguments of `doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    #[expect(
        missing_docs,
        reason = "its own documentation would become that of the verb"
    )]
    pub output: JsonFlag,
    /// Current time, for tests
    #[arg(long, value_name = "TIME", value_parser = moment_ms, hide = true)]
    pub now: Option<i64>,
}
