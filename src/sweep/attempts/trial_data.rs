//! Loads the data that a trial learns from, and its predictions, from the folder that all workers
//! share.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anyhow::{Context as _, Result, ensure};

use super::pipeline_fit::{FitTables, LogSamples, TrialPredictions};
use crate::plan::SweepFolder;
use crate::plan::TrialConfig;
use crate::plan::TrialRow;
use crate::plan::{
    PREDICTIONS_FILE, events_dir, table_dir, tensors_dir, trial_dir, wait_samples_dir,
};
use poolcast_base::error::hinted;
use poolcast_base::manifest;
use poolcast_events::{EVENTS_FORMAT, EventStore};
use poolcast_holds::config::TrainingConfig;
use poolcast_holds::training::sample_features;
use poolcast_holds::training::{
    LEARNED_SPLITS, LearnedHolds, RollingPredictions, SuccessRates, TrainedModel, learned_splits,
    time_cuts, uncalibrated_split,
};
use poolcast_provision::samples::WaitSamples;
use poolcast_tables::{FeatureTable, JoinedTable, TABLE};
use poolcast_tensors::{Dataset, Split, TensorSettings};

/// The data of the last trial of each kind, kept for later trials that share it.
#[derive(Default)]
pub(crate) struct SharedData {
    tables: RefCell<Option<(PathBuf, Rc<FitTables>)>>,
    dataset: RefCell<Option<(PathBuf, Rc<Dataset>)>>,
    waits: RefCell<Option<(PathBuf, Rc<WaitSamples>)>>,
    events: RefCell<Option<(PathBuf, Rc<EventStore>)>>,
}

impl SharedData {
    /// Like [`fit_tables`].
    pub(crate) fn tables(&self, sweep: &SweepFolder, trial: &TrialConfig) -> Result<Rc<FitTables>> {
        let place = match &trial.tensors {
            Some(settings) => tensors_dir(&sweep.dir, settings),
            None => table_dir(&sweep.dir).join(table_split(trial)?),
        };
        keep_or_load(&self.tables, place, || fit_tables(sweep, trial))
    }

    /// Like [`trial_dataset`].
    pub(crate) fn dataset(&self, sweep: &SweepFolder, trial: &TrialConfig) -> Result<Rc<Dataset>> {
        let place = tensors_dir(&sweep.dir, trial.tensor_settings()?);
        keep_or_load(&self.dataset, place, || trial_dataset(sweep, trial))
    }

    /// The wait samples that all trials of `sweep` learn from.
    ///
    /// # Errors
    /// Fails if they have changed since the sweep began.
    pub(crate) fn waits(&self, sweep: &SweepFolder) -> Result<Rc<WaitSamples>> {
        let dir = wait_samples_dir(&sweep.dir);
        keep_or_load(&self.waits, dir.clone(), || {
            let samples = WaitSamples::open(&dir)?;
            check_same(&dir, &samples.key, &sweep.plan.source_key)?;
            Ok(samples)
        })
    }

    /// The events that the answers of the trials of `sweep` learn from.
    ///
    /// # Errors
    /// Fails if they have changed since the sweep began.
    pub(crate) fn events(&self, sweep: &SweepFolder) -> Result<Rc<EventStore>> {
        let dir = events_dir(&sweep.dir);
        keep_or_load(&self.events, dir.clone(), || {
            let key = manifest::finished_key(&dir, EVENTS_FORMAT).unwrap_or_default();
            check_same(&dir, &key, &sweep.plan.source_key)?;
            EventStore::open(&dir)
        })
    }
}

/// Returns the data in `kept` if it was loaded from `place`. Otherwise loads it with `load`, and
/// keeps it instead.
fn keep_or_load<T>(
    kept: &RefCell<Option<(PathBuf, Rc<T>)>>,
    place: PathBuf,
    load: impl FnOnce() -> Result<T>,
) -> Result<Rc<T>> {
    if let Some((known, data)) = &*kept.borrow()
        && *known == place
    {
        return Ok(Rc::clone(data));
    }

    // Both may not fit into memory at the same time.
    kept.take();
    let data = Rc::new(load()?);
    kept.replace(Some((place, Rc::clone(&data))));
    Ok(data)
}

/// The split of the tables that `trial` learns from.
fn table_split(trial: &TrialConfig) -> Result<&str> {
    let split = trial.written.data.split_names.first();
    Ok(split.context("the trial has no split of the tables")?)
}

/// The rows that `trial` of `sweep` learns from and is validated on.
///
/// # Errors
/// Fails if they have changed since the sweep began.
pub(crate) fn fit_tables(sweep: &SweepFolder, trial: &TrialConfig) -> Result<FitTables> {
    if trial.tensors.is_some() {
        return sample_tables(&trial_dataset(sweep, trial)?, &trial.written.training);
    }
    let dir = table_dir(&sweep.dir);
    let key = manifest::read::<serde_json::Value>(&dir, TABLE)?.key;
    check_same(&dir, &key, &sweep.plan.source_key)?;
    FitTables::from_split(&JoinedTable::open(&dir)?, table_split(trial)?)
}

