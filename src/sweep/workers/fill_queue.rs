//! Adds the next trials to a sweep's queue, depending on the results so far.

use anyhow::Result;

use crate::config::TrialSource;
use crate::outcomes::earlier_trials;
use crate::plan::EarlierTrial;
use crate::plan::GivenPoints;
use crate::plan::SweepFolder;
use crate::plan::rounds;
use poolcast_queue::{ChunkEntry, Queue, WorkItem};
use poolcast_tensors::TensorSettings;

/// The default priority of items.
const DEFAULT_PRIORITY: u8 = 100;

/// Adds the next items to `queue` once everything in it has ended. Seals the queue after the last
/// items. `prepare` receives the sample settings of the trials, and must make their tensors.
pub(crate) fn fill_queue(
    sweep: &SweepFolder,
    queue: &Queue,
    prepare: impl Fn(&[TensorSettings]) -> Result<()>,
) -> Result<()> {
    if sweep.config.wandb.sweep.id.is_some() {
        return add_given(sweep, queue, prepare);
    }
    let entries = queue.chunk_entries()?;
    let added = queue.added_chunks()?;
    // A listing that runs while names change may show an item twice or not at all. It shows each
    // ended item exactly once. Other managers may also have added items.
    if entries.len() < added || !entries.iter().all(ChunkEntry::has_ended) {
        return Ok(());
    }

    let ended = earlier_trials(sweep, queue, &entries)?;
    let chunks = rounds::next_chunks(sweep.trials()?, &ended, entries.is_empty())?;
    if !chunks.is_empty() {
        // Only samples of logs are prepared here. Tables are joined and wait samples are copied
        // before the sweep begins.
        if sweep.config.trial_source() == TrialSource::Logs {
            let trials = chunks.iter().flat_map(|chunk| chunk.items());
            let trials = trials.map(|item| item.trial);
            prepare(&samples_of(sweep, trials, &ended)?)?;
        }
        queue.add_chunks(added, DEFAULT_PRIORITY, &chunks)?;
    }

    if chunks.is_empty() || rounds::adds_items_only_once(&sweep.config) {
        let all = entries.iter().map(|entry| entry.chunk).chain(chunks);
        queue.seal(all.map(|chunk| chunk.count).sum())?;
    }
    Ok(())
}

/// Adds the trials whose points were given since the last call. Seals the queue if no more points
/// will follow.
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
        // One call per trial, so that a repeated call adds nothing twice.
        queue.add_chunks(
            trial - 1,
            DEFAULT_PRIORITY,
            &[WorkItem { trial, budget }.into()],
        )?;
    }
    if given.has_every_point() || known == sweep.plan.trials {
        queue.seal(known)?;
    }
    Ok(())
}

/// The sample settings of `trials`.
fn samples_of(
    sweep: &SweepFolder,
    trials: impl Iterator<Item = usize>,
    ended: &[EarlierTrial],
) -> Result<Vec<TensorSettings>> {
    let mut samples = Vec::new();
    for trial in trials {
        let written = sweep.trial_config(trial, ended)?;
        // An invalid trial is skipped here. The worker that claims it finds the error, and only
        // this trial fails.
        samples.extend(written.tensor_settings().ok());
    }
    Ok(samples)
}
