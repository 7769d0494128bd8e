//! Chooses the best trial of each split, and estimates its score on rows that it did not learn
//! from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::bbc_cv::{FMeasureThreshold, ScoreEstimate, TrueTargets};
use super::best_trial::BestTrial;
use super::outcome::{TrialOutcome, TrialOutcomes};
use super::pareto_front::{FrontTrial, pareto_front};
use crate::attempts::FeatureImportances;
use crate::attempts::MAX_COMPARED_TRIALS;
use crate::attempts::trial_data;
use crate::attempts::{FitTables, TrialPredictions};
use crate::plan::SweepFolder;
use crate::plan::TrialRow;
use crate::plan::trial_dir;
use poolcast_config::{Metric, MetricName, Threshold};
use poolcast_holds::training::choose_threshold;
use poolcast_pipelines::{FittedPipeline, best_constant};
use poolcast_tables::{FeatureTable, RowTargets};

/// The best trial of a split, with its estimated scores.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SplitChoice {
    /// The split; `None` for samples of logs.
    pub split: Option<String>,
    /// Number of trials that were compared.
    pub trials: usize,
    /// The best trial, counted from 1.
    pub trial: usize,
    /// The pipeline that it fits.
    pub pipeline: String,
    /// The metric of the choice: the mean over folds, or without folds the score on the held-out
    /// rows.
    pub metric: Metric,
    /// The best trial's value of the metric.
    pub value: f64,
    /// The best trial's score, corrected for the luck of the choice (BBC-CV); absent if predictions
    /// are missing.
    pub corrected: Option<ScoreEstimate>,
    /// Its score on the held-out rows, which had no part in the choice if there are folds. For
    /// samples of logs it is the score on the samples after the time cuts, by which the trial was
    /// chosen.
    pub validation: Option<ScoreEstimate>,
    /// The score of one answer for all of these rows, by the rows that were learned from: their mean or quantile, or
    /// the shares of their classes. `None` for a ROC-AUC, which is then a half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<ScoreEstimate>,
    /// Its score on the test split of samples of logs, which had no part in the choice.
    pub test: Option<ScoreEstimate>,
    /// Its score on each further split; none of them had a part in the choice. Absent if the score
    /// is not defined.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evaluation: BTreeMap<String, Option<ScoreEstimate>>,
    /// The importance of each feature for the chosen pipeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importances: Option<FeatureImportances>,
    /// The best trial of each pipeline.
    pub pipelines: BTreeMap<String, BestTrial>,
    /// The Pareto front of its trials, by the first metric; empty for a sweep with one metric.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub front: Vec<FrontTrial>,
}

/// Chooses the best trial of each split in `outcomes`.
///
/// # Errors
/// Fails if the rows of a split cannot be read.
pub fn choose_pipelines(
    sweep: &SweepFolder,
    outcomes: &mut TrialOutcomes,
) -> Result<Vec<SplitChoice>> {
    let splits: BTreeSet<Option<Arc<str>>> = outcomes
        .all()
        .iter()
        .map(|outcome| outcome.split.clone())
        .collect();

    let mut choices = Vec::new();
    for split in splits {
        let all = outcomes.all().iter().enumerate();
        let places: Vec<usize> = all
            .filter(|(_, outcome)| outcome.split == split && outcome.value.is_some())
            .map(|(place, _)| place)
            .collect();
        choices.extend(choose_among(sweep, split, outcomes, &places)?);
    }
    Ok(choices)
}

