//! Scores the model in the directory of a run, and finds the origin of that model.

use std::iter;
use std::path::Path;

use anyhow::Result;

use poolcast_advice::{ModelOrigin, ModelSkill, RehearsedSkill};
use poolcast_base::{manifest, output};
use poolcast_events::{EVENTS_FORMAT, HoldSource, StoreSummary};
use poolcast_holds::rehearsal::RehearsalTally;
use poolcast_holds::training::{
    ModelEvaluation, TrainedModel, evaluate_run, evaluation_path, find_score,
};
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

/// The origin of the model of the run in `dir`, which was found through `results`.
pub(super) fn model_origin(dir: &Path, results: &Path) -> ModelOrigin {
    let mut sweeps = iter::once(results).chain(sweeps_above(dir));
    let events = sweeps.find_map(|sweep| {
        manifest::read::<StoreSummary>(&sweep::events_dir(sweep), EVENTS_FORMAT).ok()
    });
    // A damaged rehearsal is reported where it is read for itself.
    let rehearsal = RehearsalTally::read(results).ok().flatten();
    ModelOrigin {
        skill: model_skill(dir),
        rehearsed: rehearsal.as_ref().map(RehearsedSkill::from),
        source: (events.as_ref()).map_or(HoldSource::Log, |events| events.body.source()),
        access_points: events.map_or(Vec::new(), |events| events.body.aps),
        facts: None,
    }
}

/// The directories in which the run in `dir` may be part of a sweep: a trial is two directories below
/// its sweep, and an ensemble one directory.
fn sweeps_above(dir: &Path) -> impl Iterator<Item = &Path> {
    let above = dir.parent();
    let of_ensemble = above.filter(|above| sweep::ensemble_dir(above) == dir);
    let of_trial = above.and_then(Path::parent);
    of_ensemble.into_iter().chain(of_trial)
}

fn model_skill(dir: &Path) -> Option<ModelSkill> {
    let evaluation: ModelEvaluation =
        manifest::read_json(&evaluation_path(dir, Split::Test)).ok()?;
    let score = find_score(&evaluation.methods.first()?.scores, "roc_auc")?;
    Some(ModelSkill {
        roc_auc: score.value?,
        interval: score.interval?,
    })
}
