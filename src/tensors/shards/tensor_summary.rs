//! The manifest of a directory of tensors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::settings::TensorSettings;
use crate::cycles::Split;
use crate::cycles::{ExclusionReason, HoldOutcome};
use poolcast_events::HoldSource;

/// The content of the manifest of a directory of tensors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TensorSummary {
    /// The settings of the samples.
    #[serde(flatten)]
    pub settings: TensorSettings,
    /// Number of event types, including the one for unknown events.
    pub e: usize,
    /// What the holds come from.
    #[serde(default, skip_serializing_if = "HoldSource::is_log")]
    pub source: HoldSource,
    /// Hold cycles in the log.
    pub cycles_total: usize,
    /// Cycles that are not samples, by reason.
    pub left_out: BTreeMap<ExclusionReason, ExcludedCycles>,
    /// The samples of each split.
    pub splits: BTreeMap<Split, SplitSummary>,
}

/// Hold cycles that one reason leaves out of the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExcludedCycles {
    /// Number of cycles.
    pub cycles: usize,
    /// Cycles with a known outcome.
    pub labelled: usize,
    /// Labelled cycles with label 1.
    pub successes: usize,
}

impl ExcludedCycles {
    pub(crate) fn add(&mut self, outcome: HoldOutcome) {
        self.cycles += 1;
        self.labelled += usize::from(matches!(outcome, HoldOutcome::Label(_)));
        self.successes += usize::from(outcome == HoldOutcome::Label(true));
    }

    pub(crate) fn add_all(&mut self, others: ExcludedCycles) {
        self.cycles += others.cycles;
        self.labelled += others.labelled;
        self.successes += others.successes;
    }
}

/// The samples of one split.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct SplitSummary {
    /// Number of samples.
    pub samples: usize,
    /// Number of samples with label 1.
    pub successes: usize,
    /// Standard error of the success rate. It is larger if the jobs of a cluster have the same
    /// outcome; `None` for fewer than two clusters.
    pub share_error: Option<f64>,
    /// The first prediction time, in epoch ms.
    pub from_ms: i64,
    /// The last prediction time, in epoch ms.
    pub to_ms: i64,
    /// The shards of the split.
    pub shards: Vec<ListedTensorShard>,
}

impl SplitSummary {
    /// Returns the share of samples with label 1; 0 without samples.
    pub fn success_share(&self) -> f64 {
        self.successes as f64 / self.samples.max(1) as f64
    }
}

/// A shard of one split.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ListedTensorShard {
    /// Name of the file.
    pub file: String,
    /// Digest of the file.
    pub xxh3: String,
}
