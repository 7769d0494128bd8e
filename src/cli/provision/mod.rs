//! The steps of `poolcast provision`.

mod trace;

use clap::{Args, Subcommand};

pub use trace::ProvisionTraceArgs;

/// Arguments of `provision`.
#[derive(Debug, Args)]
pub struct ProvisionArgs {
    /// The step and its arguments.
    #[command(subcommand)]
    pub step: ProvisionStep,
}

/// The steps of provisioning.
#[derive(Debug, Subcommand)]
pub enum ProvisionStep {
    /// Read what a cluster's accounting says of its jobs
    ///
    /// The files are exports of `sacct` (`--parsable2` with any columns in any order, or `--json`), the Standard Workload Format of the Parallel Workloads Archive, or aligned tables of `sacct`. The form is recognised by the content. Rows that cannot be used are counted by reason. Users are stored as salted hashes, and names of jobs not at all.
    ///
    /// Example: poolcast provision trace jobs.txt -o trace --tz America/Chicago --stats
    #[command(verbatim_doc_comment)]
    Trace(ProvisionTraceArgs),
}
