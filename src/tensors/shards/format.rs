//! The format that all tensor shards share.

use poolcast_base::shard::ArtefactFormat;

/// Format of tensor shards.
pub const TENSORS_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "tensors",
    version: 7,
    rebuild: "poolcast tensors EVENTS -o DIR",
};
