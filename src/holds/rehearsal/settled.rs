//! Settles answers: what would have come of a release at the second of the question.

use serde::Serialize;

use super::known_outcome::KnownOutcome;
use super::rehearsed_answer::RehearsedAnswer;
use crate::answers::{HoldHistory, LearnedFrom};
use crate::decision::{AnswerFirmness, HoldAction};

/// A hold that was asked about, for who knows the truth about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RehearsedHold {
    /// Cluster of the job.
    pub cluster: i32,
    /// Proc of the job.
    pub proc: i32,
    /// Number of earlier holds of the job.
    pub earlier_holds: u32,
    /// Time of the question, epoch ms.
    pub asked_ms: i64,
}

/// One settled answer, as written to a file.
#[derive(Debug, Clone, Serialize)]
pub struct AnswerRow {
    /// Time of the question, epoch ms.
    pub asked_ms: i64,
    /// The job, as `cluster.proc`.
    pub job: String,
    /// Start of the hold, epoch ms.
    pub held_since_ms: i64,
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// The action.
    pub action: HoldAction,
    /// The certainty of the action.
    pub firmness: Option<AnswerFirmness>,
    /// Probability of success that the page states, if released now, unrepaired; `None` if it is
    /// unknown.
    pub probability: Option<f64>,
    /// Probability of success if released later, unrepaired.
    pub later: f64,
    /// Jobs held for the cause, this one included.
    pub held_for_cause: usize,
    /// True if the rule for the hold code decided.
    pub is_by_rule: bool,
    /// True if the odds follow from outcomes at other access points.
    pub is_known_from_elsewhere: bool,
    /// What is known about the answer.
    #[serde(flatten)]
    pub truth: KnownOutcome,
}

/// The answers of a rehearsal, each with what is known about it.
#[derive(Debug)]
pub struct SettledAnswers<'a> {
    pub(crate) answers: Vec<(&'a RehearsedAnswer, KnownOutcome)>,
}

impl<'a> SettledAnswers<'a> {
    /// Settles the answers by `truth`, where it knows a hold.
    pub fn by_truth(
        answers: &'a [RehearsedAnswer],
        history: &HoldHistory<'_>,
        truth: impl Fn(RehearsedHold) -> Option<KnownOutcome>,
    ) -> SettledAnswers<'a> {
        let jobs = history.store.jobs();
        SettledAnswers::settle(answers, |answer| {
            let hold = &history.holds[answer.hold];
            let job = jobs.get(hold.job as usize);
            let asked = RehearsedHold {
                cluster: job.cluster,
                proc: job.proc,
                earlier_holds: hold.cycle.earlier_holds,
                asked_ms: answer.asked_ms,
            };
            truth(asked).unwrap_or_default()
        })
    }

    /// Settles the answers by the evidence in the log.
    pub fn by_evidence(
        answers: &'a [RehearsedAnswer],
        history: &HoldHistory<'_>,
    ) -> SettledAnswers<'a> {
        let end_ms = history.store.summary.end_ms;
        SettledAnswers::settle(answers, |answer| {
            let hold = &history.holds[answer.hold];
            KnownOutcome::known_at(history, hold, answer.asked_ms, end_ms)
        })
    }

    /// Returns the answers as rows, in the order in which they were given.
    pub fn rows(&self, history: &HoldHistory<'_>) -> Vec<AnswerRow> {
        let jobs = history.store.jobs();
        let row = |(answer, truth): &(&RehearsedAnswer, KnownOutcome)| {
            let hold = &history.holds[answer.hold];
            let job = jobs.get(hold.job as usize);
            AnswerRow {
                asked_ms: answer.asked_ms,
                job: job.id(),
                held_since_ms: hold.hold_ms,
                hold_code: hold.code,
                hold_subcode: hold.subcode,
                action: answer.action,
                firmness: answer.firmness,
                probability: answer.stated,
                later: answer.odds.later,
                held_for_cause: answer.held_for_cause,
                is_by_rule: answer.is_by_rule,
                is_known_from_elsewhere: answer.odds.learned_from == LearnedFrom::OtherLogs,
                truth: *truth,
            }
        };
        self.answers.iter().map(row).collect()
    }

    fn settle(
        answers: &'a [RehearsedAnswer],
        truth: impl Fn(&RehearsedAnswer) -> KnownOutcome,
    ) -> SettledAnswers<'a> {
        SettledAnswers {
            answers: answers
                .iter()
                .map(|answer| (answer, truth(answer)))
                .collect(),
        }
    }
}
