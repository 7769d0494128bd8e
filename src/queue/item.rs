//! What there is to do: trials, and trials in a row.

use serde::{Deserialize, Serialize};

/// What is to be done: a trial, and how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct WorkItem {
    /// The number of the trial, from 1.
    pub trial: usize,
    /// The most epochs that the trial may have when it has ended.
    pub budget: usize,
}

impl WorkItem {
    /// The item that the beginning of a file's name says.
    pub(super) fn parse(name: &str) -> Option<WorkItem> {
        let (trial, budget) = name.strip_prefix('t')?.split_once("-e")?;
        Some(WorkItem {
            trial: trial.parse().ok()?,
            budget: budget.parse().ok()?,
        })
    }
}

impl std::fmt::Display for WorkItem {
    /// Writes the item as names of files begin.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "t{:06}-e{:06}", self.trial, self.budget)
    }
}

/// The most trials of a chunk: as many as a chunk's file can name one by one, a bit for each.
pub const MAX_CHUNK_TRIALS: usize = u64::BITS as usize;

/// Trials in a row, with one budget, that a worker takes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TrialChunk {
    /// The first of them.
    pub first: WorkItem,
    /// How many there are, from 1 to [`MAX_CHUNK_TRIALS`].
    pub count: usize,
}

impl TrialChunk {
    /// All of them.
    pub fn items(self) -> impl Iterator<Item = WorkItem> {
        (0..self.count).map(move |at| self.item_at(at))
    }

    /// The item at place `at`, from 0.
    pub(super) fn item_at(self, at: usize) -> WorkItem {
        WorkItem {
            trial: self.first.trial + at,
            ..self.first
        }
    }

    /// The place of `item`, if it is one of them.
    pub(super) fn position_of(self, item: WorkItem) -> Option<usize> {
        let at = item.trial.checked_sub(self.first.trial)?;
        (at < self.count && item.budget == self.first.budget).then_some(at)
    }

    /// The chunk that the first part of a file's name says; `None` for any other text.
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
