//! The arguments of all verbs that read shards.

use clap::Args;

/// How the shards of events, tensors and tables are opened.
#[derive(Debug, Args)]
pub struct ShardArgs {
    /// Do not compare shards with the digests in their manifests, which reads each of them once
    #[arg(long)]
    pub no_verify: bool,
}
