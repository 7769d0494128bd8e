//! The directory of a run → its scores on tensors, its advice on held jobs.

use std::path::Path;

use anyhow::Result;

use crate::advice::{self, Advice, Selection, Skill};
use crate::config::Config;
use crate::events::EventStore;
use crate::tensors::{Dataset, SplitSide};
use crate::training::{Evaluation, Run, evaluate};
use crate::{manifest, output};

/// Scores `run`, which is in `dir`, on one side and writes the scores beside it.
pub(super) fn score(
    run: &Run,
    dir: &Path,
    dataset: &Dataset,
    side: SplitSide,
    resamples: usize,
    best: Option<Vec<f64>>,
) -> Result<Evaluation> {
    let evaluation = evaluate(run, dataset, side, resamples, best)?;
    if run.summary.tensors_key != dataset.key {
        output::note(
            "note: the model was trained on other tensors; holds that it learned from may be among these",
        );
    }
    manifest::write_json(&Evaluation::path(dir, side), &evaluation)?;
    Ok(evaluation)
}

/// Judges held jobs with the model of the run in `dir` and what its evaluation showed.
pub(super) fn judge(
    store: &EventStore,
    run: &Run,
    dir: &Path,
    config: &Config,
    selections: &[Selection],
) -> Result<Vec<Advice>> {
    advice::advise(store, run, skill(dir), &config.advice, selections)
}

fn skill(dir: &Path) -> Option<Skill> {
    let evaluation: Evaluation =
        manifest::read_json(&Evaluation::path(dir, SplitSide::Test)).ok()?;
    let score = evaluation
        .methods
        .first()?
        .scores
        .iter()
        .find(|score| score.name == "roc_auc")?;
    Some(Skill {
        roc_auc: score.value?,
        interval: score.interval?,
    })
}
