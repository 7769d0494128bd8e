//! The rows of a sweep with pipelines → for each split the best trial, and what it is worth on rows that it did not learn from.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::fits::{Predictions, Rows};
use super::folder::Sweep;
use super::importance::FeatureImportances;
use super::row::Row;
use super::selection::{Estimate, Truth};
use super::source;
use super::status::Leader;
use super::trial::trial_dir;
use crate::config::Metric;
use crate::pipelines::Fitted;
use crate::tables::Table;

/// The file that keeps the choices.
pub const SELECTION_FILE: &str = "selection.json";

/// The best trial of a split.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Choice {
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
    pub corrected: Option<Estimate>,
    /// Its score on the rows held out; with folds these had no part in the choice.
    pub validation: Option<Estimate>,
    /// Its score on the test side of samples of logs, which had no part in the choice.
    pub test: Option<Estimate>,
    /// Its score on each further split, none of which had a part in the choice; absent where that is not defined.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evaluation: BTreeMap<String, Option<Estimate>>,
    /// What its pipeline depends on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importances: Option<FeatureImportances>,
    /// The best of each pipeline.
    pub pipelines: BTreeMap<String, Leader>,
}

/// The choice in each split of `rows`.
///
/// # Errors
/// Fails where the rows of a split cannot be read.
pub fn choices(sweep: &Sweep, rows: &[Row]) -> Result<Vec<Choice>> {
    let splits: BTreeSet<Option<String>> = rows.iter().map(|row| row.split.clone()).collect();
    let chosen = splits.into_iter().map(|split| {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.split == split && row.value.is_some()).collect();
        choice(sweep, split, &rows)
    });
    Ok(chosen.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

fn choice(sweep: &Sweep, split: Option<String>, rows: &[&Row]) -> Result<Option<Choice>> {
    let metric = sweep.config.wandb.sweep.metric.clone();
    let best = |rows: Vec<&Row>| Leader::of(&metric, rows);
    let Some(Leader { trial, value }) = best(rows.to_vec()) else { return Ok(None) };
    let names: BTreeSet<&str> = rows.iter().map(|row| row.pipeline.as_str()).collect();
    let of = |name: &str| best(rows.iter().filter(|row| row.pipeline == name).copied().collect());
    let pipelines = names.iter().filter_map(|name| Some(((*name).to_owned(), of(name)?))).collect();
    let row = rows.iter().find(|row| row.trial == trial);
    let pipeline = row.map_or(String::new(), |row| row.pipeline.clone());
    let mut choice = Choice {
        split,
        trials: rows.len(),
        trial,
        pipeline,
        metric,
        value,
        corrected: None,
        validation: None,
        test: None,
        evaluation: BTreeMap::new(),
        importances: None,
        pipelines,
    };
    if let Some(row) = row {
        choice.estimate(sweep, row, rows)?;
    }
    Ok(Some(choice))
}

impl Choice {
    fn estimate(&mut self, sweep: &Sweep, best: &Row, rows: &[&Row]) -> Result<()> {
        let (resamples, seed) = (sweep.config.evaluation.resamples, sweep.config.seed);
        let source = source::rows(sweep, &best.config)?;
        let predicted = |row: &Row| source::predictions(sweep, row, &source).ok();
        if let (Some(validate), Some(own)) = (&source.validate, predicted(best)) {
            self.validation = truth(validate).interval(&self.metric, &doubles(&own.validation), resamples, seed);
        }
        if let Some((table, probabilities)) = source::test(sweep, best)? {
            self.test = truth(&table).interval(&self.metric, &doubles(&probabilities), resamples, seed);
        }
        // Its model may have been removed, as by `--keep 0`.
        if best.fit.is_some()
            && let Ok(fitted) = Fitted::open(&trial_dir(&sweep.dir, best.trial))
        {
            for (name, table) in &source.evaluate {
                let estimate = truth(table).interval(&self.metric, &fitted.probabilities(table)?, resamples, seed);
                self.evaluation.insert(name.clone(), estimate);
            }
            let held_out = source.validate.as_ref().or(source.evaluate.values().next());
            self.importances = Some(FeatureImportances::of(&fitted, held_out, &self.metric, seed));
        }
        let all: Option<Vec<Predictions>> = rows.iter().map(|row| predicted(row)).collect();
        self.corrected = all.and_then(|all| corrected(&self.metric, &source, &all, resamples, seed));
        Ok(())
    }
}

fn truth(table: &Table) -> Truth<'_> {
    Truth { y: &table.y, groups: &table.groups, classes: table.classes.len() }
}

/// Of the rows that every trial predicted: in folds, if there are any, else those held out.
fn corrected(metric: &Metric, rows: &Rows, all: &[Predictions], resamples: usize, seed: u64) -> Option<Estimate> {
    let classes = rows.train.classes.len();
    let has_folds = all.iter().all(|one| !one.folds.is_empty());
    let table = if has_folds { &rows.train } else { rows.validate.as_ref()? };
    let of: Vec<&[f32]> = all.iter().map(|one| if has_folds { &one.folds[..] } else { &one.validation[..] }).collect();
    if of.iter().any(|values| values.len() != table.n() * classes) {
        return None;
    }
    let is_known = |row: &usize| of.iter().all(|values| !values[row * classes].is_nan());
    let known: Vec<usize> = (0..table.n()).filter(is_known).collect();
    let table = table.rows(&known);
    let trials: Vec<Vec<f64>> = of
        .iter()
        .map(|values| known.iter().flat_map(|row| doubles(&values[row * classes..][..classes])).collect())
        .collect();
    truth(&table).corrected(metric, &trials, resamples, seed)
}

fn doubles(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

/// The trials of which models and predictions stay: the `keep` best networks, and the `keep` best pipelines of each split.
pub(super) fn kept(sweep: &Sweep, rows: &[Row], keep: usize) -> BTreeSet<usize> {
    let goal = sweep.config.wandb.sweep.metric.goal;
    let mut by_kind: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in rows {
        let Some(rank) = row.rank() else { continue };
        by_kind.entry((row.fit.is_some(), row.split.as_deref())).or_default().push((row.trial, rank));
    }
    let best = by_kind.into_values().flat_map(|mut valued| {
        // A stable sort: of equals the earlier trial is kept, as it is the better one.
        valued.sort_by(|a, b| goal.order(a.1, b.1));
        valued.into_iter().take(keep).map(|(trial, _)| trial)
    });
    best.collect()
}
