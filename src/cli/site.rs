//! The arguments of `poolcast site`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::shared_flags::{JsonFlag, OverwriteFlag};

/// Arguments of `site`.
#[derive(Debug, Args)]
pub struct SiteArgs {
    /// The step and its arguments.
    #[command(subcommand)]
    pub step: SiteStep,
}

/// The steps of `site`.
#[derive(Debug, Subcommand)]
pub enum SiteStep {
    /// Show the files of a service that learns and advises for all users, and write them
    ///
    /// The service collects the event log every two minutes, learns each night, publishes the model, and advises each minute. Everything is shown first, and is written with --yes, or once you confirm it on a terminal. Existing files are kept, unless --overwrite is given. Nothing is started: the last lines name the commands that do.
    ///
    /// Example: poolcast site init
    /// Example, to look at the files: poolcast site init --yes -o root
    #[command(verbatim_doc_comment)]
    Init(SiteInitArgs),
}

/// Arguments of `site init`.
#[derive(Debug, Args)]
pub struct SiteInitArgs {
    /// Directory below which the files are written
    #[arg(short, long, value_name = "ROOT", default_value = "/")]
    pub out: PathBuf,
    /// Write the files without a question
    #[arg(long)]
    pub yes: bool,
    /// Let the schedd start the service (`SCHEDD_CRON`), as the user of HTCondor, instead of systemd
    #[arg(long)]
    pub schedd_cron: bool,
    /// Path of this program on the access point [default: where it is now]
    #[arg(long, value_name = "PATH")]
    pub program: Option<PathBuf>,
    /// Path of the event log [default: EVENT_LOG of HTCondor's configuration; if that is not
    /// defined, a file defines /var/log/condor/EventLog]
    #[arg(long, value_name = "PATH")]
    pub log: Option<PathBuf>,
    /// The choice to replace existing files.
    #[command(flatten)]
    pub replace: OverwriteFlag,
    /// The format of the output.
    #[command(flatten)]
    pub output: JsonFlag,
}
