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

impl Queue {
    /// Adds items that have ended, in one batch with the number `batch`, with their results. No other
    /// process may use the queue yet.
    ///
    /// # Errors
    /// Fails with the first error of `results`, and on a full disk.
    pub fn add_ended<R: Serialize>(
        &self,
        batch: usize,
        priority: u8,
        results: impl Iterator<Item = Result<(WorkItem, R)>>,
    ) -> Result<()> {
        let worker = Process::current().worker_name();
        let mut journal = ResultJournal::new(&self.path("results"), &worker);
        let mut entries = Vec::new();
        for result in results {
            let (item, result) = result?;
            let entry = ChunkEntry {
                ended: 1,
                ..ChunkEntry::new(item).with_state(ChunkState::Done(worker.clone()))
            };
            journal.add(item, 0, entry.attempt, &result)?;
            entries.push(entry);
            if entries.len() % RESULTS_PER_SYNC == 0 {
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
        let results = (1..=3).map(|trial| Ok((WorkItem { trial, budget: 1 }, trial * trial)));
        queue.add_ended(0, 100, results).expect("added");
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
