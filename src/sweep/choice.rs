//! The rows of a sweep with pipelines → for each split the best trial, and what it is worth on rows that it did not learn from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::bbc_cv::{ScoreEstimate, TrueClasses};
use super::best_trial::BestTrial;
use super::folder::SweepFolder;
use super::kept_trials::MOST_COMPARED;
use super::outcome::TrialOutcomes;
use super::paths::trial_dir;
use super::permutation_importance::FeatureImportances;
use super::pipeline_fit::{FitTables, TrialPredictions};
use super::trial_data;
use super::trial_row::TrialRow;
use crate::config::Metric;
use crate::pipelines::FittedPipeline;
use crate::tables::FeatureTable;

/// The best trial of a split.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SplitChoice {
    /// The split; none of samples of logs.
    pub split: Option<String>,
    /// How many trials were compared.
    pub trials: usize,
    /// The best of them, counted from 1.
    pub trial: usize,
    /// What it fits.
    pub pipeline: String,
    /// What it was chosen by: the mean over folds, else the score of the rows held out.
    pub metric: Metric,
    /// Its value.
    pub value: f64,
    /// What the best is worth without the luck of the choice (BBC-CV); absent where predictions are missing.
    pub corrected: Option<ScoreEstimate>,
    /// Its score on the rows held out; with folds these had no part in the choice.
    pub validation: Option<ScoreEstimate>,
    /// Its score on the test side of samples of logs, which had no part in the choice.
    pub test: Option<ScoreEstimate>,
    /// Its score on each further split, none of which had a part in the choice; absent where that is not defined.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evaluation: BTreeMap<String, Option<ScoreEstimate>>,
    /// What its pipeline depends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importances: Option<FeatureImportances>,
    /// The best of each pipeline.
    pub pipelines: BTreeMap<String, BestTrial>,
}

/// The choice in each split of `outcomes`.
///
/// # Errors
/// Fails where the rows of a split cannot be read.
pub fn choose_pipelines(
    sweep: &SweepFolder,
    outcomes: &mut TrialOutcomes,
) -> Result<Vec<SplitChoice>> {
    let splits: BTreeSet<Option<Arc<str>>> = outcomes
        .all()
        .iter()
        .map(|outcome| outcome.split.clone())
        .collect();
    let chosen = splits.into_iter().map(|split| {
        let all = outcomes.all().iter().enumerate();
        let places: Vec<usize> = all
            .filter(|(_, one)| one.split == split && one.value.is_some())
            .map(|(at, _)| at)
            .collect();
        choice(sweep, split, outcomes, &places)
    });
    Ok(chosen
        .collect::<Result<Vec<_>>>()?
        .into_iter()
        .flatten()
        .collect())
}

/// The choice among the outcomes at `places`.
fn choice(
    sweep: &SweepFolder,
    split: Option<Arc<str>>,
    outcomes: &mut TrialOutcomes,
    places: &[usize],
) -> Result<Option<SplitChoice>> {
    let metric = sweep.config.wandb.sweep.metric.clone();
    let compared = || places.iter().map(|at| &outcomes.all()[*at]);
    let Some(BestTrial { trial, value }) = BestTrial::among(&metric, compared()) else {
        return Ok(None);
    };
    let names: BTreeSet<&Arc<str>> = compared().map(|outcome| &outcome.pipeline).collect();
    let of = |name: &str| {
        BestTrial::among(
            &metric,
            compared().filter(|outcome| &*outcome.pipeline == name),
        )
    };
    let pipelines = names
        .into_iter()
        .filter_map(|name| Some((name.to_string(), of(name)?)))
        .collect();
    let row = outcomes
        .row_of(trial)?
        .context("the best trial has a row")?;
    let mut choice = SplitChoice {
        split: split.map(|split| split.to_string()),
        trials: places.len(),
        trial,
        pipeline: row.pipeline.clone(),
        metric,
        value,
        corrected: None,
        validation: None,
        test: None,
        evaluation: BTreeMap::new(),
        importances: None,
        pipelines,
    };
    let rows = match places.len() <= MOST_COMPARED {
        true => places
            .iter()
            .map(|at| outcomes.row(*at))
            .collect::<Result<Vec<_>>>()?,
        false => Vec::new(),
    };
    choice.estimate(sweep, &row, &rows)?;
    Ok(Some(choice))
}

impl SplitChoice {
    /// `rows` are those of all trials that were compared, or none of them.
    fn estimate(&mut self, sweep: &SweepFolder, best: &TrialRow, rows: &[TrialRow]) -> Result<()> {
        let (resamples, seed) = (sweep.config.evaluation.resamples, sweep.config.seed);
        let source = trial_data::fit_tables(sweep, &best.config)?;
        let predicted = |row: &TrialRow| trial_data::trial_predictions(sweep, row, &source).ok();
        if let (Some(validate), Some(own)) = (&source.validate, predicted(best)) {
            self.validation =
                truth(validate).interval(&self.metric, &doubles(&own.validation), resamples, seed);
        }
        if let Some((table, probabilities)) = trial_data::test_predictions(sweep, best)? {
            self.test =
                truth(&table).interval(&self.metric, &doubles(&probabilities), resamples, seed);
        }
        // Its model may have been removed, as by `--keep 0`.
        if best.fit.is_some()
            && let Ok(fitted) = FittedPipeline::open(&trial_dir(&sweep.dir, best.trial))
        {
            for (name, table) in &source.evaluate {
                let estimate = truth(table).interval(
                    &self.metric,
                    &fitted.probabilities(table)?,
                    resamples,
                    seed,
                );
                self.evaluation.insert(name.clone(), estimate);
            }
            let held_out = source.validate.as_ref().or(source.evaluate.values().next());
            self.importances = Some(FeatureImportances::compute(
                &fitted,
                held_out,
                &self.metric,
                seed,
            ));
        }
        let all: Option<Vec<TrialPredictions>> = rows.iter().map(predicted).collect();
        self.corrected = all
            .filter(|all| !all.is_empty())
            .and_then(|all| corrected(&self.metric, &source, &all, resamples, seed));
        Ok(())
    }
}

fn truth(table: &FeatureTable) -> TrueClasses<'_> {
    TrueClasses {
        y: &table.y,
        groups: &table.groups,
        classes: table.classes.len(),
    }
}

/// Of the rows that every trial predicted: in folds, if there are any, else those held out.
fn corrected(
    metric: &Metric,
    rows: &FitTables,
    all: &[TrialPredictions],
    resamples: usize,
    seed: u64,
) -> Option<ScoreEstimate> {
    let classes = rows.train.classes.len();
    let has_folds = all.iter().all(|one| !one.folds.is_empty());
    let table = if has_folds {
        &rows.train
    } else {
        rows.validate.as_ref()?
    };
    let of: Vec<&[f32]> = all
        .iter()
        .map(|one| {
            if has_folds {
                &one.folds[..]
            } else {
                &one.validation[..]
            }
        })
        .collect();
    if of
        .iter()
        .any(|values| values.len() != table.row_count() * classes)
    {
        return None;
    }
    let is_known = |row: &usize| of.iter().all(|values| !values[row * classes].is_nan());
    let known: Vec<usize> = (0..table.row_count()).filter(is_known).collect();
    let table = table.select_rows(&known);
    let trials: Vec<Vec<f64>> = of
        .iter()
        .map(|values| {
            known
                .iter()
                .flat_map(|row| doubles(&values[row * classes..][..classes]))
                .collect()
        })
        .collect();
    truth(&table).corrected(metric, &trials, resamples, seed)
}

fn doubles(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}
