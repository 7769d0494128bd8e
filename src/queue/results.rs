//! Finds the results that count, in journals and chunks: one result for each ended trial.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::{Result, bail};
use serde::de::DeserializeOwned;

use super::chunk_entry::ChunkEntry;
use super::item::WorkItem;
use super::item_store::Queue;
use super::journal::{self, JournalResult, StoredResult};

/// The rank of one of several results of a trial. The result with the highest rank counts.
///
/// Attempts follow each other. Attempts after the acknowledged one begin at a later trial of the
/// chunk, so they have no result of this trial. Attempts of equal rank have equal results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ResultRank {
    /// Number of trials of the chunk that had ended when the attempt began.
    ended_before: usize,
    attempt: u32,
    /// True if the chunk's file names the worker.
    is_named: bool,
}

/// Chunks by their first items, which are ordered by budget, then by trial.
struct ChunkIndex<'a> {
    by_first: BTreeMap<(usize, usize), Vec<&'a ChunkEntry>>,
}

impl<'a> ChunkIndex<'a> {
    fn new(entries: &'a [ChunkEntry]) -> ChunkIndex<'a> {
        let mut by_first: BTreeMap<(usize, usize), Vec<&ChunkEntry>> = BTreeMap::new();
        for entry in entries {
            let WorkItem { trial, budget } = entry.chunk.first;
            by_first.entry((budget, trial)).or_default().push(entry);
        }
        ChunkIndex { by_first }
    }

    /// The chunk that has acknowledged `result`, if there is one.
    fn acknowledged_by<R>(&self, result: &JournalResult<'_, R>) -> Option<&'a ChunkEntry> {
        let WorkItem { trial, budget } = result.item;
        // The chunks of a sweep do not overlap. Only chunks from outside the sweep may.
        let (_, entries) = self.by_first.range(..=(budget, trial)).next_back()?;
        entries.iter().copied().find(|entry| {
            // The file of a chunk with a single trial names the worker that has ended it.
            let may_be_its = entry.state.worker() == Some(result.worker)
                && entry.attempt == result.attempt
                || entry.chunk.count > 1
                || !entry.has_ended();
            entry.has_result(result.item) && may_be_its
        })
    }

    /// Returns true if another chunk has the same first item as `entry`.
    fn has_twin(&self, entry: &ChunkEntry) -> bool {
        let WorkItem { trial, budget } = entry.chunk.first;
        self.by_first
            .get(&(budget, trial))
            .is_some_and(|entries| entries.len() > 1)
    }
}

impl Queue {
    /// Reads the results of all trials that have one: the result of the acknowledged attempt.
    ///
    /// # Errors
    /// Fails if an acknowledged result cannot be read, because the disk has lost it.
    pub fn results<R: DeserializeOwned>(
        &self,
        entries: &[ChunkEntry],
    ) -> Result<HashMap<WorkItem, R>> {
        let found = self.find_results(entries, |result: R| result)?;
        Ok(found
            .into_iter()
            .map(|(item, found)| (item, found.kept))
            .collect())
    }

    /// Like [`Queue::results`], in order. `keep` extracts the part of each result to keep, and
    /// [`super::ResultReader`] reads the whole result.
    ///
    /// # Errors
    /// Fails like [`Queue::results`].
    pub fn find_results<R: DeserializeOwned, T>(
        &self,
        entries: &[ChunkEntry],
        keep: impl Fn(R) -> T,
    ) -> Result<BTreeMap<WorkItem, StoredResult<T>>> {
        let index = ChunkIndex::new(entries);
        let mut best: BTreeMap<WorkItem, (ResultRank, StoredResult<T>)> = BTreeMap::new();
        journal::read_results(
            &self.path("results"),
            |path, why| self.warn_skipped(path, why),
            |result: JournalResult<'_, R>| {
                let Some(entry) = index.acknowledged_by(&result) else {
                    return;
                };
                let rank = ResultRank {
                    ended_before: result.ended,
                    attempt: result.attempt,
                    is_named: entry.state.worker() == Some(result.worker),
                };
                let is_better = best
                    .get(&result.item)
                    .is_none_or(|(known, _)| *known <= rank);
                if is_better {
                    best.insert(result.item, (rank, result.keep(&keep)));
                }
            },
        )?;

        for entry in entries {
            let mut items = entry.items_with_results();
            if let Some(missing) = items.find(|item| !best.contains_key(item)) {
                self.check_missing(&index, entry, missing)?;
            }
        }
        Ok(best
            .into_iter()
            .map(|(item, (_, found))| (item, found))
            .collect())
    }

    /// Skips a chunk that does not belong to the queue.
    ///
    /// # Errors
    /// Fails for a chunk of the queue: the result of its item `missing` was acknowledged, and is
    /// lost.
    fn check_missing(
        &self,
        index: &ChunkIndex<'_>,
        entry: &ChunkEntry,
        missing: WorkItem,
    ) -> Result<()> {
        if index.has_twin(entry) {
            self.warn_skipped(
                Path::new(&entry.file_name()),
                "another file has its trials, and this one has no result",
            );
            return Ok(());
        }
        let worker = entry.state.worker().unwrap_or("WORKER");
        let journal = self.path("results").join(format!("{worker}.jsonl"));
        bail!(
            "`{}` has lost the result of trial {}",
            journal.display(),
            missing.trial
        )
    }
}
