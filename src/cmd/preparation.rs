//! Prepares the inputs of a sweep's trials, with progress bars for people.

use std::path::Path;

use anyhow::Result;

use super::progress::StageBar;
use poolcast_base::files::LockedDirectory;
use poolcast_sweep::config::Config;
use poolcast_sweep::{self as sweep, EarlierSweep, PrepareListener, PrepareStep, SweepFolder};
use poolcast_tensors::TensorSettings;

/// Like [`sweep::begin_sweep`], but shows the progress.
pub(super) fn begin_sweep(
    config: &Config,
    place: &str,
    earlier: EarlierSweep,
) -> Result<(SweepFolder, LockedDirectory)> {
    with_bar(|listener| sweep::begin_sweep(config, place, earlier, listener))
}

/// Like [`sweep::prepare_tables`], but shows the progress.
pub(super) fn prepare_tables(config: &Config) -> Result<String> {
    with_bar(|listener| sweep::prepare_tables(config, listener))
}

/// Like [`sweep::prepare_events`], but shows the progress.
pub(super) fn prepare_events(config: &Config, from_scratch: bool) -> Result<String> {
    with_bar(|listener| sweep::prepare_events(config, from_scratch, listener))
}

/// Like [`sweep::make_tensors`], but shows the progress.
pub(super) fn make_tensors(
    sweep: &SweepFolder,
    events: &Path,
    samples: &[TensorSettings],
) -> Result<()> {
    with_bar(|listener| sweep::make_tensors(sweep, events, samples, listener))
}

fn with_bar<T>(work: impl FnOnce(&PrepareListener<'_>) -> T) -> T {
    let bar = StageBar::default();
    let on_step = |step: PrepareStep<'_>| bar.show_preparation(step);
    work(&bar.prepare_listener(&on_step))
}
