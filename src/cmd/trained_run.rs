//! The directory of a run → its scores on tensors, its advice on held jobs.

use std::path::Path;

use anyhow::Result;

use crate::advice::{self, JobAdvice, JobSelection, ModelSkill};
use crate::config::Config;
use crate::events::EventStore;
use crate::tensors::{Dataset, SplitSide};
use crate::training::{ModelEvaluation, TrainedModel, evaluate_run, evaluation_path};
use crate::{manifest, output};

/// Scores `model`, which is in `dir`, on one side and writes the scores beside it.
pub(super) fn score(
    model: &TrainedModel,
    dir: &Path,
    dataset: &Dataset,
    side: SplitSide,
    resamples: usize,
    best: Option<Vec<f64>>,
) -> Result<ModelEvaluation> {
    let evaluation = evaluate_run(model, dataset, side, resamples, best)?;
    if model.tensors_key != dataset.key {
        output::note(
            "note: the model was trained on other tensors; holds that it learned from may be among these",
        );
    }
    manifest::write_json(&evaluation_path(dir, side), &evaluation)?;
    Ok(evaluation)
}

/// Judges the jobs held at `at_ms`, or when the log ends, with the model of the run in `dir` and
/// what its evaluation showed.
pub(super) fn judge(
    store: &EventStore,
    model: &TrainedModel,
    dir: &Path,
    config: &Config,
    selections: &[JobSelection],
    at_ms: Option<i64>,
) -> Result<Vec<JobAdvice>> {
    advice::advise(
        store,
        model,
        model_skill(dir),
        &config.advice,
        selections,
        at_ms,
    )
}

fn model_skill(dir: &Path) -> Option<ModelSkill> {
    let evaluation: ModelEvaluation =
        manifest::read_json(&evaluation_path(dir, SplitSide::Test)).ok()?;
    let score = evaluation
        .methods
        .first()?
        .scores
        .iter()
        .find(|score| score.name == "roc_auc")?;
    Some(ModelSkill {
        roc_auc: score.value?,
        interval: score.interval?,
    })
}
