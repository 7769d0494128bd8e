//! What came of a sweep's trials so far → more trials in its queue.

use anyhow::Result;

use super::folder::SweepFolder;
use super::outcome::network_rows;
use super::rounds;
use crate::queue::{ChunkEntry, Queue};
use crate::tensors::TensorSettings;

/// The priority of items that nobody prefers.
const PRIORITY: u8 = 100;

/// Adds what there is to do next to `queue`, once everything in it has ended, and seals it when
/// that was the last. `prepare` is given the samples of the trials, and has to make their tensors.
pub(super) fn fill_queue(
    sweep: &SweepFolder,
    queue: &Queue,
    prepare: impl Fn(&[TensorSettings]) -> Result<()>,
) -> Result<()> {
    let entries = queue.chunk_entries()?;
    let added = queue.added_chunks()?;
    // A listing that is made while names change may show an item twice, or not at all, but it shows
    // each that has ended once. Others may have put more there.
    if entries.len() < added || !entries.iter().all(ChunkEntry::has_ended) {
        return Ok(());
    }

    let rows = network_rows(sweep, queue, &entries)?;
    let chunks = rounds::next_chunks(sweep.trials()?, &rows, entries.is_empty())?;
    if !chunks.is_empty() {
        // Tables are joined before the sweep begins, so that only samples of logs are prepared.
        if !sweep.config.data.is_given() {
            let mut samples = Vec::new();
            for item in chunks.iter().flat_map(|chunk| chunk.items()) {
                let written = rounds::trial_config(sweep.trials()?, item.trial, &rows)?;
                // A trial that cannot be is found out by the worker that takes it, and fails alone.
                samples.extend(TensorSettings::from_config(&written).ok());
            }
            prepare(&samples)?;
        }
        queue.add_chunks(added, PRIORITY, &chunks)?;
    }

    if chunks.is_empty() || rounds::adds_once(&sweep.config) {
        let all = entries.iter().map(|entry| entry.chunk).chain(chunks);
        queue.seal(all.map(|chunk| chunk.count).sum())?;
    }
    Ok(())
}
