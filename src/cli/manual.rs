//! The arguments of `config`, `completions` and `man`, which say what the program can do.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

/// Arguments of `config`.
#[derive(Debug, Args)]
pub struct ConfigArgs {
    /// The configuration file to print with all defaults
    pub file: Option<PathBuf>,
}

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Arguments of `man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// The directory for the pages; pages of the same names are replaced
    #[arg(short, long, value_name = "DIR")]
    pub out: PathBuf,
}
