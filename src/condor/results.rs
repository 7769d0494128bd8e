//! The directory of a DAG → how its trials ended, and the best of them.

use std::path::Path;

use anyhow::Result;

use crate::config::Config;
use crate::manifest;
use crate::sweep::{Best, TrialResult, count, trial_dir};
use crate::training::{Metrics, RUN};

/// How every trial of the DAG in `dir` ended, those that have not included.
pub fn trials(dir: &Path, config: &Config) -> Result<Vec<Ended>> {
    (1..=count(config)?).map(|trial| Ended::read(dir, trial)).collect()
}

/// A trial of a DAG.
#[derive(Debug)]
pub enum Ended {
    /// It has not ended; its number.
    NotYet(usize),
    /// It has a model, which is evaluated, or it has failed for good.
    Ended(TrialResult),
}

impl Ended {
    /// How it ended, if it has.
    pub fn result(&self) -> Option<&TrialResult> {
        match self {
            Ended::NotYet(_) => None,
            Ended::Ended(result) => Some(result),
        }
    }

    fn read(dir: &Path, trial: usize) -> Result<Ended> {
        let run = trial_dir(dir, trial);
        let record = run.with_extension("failed");
        if record.is_file() {
            let error = fs_err::read_to_string(record)?.trim_end().to_owned();
            // A model that could not be evaluated is not to be chosen.
            let metrics = Metrics::read(&run).ok().filter(|metrics| metrics.watched().is_none());
            return Ok(Ended::Ended(TrialResult { trial, error: Some(error), metrics }));
        }
        let is_over = run.join("evaluation-test.json").is_file() && manifest::finished_key(&run, RUN).is_some();
        match is_over {
            true => Ok(Ended::Ended(TrialResult { trial, error: None, metrics: Some(Metrics::read(&run)?) })),
            false => Ok(Ended::NotYet(trial)),
        }
    }
}

/// The best of the trials that have ended, and whether that is all of them.
///
/// # Errors
/// Fails when no trial has a value.
pub fn choose(dir: &Path, config: &Config) -> Result<(Best, bool)> {
    let (mut results, mut is_over) = (Vec::new(), true);
    for ended in trials(dir, config)? {
        match ended {
            Ended::Ended(result) => results.push(result),
            Ended::NotYet(_) => is_over = false,
        }
    }
    Ok((Best::of(&config.wandb.sweep.metric, results)?, is_over))
}
