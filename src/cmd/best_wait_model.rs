//! Opens the wait model in a directory that a user names: one from `provision train`, or the best
//! trial of a sweep.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::choices;
use poolcast_base::error::hinted;
use poolcast_base::manifest;
use poolcast_provision::wait_model::WaitModel;
use poolcast_sweep::config::TrialSource;
use poolcast_sweep::{self as sweep, SWEEP, SweepFolder, TrialOutcomes, TrialRow};

/// The best trial of `sweep`, a sweep over wait samples or of a program.
pub(super) fn best_row(sweep: &SweepFolder) -> Result<TrialRow> {
    let mut outcomes = TrialOutcomes::read(sweep)?;
    let best = sweep::best_outcome(&sweep.config.wandb.sweep.metric, &outcomes);
    let best = best.with_context(|| choices::no_best_error(sweep))?;
    let row = outcomes.row_of(best.trial)?;
    row.context("the best trial has a row")
}

/// Opens the model in `dir`, or the model of the best trial of the sweep in `dir`.
pub(super) fn open_wait_model(dir: &Path) -> Result<WaitModel> {
    if manifest::format_name(dir)?.as_deref() != Some(SWEEP.name) {
        return WaitModel::open(dir);
    }

    let sweep = SweepFolder::open(dir)?;
    ensure!(
        sweep.config.trial_source() == TrialSource::WaitSamples,
        hinted(
            format!("the sweep in `{}` has no models of waits", dir.display()),
            "name a sweep with `provision.samples`, or what `poolcast provision train` has written"
        )
    );
    WaitModel::open(&sweep::trial_dir(dir, best_row(&sweep)?.trial))
}
