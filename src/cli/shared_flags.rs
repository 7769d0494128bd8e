//! Flags that mean the same in several verbs.

use clap::Args;

/// The choice of JSON for the output.
#[derive(Debug, Args)]
pub struct JsonFlag {
    /// Print the result as JSON
    #[arg(long)]
    pub json: bool,
}

/// The choice to write over a finished result.
#[derive(Debug, Args)]
pub struct OverwriteFlag {
    /// Replace an earlier result
    #[arg(long)]
    pub overwrite: bool,
}
