//! Chooses the ensemble of a sweep over samples of logs. Its members are the best trials of each
//! kind of model. It answers unless the best trial alone is shown to be better: without such a
//! proof, the choice of one trial is mostly luck.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::outcome::TrialOutcomes;
use super::rolling_truth::RollingTruth;
use crate::attempts::pooled_scores;
use crate::plan::SweepFolder;
use crate::plan::{PREDICTIONS_FILE, trial_dir};
use poolcast_base::manifest;
use poolcast_config::Metric;
use poolcast_holds::training::{
    RollingPredictions, TrainedModel, pooled_predictions, read_as_member,
};

/// The trials of an ensemble.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EnsembleChoice {
    /// The ensemble's value of the metric by which the best trial was chosen.
    pub value: f64,
    /// The best trial of each kind, in the order of the kinds.
    pub trials: Vec<TrialOfKind>,
}

impl EnsembleChoice {
    /// The trials and their kinds, as text.
    pub fn words(&self) -> String {
        let members = self.trials.iter();
        let words: Vec<String> = members
            .map(|member| format!("{} {}", member.trial, member.model))
            .collect();
        words.join(", ")
    }
}

/// The best trial of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialOfKind {
    /// The trial's number, from 1.
    pub trial: usize,
    /// The name of the network's architecture, or of the pipeline.
    pub model: String,
}

/// A trial with a value, and the keys by which it is compared.
struct RankedTrial {
    trial: usize,
    rank: (f64, f64),
}

/// The best trial of each kind, among those that learned from the same samples as the trial `best`,
/// which is the best by `metric`.
///
/// # Errors
/// Fails if rows cannot be read.
pub(crate) fn best_of_each_kind(
    metric: &Metric,
    best: usize,
    outcomes: &mut TrialOutcomes,
) -> Result<Vec<TrialOfKind>> {
    let mut by_kind: BTreeMap<Arc<str>, Vec<RankedTrial>> = BTreeMap::new();
    for outcome in outcomes.all() {
        if let Some(rank) = outcome.rank() {
            let kind = by_kind.entry(Arc::clone(&outcome.pipeline)).or_default();
            let trial = outcome.trial;
            kind.push(RankedTrial { trial, rank });
        }
    }

    let row = outcomes.row_of(best)?;
    let samples = row
        .context("the best trial has no row")?
        .trial_config()?
        .tensors;
    let mut found = Vec::new();
    for (kind, mut ranked) in by_kind {
        let order = |a: &RankedTrial, b: &RankedTrial| metric.goal.order(a.rank, b.rank);
        ranked.sort_by(|a, b| order(a, b).then(a.trial.cmp(&b.trial)));
        for RankedTrial { trial, .. } in ranked {
            let row = outcomes.row_of(trial)?;
            let row = row.context("a trial with a value has no row")?;
            if row.trial_config()?.tensors == samples {
                found.push(TrialOfKind {
                    trial,
                    model: kind.to_string(),
                });
                break;
            }
        }
    }
    Ok(found)
}

/// Chooses the ensemble, unless the trial `best`, which is the best by `metric`, is shown to be
/// better alone on the holds after the time cuts. `None` also if there are models of fewer than two
/// kinds.
///
/// # Errors
/// Fails if models and predictions exist but are not valid.
pub(crate) fn choose_ensemble(
    sweep: &SweepFolder,
    metric: &Metric,
    best: usize,
    outcomes: &mut TrialOutcomes,
) -> Result<Option<EnsembleChoice>> {
    let mut trials = Vec::new();
    let mut models = Vec::new();
    let mut alone = None;
    for trial in best_of_each_kind(metric, best, outcomes)? {
        let dir = trial_dir(&sweep.dir, trial.trial);
        // With many trials not all models are kept. A job that chooses by rows has no models.
        let is_kept = [manifest::FILE, PREDICTIONS_FILE]
            .iter()
            .all(|file| dir.join(file).is_file());
        if !is_kept {
            continue;
        }
        let model = TrainedModel::open(&dir)?;
        if trial.trial == best {
            alone = Some(read_as_member(&model)?);
        }
        trials.push(trial);
        models.push(model);
    }

    let Some(alone) = alone.filter(|_| models.len() > 1) else {
        return Ok(None);
    };
    let Some(together) = pooled_predictions(&models)? else {
        return Ok(None);
    };
    if is_shown_better(sweep, metric, [&alone, &together]) {
        return Ok(None);
    }
    let value = pooled_scores(&together).watched(metric.name);
    Ok(value.map(|value| EnsembleChoice { value, trials }))
}

/// Returns true if the first predictions are shown to be better by `metric` than the second ones,
/// for the same holds.
fn is_shown_better(
    sweep: &SweepFolder,
    metric: &Metric,
    predictions: [&RollingPredictions; 2],
) -> bool {
    let [better, worse] = predictions.map(RollingPredictions::class_probabilities);
    let truth = RollingTruth::new(predictions[0]);
    let (resamples, seed) = (sweep.config.evaluation.resamples, sweep.config.seed);
    let targets = truth.targets();
    targets.is_shown_better(metric, [&better, &worse], resamples, seed)
}
