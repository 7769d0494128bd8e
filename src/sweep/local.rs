//! Configurations of trials → their runs on this machine: one training a trial, as many at once as threads.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;

use super::best::TrialResult;
use super::trial::{tensors_dir, trial_dir};
use crate::config::Config;
use crate::models::Device;
use crate::tensors::Dataset;
use crate::training::{Epoch, Metrics, Mode, NonFinite, Progress, train_until};

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
        match trained {
            Ok(run) => Ok(TrialResult { trial, error: None, metrics: Some(run.metrics) }),
            Err(error) if error.is::<NonFinite>() => {
                Ok(TrialResult { trial, error: Some(error.to_string()), metrics: Some(Metrics::read(&dir)?) })
            }
            Err(error) => Err(error.context(format!("trial {trial} failed"))),
        }
    }
}

fn is_another_training(dir: &Path, dataset: &Dataset, config: &Config) -> Result<bool> {
    let key = crate::training::Settings::of(config)?.key(&dataset.key)?;
    Ok(crate::training::checkpoint_key(dir).is_some_and(|found| found != key))
}
