//! Scores the model in the directory of a run, and finds the origin of that model.

use std::path::Path;

use anyhow::Result;

use poolcast_advice::{ModelOrigin, ModelSkill};
use poolcast_base::{manifest, output};
use poolcast_events::{EVENTS_FORMAT, HoldSource, StoreSummary};
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
    let evaluation = evaluate_run(model, dataset, split, resamples, best)?;
    if model.tensors_key != dataset.key {
        output::note(
            "note: the model was trained on other tensors; these may include holds that it learned from",
        );
    }
    manifest::write_json(&evaluation_path(dir, split), &evaluation)?;
    Ok(evaluation)
}

/// The origin of the model of the run in `dir`, which was found through `results`.
pub(super) fn model_origin(dir: &Path, results: &Path) -> ModelOrigin {
    // A trial is two directories below its sweep, an ensemble one directory.
    let above = dir.parent();
    let of_ensemble = above.filter(|above| sweep::ensemble_dir(above) == dir);
    let of_trial = above.and_then(Path::parent);
    let sweeps = [Some(results), of_ensemble, of_trial];
    let events = sweeps.into_iter().flatten().find_map(|sweep| {
        manifest::read::<StoreSummary>(&sweep::events_dir(sweep), EVENTS_FORMAT).ok()
    });
    ModelOrigin {
        skill: model_skill(dir),
        source: (events.as_ref()).map_or(HoldSource::Log, |events| events.body.source()),
        access_points: events.map_or(Vec::new(), |events| events.body.aps),
        facts: None,
    }
}

fn model_skill(dir: &Path) -> Option<ModelSkill> {
    let evaluation: ModelEvaluation =
        manifest::read_json(&evaluation_path(dir, Split::Test)).ok()?;
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
