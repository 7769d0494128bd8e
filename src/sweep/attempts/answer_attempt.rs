//! Scores the model of a trial as the only member of the answers about held jobs.

use anyhow::Context as _;

use super::deadline::{AttemptDeadline, AttemptError};
use crate::plan::TrialConfig;
use poolcast_events::EventStore;
use poolcast_holds::answers::HoldHistory;
use poolcast_holds::config::AdviceConfig;
use poolcast_holds::rehearsal::{AnswerScores, ScoredMoments, score_answers};

/// Scores the model of `trial`, which answers alone, at moments in the time of the training and validation samples of
/// `events`. As many models learn as a trial has time cuts.
///
/// # Errors
/// Fails if it was stopped, and if the model cannot be fitted.
pub(crate) fn score_as_member(
    trial: &TrialConfig,
    events: &EventStore,
    deadline: AttemptDeadline<'_>,
) -> Result<AnswerScores, AttemptError> {
    let config = &trial.written;
    let member = trial.answer_member()?;
    let advice = AdviceConfig {
        members: vec![member.context("the trial has no model of held jobs")?],
        ..config.advice.clone()
    };
    let [train, validate, _] = config.preprocessing.fractions;
    let moments = ScoredMoments {
        models: config.training.time_cuts as u32,
        share: train + validate,
    };
    let history = HoldHistory::new(events);
    let stop = || deadline.has_passed();
    let scores = score_answers(&history, &advice, moments, config.seed, &stop)?;
    Ok(scores)
}
