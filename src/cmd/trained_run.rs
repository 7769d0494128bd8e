//! Scores the model in the directory of a run.

use std::path::Path;

use anyhow::Result;

use super::run_answers::sweeps_above;
use poolcast_base::{manifest, output};
use poolcast_holds::training::{ModelEvaluation, TrainedModel, evaluate_run, evaluation_path};
use poolcast_sweep as sweep;
use poolcast_tensors::{Dataset, Split};

/// Scores `model`, which is in `dir`, on one split, and writes the scores next to it.
pub(super) fn score(
    model: &TrainedModel,
    dir: &Path,
    dataset: &Dataset,
    split: Split,
    resamples: usize,
    best: Option<Vec<f64>>,
) -> Result<ModelEvaluation> {
    let mut evaluation = evaluate_run(model, dataset, split, resamples, best)?;
    if split == Split::Test {
        let probed = |sweep| sweep::probed_scores(sweep, model, dataset, resamples).transpose();
        evaluation.after_probes = sweeps_above(dir).find_map(probed).transpose()?;
    }
    if model.tensors_key != dataset.key {
        output::note(
            "note: the model was trained on other tensors; these may include holds that it learned from",
        );
    }
    manifest::write_json(&evaluation_path(dir, split), &evaluation)?;
    Ok(evaluation)
}
