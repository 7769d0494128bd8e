//! The arguments of `config`, `completions` and `man`, which describe the program itself.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Arguments of `config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// Configuration file to print with all defaults
    pub file: Option<PathBuf>,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Shell that reads the script
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Directory for the pages; pages of the same names are replaced
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
}
