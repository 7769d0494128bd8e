//! The work items of a queue: single trials, and chunks of consecutive trials.

use serde::{Deserialize, Serialize};

/// A work item: a trial, and its epoch budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkItem {
    /// The number of the trial, from 1.
    pub trial: usize,
    /// The maximum number of epochs of the trial, including earlier rungs.
    pub budget: usize,
}

impl WorkItem {
    /// Parses the item from the start of a file name.
    pub(super) fn parse(name: &str) -> Option<WorkItem> {
        let (trial, budget) = name.strip_prefix('t')?.split_once("-e")?;
        Some(WorkItem {
            trial: trial.parse().ok()?,
            budget: budget.parse().ok()?,
        })
    }
}

impl std::fmt::Display for WorkItem {
    /// Writes the item in the format of file names.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "t{:06}-e{:06}", self.trial, self.budget)
    }
}

/// Maximum number of trials in a chunk: one bit for each fits into the name of a chunk's file.
pub const MAX_CHUNK_TRIALS: usize = u64::BITS as usize;

/// Consecutive trials with the same budget, which a worker claims together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrialChunk {
    /// The first trial.
    pub first: WorkItem,
    /// Number of trials, from 1 to [`MAX_CHUNK_TRIALS`].
    pub count: usize,
}

impl TrialChunk {
    /// All items of the chunk.
    pub fn items(self) -> impl Iterator<Item = WorkItem> {
        (0..self.count).map(move |at| self.item_at(at))
    }

    /// The item with the index `at`, from 0.
    pub(super) fn item_at(self, at: usize) -> WorkItem {
        WorkItem {
            trial: self.first.trial + at,
            ..self.first
        }
    }

    /// The index of `item`, if the chunk has it.
    pub(super) fn position_of(self, item: WorkItem) -> Option<usize> {
        let at = item.trial.checked_sub(self.first.trial)?;
        (at < self.count && item.budget == self.first.budget).then_some(at)
    }

    /// Parses the chunk from the first part of a file name; `None` for any other text.
    pub(super) fn parse(name: &str) -> Option<TrialChunk> {
        let (first, count) = match name.split_once("-n") {
            Some((first, count)) => (first, count.parse().ok()?),
            None => (name, 1),
        };
        let first = WorkItem::parse(first)?;
        let is_possible =
            (1..=MAX_CHUNK_TRIALS).contains(&count) && first.trial.checked_add(count).is_some();
        is_possible.then_some(TrialChunk { first, count })
    }
}

impl From<WorkItem> for TrialChunk {
    fn from(first: WorkItem) -> TrialChunk {
        TrialChunk { first, count: 1 }
    }
}
