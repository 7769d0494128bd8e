//! What a directory of tensors says of itself in its manifest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::hold_cycles::{HoldOutcome, LeftOutReason};
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
    pub left_out: BTreeMap<LeftOutReason, LeftOutCycles>,
    /// The samples of each side.
    pub splits: BTreeMap<SplitSide, SideSummary>,
}

/// Hold cycles that are no sample, for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LeftOutCycles {
    /// How many.
    pub cycles: usize,
    /// Those whose outcome is known all the same.
    pub labelled: usize,
    /// Those of them with label 1.
    pub successes: usize,
}

impl LeftOutCycles {
    pub(super) fn add(&mut self, outcome: HoldOutcome) {
        self.cycles += 1;
        self.labelled += usize::from(matches!(outcome, HoldOutcome::Label(_)));
        self.successes += usize::from(outcome == HoldOutcome::Label(true));
    }

    pub(super) fn add_all(&mut self, others: LeftOutCycles) {
        self.cycles += others.cycles;
        self.labelled += others.labelled;
        self.successes += others.successes;
    }
}

/// The samples of one side.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SideSummary {
    /// How many.
    pub samples: usize,
    /// How many with label 1.
    pub successes: usize,
    /// The standard error of their share, which clusters of one fate make larger; none for fewer
    /// than two clusters.
    pub share_error: Option<f64>,
    /// The first moment of asking, epoch ms.
    pub from_ms: i64,
    /// The last one, epoch ms.
    pub to_ms: i64,
    /// The side's shards.
    pub shards: Vec<ListedTensorShard>,
}

impl SideSummary {
    /// The share of samples with label 1; 0 of 0 is 0.
    pub fn success_share(&self) -> f64 {
        self.successes as f64 / self.samples.max(1) as f64
    }
}

/// A shard of one side.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListedTensorShard {
    /// Its file.
    pub file: String,
    /// The digest of that file, a [`poolcast_base::manifest::Checksum`].
    pub xxh3: String,
}
