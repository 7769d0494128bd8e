//! What every shard of tensors has in common.

use poolcast_base::shard::ArtefactFormat;

/// Tensor shards.
pub const TENSORS_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "tensors",
    version: 6,
    rebuild: "poolcast tensors EVENTS -o DIR",
};
