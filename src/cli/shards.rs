//! The arguments that all verbs share which read shards.

use clap::Args;

/// Options for opening the shards of events, tensors and tables.
#[derive(Debug, Args)]
pub struct ShardArgs {
    /// Skip the check of shards against the digests in their manifests, which reads every shard
    /// once
    #[arg(long)]
    pub no_verify: bool,
}
