//! What a directory of tensors says of itself in its manifest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::hold_cycles::LeftOutReason;
use super::settings::TensorSettings;
use super::split_side::SplitSide;

/// What a directory of tensors says of itself in its manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TensorSummary {
    /// How the samples were made.
    #[serde(flatten)]
    pub settings: TensorSettings,
    /// Event types, with the place for unknown ones.
    pub e: usize,
    /// Hold cycles in the log.
    pub cycles_total: usize,
    /// Cycles that are no sample, by reason.
    pub left_out: BTreeMap<LeftOutReason, usize>,
    /// The samples of each side.
    pub splits: BTreeMap<SplitSide, SideSummary>,
}

/// The samples of one side.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SideSummary {
    /// How many.
    pub samples: usize,
    /// How many with label 1.
    pub successes: usize,
    /// The first moment of asking, epoch ms.
    pub from_ms: i64,
    /// The last one, epoch ms.
    pub to_ms: i64,
    /// The side's shards.
    pub shards: Vec<ListedTensorShard>,
}

/// A shard of one side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListedTensorShard {
    /// Its file.
    pub file: String,
    /// The digest of that file, a [`crate::manifest::Checksum`].
    pub xxh3: String,
}
