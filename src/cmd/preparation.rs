//! Prepares the inputs of a sweep's trials, and shows the progress.

use std::path::Path;

use anyhow::Result;

use super::progress::{Progress, Stage};
use poolcast_base::files::LockedDirectory;
use poolcast_sweep::config::Config;
use poolcast_sweep::{self as sweep, EarlierSweep, PrepareListener, PrepareStep, SweepFolder};
use poolcast_tensors::TensorSettings;

/// Like [`sweep::begin_sweep`], but shows the progress.
pub(super) fn begin_sweep(
    config: &Config,
    place: &str,
    earlier: EarlierSweep,
    progress: &Progress,
) -> Result<(SweepFolder, LockedDirectory)> {
    listen(progress, |listener| {
        sweep::begin_sweep(config, place, earlier, listener)
    })
}

/// Like [`sweep::prepare_tables`], but shows the progress.
pub(super) fn prepare_tables(config: &Config) -> Result<String> {
    read(|listener| sweep::prepare_tables(config, listener))
}

/// Like [`sweep::prepare_events`], but shows the progress.
pub(super) fn prepare_events(config: &Config, from_scratch: bool) -> Result<String> {
    read(|listener| sweep::prepare_events(config, from_scratch, listener))
}

/// Like [`sweep::make_tensors`], but shows the progress.
pub(super) fn make_tensors(
    sweep: &SweepFolder,
    events: &Path,
    samples: &[TensorSettings],
    progress: &Progress,
) -> Result<()> {
    listen(progress, |listener| {
        sweep::make_tensors(sweep, events, samples, listener)
    })
}

fn read<T>(work: impl FnOnce(&PrepareListener<'_>) -> T) -> T {
    let progress = Progress::new(&[Stage::Read]);
    progress.show(|| listen(&progress, work))
}

fn listen<T>(progress: &Progress, work: impl FnOnce(&PrepareListener<'_>) -> T) -> T {
    let on_step = |step: PrepareStep<'_>| progress.show_preparation(step);
    work(&progress.prepare_listener(&on_step))
}
