//! What a run has learned about held jobs, and its origin.

use std::iter;
use std::path::Path;

use anyhow::Result;

use poolcast_advice::{AdviceModel, ModelOrigin, RehearsedSkill};
use poolcast_base::manifest;
use poolcast_events::{EVENTS_FORMAT, HoldSource, StoreSummary};
use poolcast_holds::answers::LearnedAnswers;
use poolcast_holds::rehearsal::RehearsalTally;
use poolcast_sweep as sweep;

/// The answers of a run, with their origin.
pub(super) struct RunAnswers {
    /// The answers; `None` if the run has none, as a single training.
    pub(super) learned: Option<LearnedAnswers>,
    /// Their origin.
    pub(super) origin: ModelOrigin,
}

impl RunAnswers {
    /// Opens the answers in `results`.
    ///
    /// # Errors
    /// Fails if a file of the answers is damaged or of another version.
    pub(super) fn open(results: &Path) -> Result<RunAnswers> {
        Ok(RunAnswers {
            learned: LearnedAnswers::open(&sweep::answers_dir(results))?,
            origin: model_origin(results),
        })
    }

    /// The model that judges held jobs; `None` if there are no answers.
    pub(super) fn model(&self) -> Option<AdviceModel<'_>> {
        Some(AdviceModel {
            answers: self.learned.as_ref()?,
            origin: &self.origin,
        })
    }
}

/// The origin of what was learned in `results`, or in the sweep that these are a part of.
fn model_origin(results: &Path) -> ModelOrigin {
    let mut sweeps = iter::once(results).chain(sweeps_above(results));
    let events = sweeps.find_map(|sweep| {
        manifest::read::<StoreSummary>(&sweep::events_dir(sweep), EVENTS_FORMAT).ok()
    });
    // A damaged rehearsal is reported where it is read for itself.
    let rehearsal = RehearsalTally::read(results).ok().flatten();
    let events = events.map(|events| events.body);
    ModelOrigin {
        rehearsed: rehearsal.as_ref().map(RehearsedSkill::from),
        source: (events.as_ref()).map_or(HoldSource::Log, StoreSummary::source),
        from_ms: events.as_ref().map(|events| events.begin_ms),
        access_points: events.map_or(Vec::new(), |events| events.aps),
    }
}

/// The directories in which the run in `dir` may be part of a sweep: a trial is two directories below
/// its sweep, and an ensemble one directory.
pub(super) fn sweeps_above(dir: &Path) -> impl Iterator<Item = &Path> {
    let above = dir.parent();
    let of_ensemble = above.filter(|above| sweep::ensemble_dir(above) == dir);
    let of_trial = above.and_then(Path::parent);
    of_ensemble.into_iter().chain(of_trial)
}
