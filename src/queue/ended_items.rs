//! Items that have ended before their queue begins, with their results.

use anyhow::Result;
use serde::Serialize;

use super::chunk_entry::{ChunkEntry, ChunkState};
use super::item::WorkItem;
use super::item_store::Queue;
use super::journal::ResultJournal;
use poolcast_base::process::Process;

/// Number of results that are fsynced together.
const RESULTS_PER_SYNC: usize = 1000;

/// An item that has ended before its queue begins.
#[derive(Debug)]
pub struct EndedItem<R> {
    /// The item.
    pub item: WorkItem,
    /// Its result.
    pub result: R,
    /// Its document, if the item was proposed.
    pub proposal: Option<serde_json::Value>,
}

impl Queue {
    /// Adds items that have ended, with their results. Proposed items become the first proposals, in
    /// their order; all others are in one batch with the number `batch`. No other process may use the
    /// queue yet.
    ///
    /// # Errors
    /// Fails with the first error of `results`, and on a full disk.
    pub fn add_ended<R: Serialize>(
        &self,
        batch: usize,
        priority: u8,
        results: impl Iterator<Item = Result<EndedItem<R>>>,
    ) -> Result<()> {
        let worker = Process::current().worker_name();
        let mut journal = ResultJournal::new(&self.path("results"), &worker);
        let mut entries = Vec::new();
        let mut proposals = 0;
        for (number, ended) in results.enumerate() {
            let EndedItem {
                item,
                result,
                proposal,
            } = ended?;
            let entry = ChunkEntry {
                ended: 1,
                ..ChunkEntry::new(item).with_state(ChunkState::Done(worker.clone()))
            };
            journal.add(item, 0, entry.attempt, &result)?;
            match proposal {
                Some(document) => {
                    self.add_proposal(proposals, &entry, &document)?;
                    proposals += 1;
                }
                None => entries.push(entry),
            }
            if (number + 1) % RESULTS_PER_SYNC == 0 {
                journal.sync()?;
            }
        }
        journal.sync()?;
        self.add_entries(batch, priority, &entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemStateCounts, QueueSettings};

    #[test]
    fn ended_items_have_results_and_are_not_claimed() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = Queue::create(&dir.path().join("queue"), QueueSettings::default());
        let queue = queue.expect("made");
        let results = (1..=3).map(|trial| {
            Ok(EndedItem {
                item: WorkItem { trial, budget: 1 },
                result: trial * trial,
                proposal: (trial > 1).then(|| trial.into()),
            })
        });
        queue.add_ended(0, 100, results).expect("added");
        let documents = [0, 1, 2].map(|number| queue.proposal::<usize>(number).expect("read"));
        assert_eq!(documents, [Some(2), Some(3), None]);
        let open = WorkItem {
            trial: 4,
            budget: 1,
        };
        queue.add_chunks(1, 100, &[open.into()]).expect("added");

        let entries = queue.chunk_entries().expect("listed");
        let counts = ItemStateCounts::from_entries(entries.iter());
        assert_eq!((counts.done, counts.ready), (3, 1));
        let found = queue.results::<usize>(&entries).expect("read");
        let mut squares: Vec<usize> = found.into_values().collect();
        squares.sort_unstable();
        assert_eq!(squares, [1, 4, 9]);
    }
}
