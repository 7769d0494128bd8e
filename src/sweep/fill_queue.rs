//! What came of a sweep's trials so far → more trials in its queue.

use anyhow::Result;

use super::folder::SweepFolder;
use super::given_points::GivenPoints;
use super::outcome::network_rows;
use super::rounds;
use super::trial_row::TrialRow;
use poolcast_config::TrialSource;
use poolcast_queue::{ChunkEntry, Queue, WorkItem};
use poolcast_holds::tensors::TensorSettings;

/// The priority of items that nobody prefers.
const PRIORITY: u8 = 100;

/// Adds what there is to do next to `queue`, once everything in it has ended, and seals it when
/// that was the last. `prepare` is given the samples of the trials, and has to make their tensors.
pub(super) fn fill_queue(
    sweep: &SweepFolder,
    queue: &Queue,
    prepare: impl Fn(&[TensorSettings]) -> Result<()>,
) -> Result<()> {
    if sweep.config.wandb.sweep.id.is_some() {
        return add_given(sweep, queue, prepare);
    }
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
        // Tables are joined before the sweep begins, and samples of waits copied, so that only samples of
        // logs are prepared.
        if sweep.config.trial_source() == TrialSource::Logs {
            let trials = chunks.iter().flat_map(|chunk| chunk.items());
            let trials = trials.map(|item| item.trial);
            prepare(&samples_of(sweep, trials, &rows)?)?;
        }
        queue.add_chunks(added, PRIORITY, &chunks)?;
    }

    if chunks.is_empty() || rounds::adds_once(&sweep.config) {
        let all = entries.iter().map(|entry| entry.chunk).chain(chunks);
        queue.seal(all.map(|chunk| chunk.count).sum())?;
    }
    Ok(())
}

/// Adds the trials whose points were given since, and seals the queue when no more will come.
fn add_given(
    sweep: &SweepFolder,
    queue: &Queue,
    prepare: impl Fn(&[TensorSettings]) -> Result<()>,
) -> Result<()> {
    let given = GivenPoints::read(&sweep.dir)?;
    let known = given.points.len().min(sweep.plan.trials);
    let added = queue.added_chunks()?;
    if added < known {
        prepare(&samples_of(sweep, added + 1..=known, &[])?)?;
    }
    let budget = sweep.config.epochs;
    for trial in added + 1..=known {
        // Each by a call of its own, so that whoever repeats one adds nothing twice.
        queue.add_chunks(trial - 1, PRIORITY, &[WorkItem { trial, budget }.into()])?;
    }
    if given.is_complete || known == sweep.plan.trials {
        queue.seal(known)?;
    }
    Ok(())
}

/// The samples of `trials`.
fn samples_of(
    sweep: &SweepFolder,
    trials: impl Iterator<Item = usize>,
    rows: &[TrialRow],
) -> Result<Vec<TensorSettings>> {
    let mut samples = Vec::new();
    for trial in trials {
        let written = sweep.trial_config(trial, rows)?;
        // A trial that cannot be is found out by the worker that takes it, and fails alone.
        samples.extend(TensorSettings::from_config(&written).ok());
    }
    Ok(samples)
}