/// The samples of `dataset` as rows of one table, with its time cuts.
fn sample_tables(dataset: &Dataset, training: &TrainingConfig) -> Result<FitTables> {
    let tables: Vec<FeatureTable> = LEARNED_SPLITS
        .iter()
        .map(|split| sample_features(dataset, *split))
        .collect::<Result<_>>()?;
    let learned = learned_splits(dataset, training.time_cuts);
    let samples = LogSamples {
        cuts: time_cuts(dataset, training.time_cuts)?,
        threshold: training.threshold,
        tensors: dataset.summary.settings.clone(),
        tensors_key: dataset.key.clone(),
        rates: SuccessRates::learn(dataset, learned)?,
        learned: LearnedHolds {
            splits: learned.to_vec(),
        },
    };
    Ok(FitTables {
        train: FeatureTable::concat_classes(&tables),
        times: None,
        key: manifest::key(&(&dataset.key, training.time_cuts, training.threshold))?,
        samples: Some(samples),
        validate: None,
        evaluate: BTreeMap::new(),
    })
}

/// The samples of logs that `trial` of `sweep` learns from.
///
/// # Errors
/// Fails if they have changed since the sweep began.
pub(crate) fn trial_dataset(sweep: &SweepFolder, trial: &TrialConfig) -> Result<Dataset> {
    let settings = trial.tensor_settings()?;
    let dataset = Dataset::open(&tensors_dir(&sweep.dir, settings))?;
    check_dataset(sweep, settings, dataset)
}

/// Like [`trial_dataset`], for one split alone. The files of the other splits may be missing.
///
/// # Errors
/// Fails if the samples have changed since the sweep began.
pub(crate) fn trial_dataset_split(
    sweep: &SweepFolder,
    trial: &TrialConfig,
    split: Split,
) -> Result<Dataset> {
    let settings = trial.tensor_settings()?;
    let dataset = Dataset::open_split(&tensors_dir(&sweep.dir, settings), split)?;
    check_dataset(sweep, settings, dataset)
}

fn check_dataset(
    sweep: &SweepFolder,
    settings: &TensorSettings,
    dataset: Dataset,
) -> Result<Dataset> {
    let wanted = settings.key(&sweep.plan.source_key)?;
    check_same(&tensors_dir(&sweep.dir, settings), &dataset.key, &wanted)?;
    Ok(dataset)
}

fn check_same(dir: &Path, found: &str, wanted: &str) -> Result<()> {
    ensure!(
        found == wanted,
        hinted(
            format!("`{}` has changed since the sweep began", dir.display()),
            "start again in another directory with `poolcast sweep init CONFIG -o DIR`"
        )
    );
    Ok(())
}

/// The predictions of the trial of `row` for `rows`, as stored next to its model. `None` if they
/// were removed.
///
/// # Errors
/// Fails if the predictions do not match the manifest, or belong to other rows.
pub(crate) fn trial_predictions(
    sweep: &SweepFolder,
    row: &TrialRow,
    rows: &FitTables,
) -> Result<Option<TrialPredictions>> {
    let dir = &trial_dir(&sweep.dir, row.trial);
    if !dir.join(PREDICTIONS_FILE).is_file() {
        return Ok(None);
    }
    let found = if row.config.data.is_given() {
        TrialPredictions::read(dir)?
    } else {
        rolling_predictions(dir, rows.train.row_count())?
    };
    let classes = rows.train.targets.width();
    let fits = [
        (&found.folds, rows.train.row_count()),
        (
            &found.validation,
            rows.validate.as_ref().map_or(0, |table| table.row_count()),
        ),
    ];
    let fits = fits
        .iter()
        .all(|(values, n)| values.is_empty() || values.len() == n * classes);
    ensure!(
        fits,
        "the predictions in `{}` belong to other rows",
        dir.display()
    );
    Ok(Some(found))
}

/// The predictions of the trial in `dir` for `count` samples, before calibration, because trials
/// are compared by such values. Samples that do not follow a time cut have NaN.
fn rolling_predictions(dir: &Path, count: usize) -> Result<TrialPredictions> {
    let predicted = RollingPredictions::read(dir)?;
    let mut folds = vec![f32::NAN; 2 * count];
    for (&sample, success) in predicted.samples.iter().zip(predicted.probabilities()) {
        let first = 2 * sample as usize;
        if let Some(of_row) = folds.get_mut(first..first + 2) {
            of_row.copy_from_slice(&[1.0 - success as f32, success as f32]);
        }
    }
    Ok(TrialPredictions {
        folds,
        validation: Vec::new(),
    })
}

/// The test split of samples of logs, with the predictions of the trial of `row` for it, `[n, 2]`,
/// before calibration. `None` for tables, and for an empty test split.
pub(crate) fn test_predictions(
    sweep: &SweepFolder,
    row: &TrialRow,
) -> Result<Option<(FeatureTable, Vec<f32>)>> {
    let trial = row.trial_config()?;
    if trial.tensors.is_none() {
        return Ok(None);
    }
    let dataset = trial_dataset(sweep, &trial)?;
    let table = sample_features(&dataset, Split::Test)?;
    if table.row_count() == 0 {
        return Ok(None);
    }
    let model = TrainedModel::open(&trial_dir(&sweep.dir, row.trial))?;
    let successes = uncalibrated_split(&model, &dataset, Split::Test)?;
    let both = |success: f64| [1.0 - success as f32, success as f32];
    let probabilities = successes.into_iter().flat_map(both).collect();
    Ok(Some((table, probabilities)))
}
