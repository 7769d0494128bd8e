//! The directory of a DAG → how its trials ended, and the best of them.

use std::path::Path;

use anyhow::Result;

use crate::config::Config;
use crate::manifest;
use crate::sweep::{Best, TrialResult, Trials, trial_dir};
use crate::tensors::Side;
use crate::training::{Evaluation, Metrics, RUN};

/// How every trial of the DAG in `dir` ended, the first at place 0; `None` for those that have not. One that has either has a
/// model that is evaluated, or a record that says why it has failed for good.
pub fn trials(dir: &Path, config: &Config) -> Result<Vec<Option<TrialResult>>> {
    (1..=Trials::of(config)?.count()).map(|trial| ended(dir, trial)).collect()
}

fn ended(dir: &Path, trial: usize) -> Result<Option<TrialResult>> {
    let run = trial_dir(dir, trial);
    let record = run.with_extension("failed");
    if record.is_file() {
        let error = fs_err::read_to_string(record)?.trim_end().to_owned();
        // A model that could not be evaluated is not to be chosen.
        let metrics = Metrics::read(&run).ok().filter(|metrics| metrics.of_model().is_none());
        return Ok(Some(TrialResult { trial, error: Some(error), metrics }));
    }
    let is_over = Evaluation::path(&run, Side::Test).is_file() && manifest::finished_key(&run, RUN).is_some();
    is_over.then(|| Ok(TrialResult { trial, error: None, metrics: Some(Metrics::read(&run)?) })).transpose()
}

/// The best of the trials that have ended, and whether that is all of them.
///
/// # Errors
/// Fails when no trial has a value.
pub fn choose(dir: &Path, config: &Config) -> Result<(Best, bool)> {
    let trials = trials(dir, config)?;
    let is_over = trials.iter().all(Option::is_some);
    Ok((Best::of(&config.wandb.sweep.metric, trials.into_iter().flatten().collect())?, is_over))
}
