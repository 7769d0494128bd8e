//! Configurations of trials → their runs on this machine: one training a trial, as many at once as threads.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::config::{Config, MetricName};
use crate::models::Device;
use crate::tensors::Dataset;
use crate::training::{Epoch, Metrics, Mode, NonFinite, Progress, Status, train_until};

/// How one trial ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TrialResult {
    /// Counted from 1.
    pub trial: usize,
    /// How its training went.
    #[serde(flatten)]
    pub metrics: Metrics,
}

impl TrialResult {
    /// Its best epoch; `None` for a trial that left no model.
    pub fn best(&self) -> Option<&Epoch> {
        self.metrics.best.as_ref().filter(|_| self.metrics.status != Status::NonFinite)
    }

    /// The value that the sweep chooses by.
    pub fn watched(&self, metric: MetricName) -> Option<f64> {
        self.best().and_then(|best| best.validation.watched(metric, best.validation_loss))
    }
}

/// The directory of a trial in the sweep directory `out`.
pub fn trial_dir(out: &Path, trial: usize) -> PathBuf {
    out.join("trials").join(format!("trial-{trial:04}"))
}

/// The directory of the tensors that the trial `config` needs; trials with equal sizes share it.
pub fn tensors_dir(out: &Path, config: &Config) -> Result<PathBuf> {
    let settings = crate::tensors::Settings::of(config)?;
    let (j, m, timeframe_len_s) = (settings.j, settings.m, settings.timeframe_len_s);
    let name = format!("j{j}-m{m}-t{timeframe_len_s}-{}-{}", settings.context, settings.vocabulary);
    Ok(out.join("tensors").join(name))
}

/// What trains trials, as many at once as there are threads.
pub(super) struct Machine<'a> {
    /// The sweep's directory.
    pub(super) out: &'a Path,
    pub(super) threads: usize,
    /// Hears of each epoch with its trial.
    pub(super) progress: &'a (dyn Fn(usize, &Epoch) + Sync),
}

impl Machine<'_> {
    /// Runs `trials`, each with its number, until they are over or `ends` says so of a trial and its epochs. Finished ones
    /// are kept, begun ones are resumed. A trial whose loss stops being a number has failed, and the others go on.
    ///
    /// # Errors
    /// Fails on anything else, such as a full disk, once the trials that run have ended.
    pub(super) fn run(
        &self,
        trials: &[(usize, &Config)],
        ends: impl Fn(usize, &[Epoch]) -> bool + Sync,
    ) -> Result<Vec<TrialResult>> {
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<(usize, Result<TrialResult>)>> = Mutex::default();
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((trial, config)) = trials.get(index) else { break };
                let result = self.run_trial(*trial, config, |history| ends(*trial, history));
                let failed = result.is_err();
                results.lock().expect("no thread panics with the lock").push((index, result));
                if failed {
                    next.store(trials.len(), Ordering::Relaxed);
                }
            }
        };
        std::thread::scope(|scope| (0..self.threads.min(trials.len())).for_each(|_| drop(scope.spawn(work))));
        let mut results = results.into_inner().expect("no thread panicked with the lock");
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, result)| result).collect()
    }

    fn run_trial(&self, trial: usize, config: &Config, ends: impl Fn(&[Epoch]) -> bool) -> Result<TrialResult> {
        let dataset = Dataset::open(&tensors_dir(self.out, config)?)?;
        let dir = trial_dir(self.out, trial);
        let report = |heard: Progress<'_>| {
            if let Progress::Epoch(epoch) = heard {
                (self.progress)(trial, epoch);
            }
            ControlFlow::Continue(())
        };
        let trained = match train_until(&dataset, config, &dir, Mode::Resume, &Device::Cpu, &ends, report) {
            // The trial was drawn anew, from another seed or space, or its log has grown: what is there is not its own.
            Err(error) if is_another_training(&dir, &dataset, config)? => {
                tracing::info!("{error}");
                train_until(&dataset, config, &dir, Mode::Overwrite, &Device::Cpu, &ends, report)
            }
            trained => trained,
        };
        let metrics = match trained {
            Ok(run) => run.metrics,
            Err(error) if error.is::<NonFinite>() => Metrics::read(&dir)?,
            Err(error) => return Err(error.context(format!("trial {trial} failed"))),
        };
        Ok(TrialResult { trial, metrics })
    }
}

fn is_another_training(dir: &Path, dataset: &Dataset, config: &Config) -> Result<bool> {
    let key = crate::training::Settings::of(config)?.key(&dataset.key)?;
    Ok(crate::training::checkpoint_key(dir).is_some_and(|found| found != key))
}