/// Chooses among the outcomes with the indices `places`.
fn choose_among(
    sweep: &SweepFolder,
    split: Option<Arc<str>>,
    outcomes: &mut TrialOutcomes,
    places: &[usize],
) -> Result<Option<SplitChoice>> {
    let metrics = &sweep.config.wandb.sweep.metric;
    let metric = metrics.first().clone();
    let compared = || places.iter().map(|at| &outcomes.all()[*at]);
    let Some(BestTrial { trial, value }) = BestTrial::among(&metric, compared()) else {
        return Ok(None);
    };

    let names: BTreeSet<&Arc<str>> = compared().map(|outcome| &outcome.pipeline).collect();
    let mut pipelines = BTreeMap::new();
    for name in names {
        let of_pipeline = compared().filter(|outcome| outcome.pipeline == *name);
        if let Some(best) = BestTrial::among(&metric, of_pipeline) {
            pipelines.insert(name.to_string(), best);
        }
    }

    let front = pareto_front(metrics, compared().map(TrialOutcome::metric_values));

    let row = outcomes
        .row_of(trial)?
        .context("the best trial has no row")?;
    let mut choice = SplitChoice {
        split: split.map(|split| split.to_string()),
        trials: places.len(),
        trial,
        pipeline: row.pipeline.clone(),
        metric,
        value,
        corrected: None,
        validation: None,
        baseline: None,
        test: None,
        evaluation: BTreeMap::new(),
        importances: None,
        pipelines,
        front,
    };

    // With more trials than this, the predictions of each trial are not kept.
    let mut rows = Vec::new();
    if places.len() <= MAX_COMPARED_TRIALS {
        for place in places {
            rows.push(outcomes.row(*place)?);
        }
    }
    choice.estimate_scores(sweep, &row, &rows)?;
    Ok(Some(choice))
}

impl SplitChoice {
    /// Estimates the scores of the chosen trial. `rows` has the rows of all trials that were
    /// compared, or is empty.
    fn estimate_scores(
        &mut self,
        sweep: &SweepFolder,
        best: &TrialRow,
        rows: &[TrialRow],
    ) -> Result<()> {
        let resamples = sweep.config.evaluation.resamples;
        let seed = sweep.config.seed;
        let tables = trial_data::fit_tables(sweep, &best.trial_config()?)?;

        let own = trial_data::trial_predictions(sweep, best, &tables)?;
        let threshold = own.as_ref().and_then(|own| chosen_threshold(&tables, own));
        self.validation = match (own, &tables.validate) {
            (Some(own), Some(validate)) => {
                let predicted = doubles(&own.validation);
                true_targets(validate, HALF).interval(&self.metric, &predicted, resamples, seed)
            }
            (Some(own), None) if tables.samples.is_some() => {
                let known = PredictedRows::predicted_by_all(&tables.train, &[&own.folds]);
                let truth = true_targets(&known.table, FMeasureThreshold::Chosen);
                truth.interval(&self.metric, &known.trials[0], resamples, seed)
            }
            _ => None,
        };

        self.baseline = baseline_estimate(&self.metric, &tables, resamples, seed);

        let tested = trial_data::test_predictions(sweep, best)?;
        if let Some((table, probabilities)) = &tested {
            let probabilities = doubles(probabilities);
            let threshold = threshold.map_or(HALF, FMeasureThreshold::At);
            let truth = true_targets(table, threshold);
            self.test = truth.interval(&self.metric, &probabilities, resamples, seed);
        }

        // The model may have been removed, for example by `--keep 0`.
        if best.fit.is_some()
            && let Ok(fitted) = FittedPipeline::open(&trial_dir(&sweep.dir, best.trial))
        {
            let of_test = tested.as_ref().map(|(table, _)| table);
            self.describe_model(sweep, &fitted, &tables, of_test)?;
        }

        // If the predictions of one trial are missing, the luck of the choice cannot be estimated.
        let all: Option<Vec<TrialPredictions>> = rows
            .iter()
            .map(|row| trial_data::trial_predictions(sweep, row, &tables))
            .collect::<Result<_>>()?;
        self.corrected = all
            .filter(|all| !all.is_empty())
            .and_then(|all| corrected_estimate(&self.metric, &tables, &all, resamples, seed));
        Ok(())
    }
}

impl SplitChoice {
    /// Scores the chosen pipeline `fitted` on further splits, and computes the importance of its
    /// features on rows that it did not learn from. Uses `of_test` if there are no held-out rows.
    fn describe_model(
        &mut self,
        sweep: &SweepFolder,
        fitted: &FittedPipeline,
        tables: &FitTables,
        of_test: Option<&FeatureTable>,
    ) -> Result<()> {
        let resamples = sweep.config.evaluation.resamples;
        let seed = sweep.config.seed;
        for (name, table) in &tables.evaluate {
            let predicted = fitted.predict(table)?;
            let truth = true_targets(table, HALF);
            let estimate = truth.interval(&self.metric, &predicted, resamples, seed);
            self.evaluation.insert(name.clone(), estimate);
        }

        let held_out = tables.validate.as_ref().or(of_test);
        let held_out = held_out.or(tables.evaluate.values().next());
        let metric = self.metric.of_predictions();
        let importances = FeatureImportances::compute(fitted, held_out, &metric, seed);
        self.importances = Some(importances);
        Ok(())
    }
}

