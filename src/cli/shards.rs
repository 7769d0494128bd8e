//! The arguments of all verbs that read shards.

use clap::Args;

/// How the shards of events, tensors and tables are opened.
#[derive(Debug, Args)]
pub struct ShardArgs {
    /// Skip the comparison of shards with the digests in their manifests, for which every shard is read once
    #[arg(long)]
    pub no_verify: bool,
}
