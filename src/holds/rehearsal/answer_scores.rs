//! Scores of one model as the only member of the answers, by which the trials of a sweep are compared.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::known_outcome::KnownOutcome;
use super::member_tally::{QuestionScores, outcomes};
use super::schedule::even_schedule;
use crate::answers::{AnswerModel, HoldHistory};
use crate::config::AdviceConfig;
use poolcast_config::MetricName;

/// Scores of the odds for both questions about held jobs, at moments through a log.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AnswerScores {
    /// Scores for a release now.
    pub now: QuestionScores,
    /// Scores for a release later.
    pub later: QuestionScores,
}

/// The moments at which a model is scored.
#[derive(Debug, Clone, Copy)]
pub struct ScoredMoments {
    /// Number of models, which learn at times spread evenly from 30 % of the time on, as in a rehearsal.
    pub models: u32,
    /// Share of the log's time, from its beginning, in which models learn, are asked, and are settled. What comes
    /// after it remains for judging the choice among the trials.
    pub share: f64,
}

impl AnswerScores {
    /// The value of the metric `name`; `None` if it is not one of answers.
    pub fn value(&self, name: MetricName) -> Option<f64> {
        if name == MetricName::AnswersLogLoss {
            self.log_loss()
        } else {
            None
        }
    }

    /// The mean logarithmic loss over the questions with known outcomes; `None` without any.
    fn log_loss(&self) -> Option<f64> {
        let losses = [self.now.log_loss, self.later.log_loss];
        let known: Vec<f64> = losses.into_iter().flatten().collect();
        (!known.is_empty()).then(|| poolcast_base::stats::mean(&known))
    }
}

/// Scores the first of the members in `advice` alone: it learns from what was known at `moments` through `history`,
/// and is asked about all jobs that are held. The odds are those before the calibration.
///
/// # Errors
/// Fails once `stop` returns true, and if the model cannot be fitted.
pub fn score_answers(
    history: &HoldHistory<'_>,
    advice: &AdviceConfig,
    moments: ScoredMoments,
    seed: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<AnswerScores> {
    let summary = &history.store.summary;
    let length_ms = (summary.end_ms - summary.begin_ms) as f64;
    let end_ms = summary.begin_ms + (moments.share * length_ms) as i64;

    let mut odds: [Vec<f64>; 2] = Default::default();
    let mut successes: [Vec<bool>; 2] = Default::default();
    for scheduled in even_schedule(summary.begin_ms, end_ms, moments.models) {
        let learned = AnswerModel::learn(history, scheduled.known_ms, advice, seed, stop)?;
        let Some(model) = learned else { continue };
        for (_, asked_ms) in scheduled.moments() {
            let held = history.held_at(asked_ms);
            let answers = model.odds(history, &held, asked_ms)?;
            for (&hold, answer) in held.iter().zip(answers) {
                let hold = &history.holds[hold];
                let truth = KnownOutcome::known_at(history, hold, asked_ms, end_ms);
                let said = [answer.uncalibrated, answer.later];
                for (question, outcome) in outcomes(&truth).into_iter().enumerate() {
                    if let Some(is_success) = outcome {
                        odds[question].push(said[question]);
                        successes[question].push(is_success);
                    }
                }
            }
        }
    }

    let scores = |question: usize| QuestionScores::compute(&odds[question], &successes[question]);
    Ok(AnswerScores {
        now: scores(0),
        later: scores(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AnswerMember;
    use crate::test_config::TestConfig;
    use test_stores::log_with_outages;

    #[test]
    fn model_that_knows_the_state_of_the_server_has_the_lower_loss() {
        let mut log = log_with_outages(8);
        for at in 0..60 {
            log.add_held(7, 10_050 + 120 * at);
        }
        let store = log.store();
        let history = HoldHistory::new(&store);
        let scored = |member: AnswerMember, share| {
            let advice = AdviceConfig {
                members: vec![member],
                ..TestConfig::without_prior()
            };
            let moments = ScoredMoments { models: 2, share };
            score_answers(&history, &advice, moments, 1, &|| false).expect("scored")
        };
        let forest = || TestConfig::without_prior().members.remove(0);
        let constant = AnswerMember::Pipeline {
            name: "xgb".to_owned(),
            parameters: [("n_estimators".to_owned(), 1.into())].into(),
        };
        let (good, poor) = (scored(forest(), 1.0), scored(constant, 1.0));
        assert_eq!(good.now.settled, poor.now.settled);
        assert!(good.log_loss() < poor.log_loss(), "{good:?} {poor:?}");
        assert!(scored(forest(), 0.5).now.settled < good.now.settled);
    }

    #[test]
    fn log_without_outcomes_has_no_loss() {
        let store = test_stores::TestLog::default().store();
        let history = HoldHistory::new(&store);
        let advice = TestConfig::without_prior();
        let moments = ScoredMoments {
            models: 2,
            share: 0.8,
        };
        let scores = score_answers(&history, &advice, moments, 1, &|| false).expect("scored");
        assert_eq!(scores.log_loss(), None);
    }
}