/// A row counts as a member of the more probable one of two classes.
const HALF: FMeasureThreshold = FMeasureThreshold::At(0.5);

fn true_targets(table: &FeatureTable, threshold: FMeasureThreshold) -> TrueTargets<'_> {
    TrueTargets {
        targets: &table.targets,
        groups: &table.groups,
        threshold,
    }
}

/// The score of one answer for all held-out rows, or without any for the rows in folds: the number with the least
/// loss on the rows that are learned from, or the shares of their classes.
fn baseline_estimate(
    metric: &Metric,
    tables: &FitTables,
    resamples: usize,
    seed: u64,
) -> Option<ScoreEstimate> {
    if tables.samples.is_some() || metric.name == MetricName::ValidationRocAuc {
        return None;
    }
    let answer = match &tables.train.targets {
        RowTargets::Numbers(numbers) => vec![best_constant(numbers)],
        RowTargets::Classes(classes) => classes.shares(),
    };
    let asked = tables.validate.as_ref().unwrap_or(&tables.train);
    let predicted = answer.repeat(asked.row_count());
    true_targets(asked, HALF).interval(metric, &predicted, resamples, seed)
}

/// The corrected score of the best trial of `all`, estimated on the rows that every trial
/// predicted. These are the rows in folds if there are folds, else the held-out rows.
fn corrected_estimate(
    metric: &Metric,
    tables: &FitTables,
    all: &[TrialPredictions],
    resamples: usize,
    seed: u64,
) -> Option<ScoreEstimate> {
    let width = tables.train.targets.width();
    let has_folds = all.iter().all(|one| !one.folds.is_empty());
    let table = if has_folds {
        &tables.train
    } else {
        tables.validate.as_ref()?
    };

    let mut predicted: Vec<&[f32]> = Vec::new();
    for one in all {
        let values = if has_folds {
            &one.folds
        } else {
            &one.validation
        };
        if values.len() != table.row_count() * width {
            return None;
        }
        predicted.push(values);
    }

    let known = PredictedRows::predicted_by_all(table, &predicted);
    let truth = true_targets(&known.table, threshold_of(tables));
    truth.corrected(metric, &known.trials, resamples, seed)
}

/// The threshold of F-measures for predictions on `tables`.
fn threshold_of(tables: &FitTables) -> FMeasureThreshold {
    if tables.samples.is_some() {
        FMeasureThreshold::Chosen
    } else {
        HALF
    }
}

/// The success probability threshold with the largest F-measure on samples after the time cuts; `None`
/// for tables.
fn chosen_threshold(tables: &FitTables, own: &TrialPredictions) -> Option<f64> {
    tables.samples.as_ref()?;
    let known = PredictedRows::predicted_by_all(&tables.train, &[&own.folds]);
    let successes = known.trials.first()?.chunks_exact(2).map(|both| both[1]);
    let probabilities: Vec<f64> = successes.collect();
    let classes = known.table.targets.classes();
    let labels: Vec<bool> = classes.iter().map(|class| *class == 1).collect();
    Some(choose_threshold(
        &probabilities,
        &labels,
        Threshold::FMeasure,
    ))
}

/// The rows of a table that every trial of a set predicted.
struct PredictedRows {
    table: FeatureTable,
    /// The predictions of each trial for these rows, `[n, width]`.
    trials: Vec<Vec<f64>>,
}

impl PredictedRows {
    /// Selects the rows of `table` that are not NaN in any of `predicted`, which has an array `[n,
    /// width]` for each trial.
    fn predicted_by_all(table: &FeatureTable, predicted: &[&[f32]]) -> PredictedRows {
        let width = table.targets.width();
        let is_known = |row: &usize| predicted.iter().all(|values| !values[row * width].is_nan());
        let known: Vec<usize> = (0..table.row_count()).filter(is_known).collect();

        let mut trials: Vec<Vec<f64>> = Vec::new();
        for values in predicted {
            let of_row = |row: &usize| doubles(&values[row * width..][..width]);
            trials.push(known.iter().flat_map(of_row).collect());
        }
        PredictedRows {
            table: table.select_rows(&known),
            trials,
        }
    }
}

fn doubles(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}
