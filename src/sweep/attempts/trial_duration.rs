//! Estimates the duration of a trial on this machine.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::pipeline_fit::PipelineTask;
use super::trial_data;
use crate::plan::SweepFolder;
use crate::plan::{TrialConfig, TrialModel};
use poolcast_holds::training::{RunLocation, StartMode, TrainError, TrainingUpdate, train};
use poolcast_models::Device;
use poolcast_pipelines as pipelines;

/// Estimates how many seconds `trial` of `sweep`, counted from 1, takes on this machine. A training
/// is extrapolated from its first batches, without early stopping. A fit that takes longer than
/// `limit` counts as ending there. The trial's files are left in `dir`.
///
/// # Errors
/// Fails if the trial fails.
pub fn measure_trial(
    sweep: &SweepFolder,
    trial: usize,
    limit: Duration,
    dir: &Path,
) -> Result<f64> {
    let trial = TrialConfig::new(sweep.trials()?.draw(trial)?)?;
    let settings = match &trial.model {
        TrialModel::Network(settings) => settings,
        TrialModel::Pipeline(task) => return measure_fit(sweep, &trial, task, limit),
        TrialModel::WaitModel(_) => bail!("a DAG cannot have trials over samples of waits"),
        TrialModel::Command(_) => bail!("a DAG cannot have trials of a program"),
    };

    let dataset = trial_data::trial_dataset(sweep, &trial)?;
    let began = Instant::now();
    // The finished fraction of the training when it was stopped.
    let share = Mutex::new(1.0);
    let on_update = |update: TrainingUpdate<'_>| {
        let TrainingUpdate::Batch {
            epoch,
            batch,
            batches,
            ..
        } = update
        else {
            return ControlFlow::Continue(());
        };
        if began.elapsed() <= limit {
            return ControlFlow::Continue(());
        }
        if let Ok(mut share) = share.lock() {
            *share = ((epoch - 1) * batches + batch) as f64 / (settings.epochs * batches) as f64;
        }
        ControlFlow::Break(())
    };

    let resolved = trial.written.resolved()?;
    let place = RunLocation {
        dir,
        config: &resolved,
        checkpoint_minutes: trial.written.training.checkpoint_minutes,
    };
    let trained = train(
        &dataset,
        settings,
        place,
        StartMode::New,
        &Device::Cpu,
        on_update,
    );
    match trained {
        Ok(_) | Err(TrainError::Stopped(_)) => {
            Ok(began.elapsed().as_secs_f64() / share.into_inner().unwrap_or(1.0))
        }
        Err(error) => Err(error.into()),
    }
}

fn measure_fit(
    sweep: &SweepFolder,
    trial: &TrialConfig,
    task: &PipelineTask,
    limit: Duration,
) -> Result<f64> {
    let tables = trial_data::fit_tables(sweep, trial)?;
    let began = Instant::now();
    match task.fit(&tables, &|| began.elapsed() > limit) {
        Err(error) if !error.is::<pipelines::FitStopped>() => Err(error),
        _ => Ok(began.elapsed().as_secs_f64()),
    }
}
