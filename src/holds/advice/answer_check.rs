//! Compares earlier answers with a later log, and counts the correct ones.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::action::{AnswerFirmness, HoldAction};
use super::answer_ledger::{GivenAnswer, HoldKey};
use super::cause_groups::answer_rank;
use crate::events::{EventStore, StoredJob};
use crate::tensors::{ExclusionReason, HoldCycle, HoldOutcome, hold_cycles};
use poolcast_config::LabelKind;

/// Outcomes of the holds that got one kind of answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerOutcomes {
    /// The action that was recommended.
    pub action: HoldAction,
    /// Certainty of the answer.
    pub firmness: Option<AnswerFirmness>,
    /// Holds whose last answer was this one.
    pub given: usize,
    /// Holds among `given` that are missing from the log.
    pub not_in_log: usize,
    /// Holds among `given` that still last when the log ends.
    pub still_held: usize,
    /// Holds among `given` that ended in a release.
    pub released: usize,
    /// Holds among `given` that were released and have a known outcome.
    pub decided: usize,
    /// Successes among `decided`.
    pub succeeded: usize,
    /// Correct answers among `decided`. `release` is correct after a success; `fix`, `remove` and
    /// `later` are correct after a failure. Absent for other actions.
    pub right: Option<usize>,
}

/// Outcomes of all answers.
#[derive(Debug, Clone, Serialize)]
pub struct AnswerCheck {
    /// Prediction time of the first answer, epoch ms; absent if there are no answers.
    pub since_ms: Option<i64>,
    /// End of the log, epoch ms.
    pub log_end_ms: i64,
    /// Outcomes by kind of answer, in display order.
    pub answers: Vec<AnswerOutcomes>,
}

/// Totals over all answers given earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerTally {
    /// Prediction time of the first answer, epoch ms.
    pub since_ms: i64,
    /// Answers that are known to be right or wrong.
    pub decided: usize,
    /// Correct answers among `decided`.
    pub right: usize,
    /// Answers `fix` and `later` after which the job succeeded. The log does not show whether
    /// somebody followed the advice, so these answers are neither right nor wrong.
    pub heeded_or_wrong: usize,
}

impl AnswerCheck {
    /// Adds up the rows; `None` if no answer is known to be right or wrong.
    pub fn tally(&self) -> Option<AnswerTally> {
        let mut tally = AnswerTally {
            since_ms: self.since_ms?,
            decided: 0,
            right: 0,
            heeded_or_wrong: 0,
        };
        for row in &self.answers {
            let Some(right) = row.right else {
                continue;
            };
            // A success after `fix` or `later` may be due to the advice: it proves nothing.
            let is_to_change = matches!(row.action, HoldAction::Fix | HoldAction::Later);
            let ambiguous = if is_to_change { row.succeeded } else { 0 };
            tally.right += right;
            tally.decided += row.decided - ambiguous;
            tally.heeded_or_wrong += ambiguous;
        }
        (tally.decided > 0).then_some(tally)
    }
}

/// Looks up the outcome of each answer in `given` by the end of `store`. If a hold got several
/// answers, the last one counts.
pub fn check_answers(given: &[GivenAnswer], store: &EventStore) -> AnswerCheck {
    let mut last: HashMap<HoldKey, &GivenAnswer> = HashMap::new();
    for answer in given {
        last.insert(answer.hold(), answer);
    }

    let mut rows: BTreeMap<u8, AnswerOutcomes> = BTreeMap::new();
    for answer in last.values() {
        let rank =
            2 * answer_rank(answer.action, answer.firmness) + u8::from(answer.firmness.is_none());
        let row = rows
            .entry(rank)
            .or_insert_with(|| AnswerOutcomes::none(answer));
        row.given += 1;
        row.not_in_log += 1;
    }
    // Every answer starts as `not_in_log`; `add` corrects this for each hold that the log has.
    for job in store.jobs().iter() {
        let ap = &store.summary.aps[job.ap as usize];
        for cycle in hold_cycles(job.history, LabelKind::Next, store.gaps(job.ap)) {
            let hold = (
                ap.clone(),
                job.cluster,
                job.proc,
                job.submit_ms,
                job.history.time_ms[cycle.hold],
            );
            let Some(answer) = last.get(&hold) else {
                continue;
            };
            let rank = 2 * answer_rank(answer.action, answer.firmness)
                + u8::from(answer.firmness.is_none());
            if let Some(row) = rows.get_mut(&rank) {
                row.add(&job, &cycle);
            }
        }
    }
    AnswerCheck {
        since_ms: given.iter().map(|answer| answer.asked_ms).min(),
        log_end_ms: store.summary.end_ms,
        answers: rows.into_values().collect(),
    }
}

impl AnswerOutcomes {
    fn none(answer: &GivenAnswer) -> AnswerOutcomes {
        let is_checkable = !matches!(answer.action, HoldAction::Leave | HoldAction::None);
        AnswerOutcomes {
            action: answer.action,
            firmness: answer.firmness,
            given: 0,
            not_in_log: 0,
            still_held: 0,
            released: 0,
            decided: 0,
            succeeded: 0,
            right: is_checkable.then_some(0),
        }
    }

    /// Adds the outcome of a hold that got this answer.
    fn add(&mut self, job: &StoredJob<'_>, cycle: &HoldCycle) {
        self.not_in_log = self.not_in_log.saturating_sub(1);
        self.released += usize::from(cycle.is_released(&job.history));
        match cycle.outcome {
            HoldOutcome::LeftOut(ExclusionReason::StillHeld) => self.still_held += 1,
            HoldOutcome::LeftOut(_) => {}
            HoldOutcome::Label(is_success) => {
                self.decided += 1;
                self.succeeded += usize::from(is_success);
                let was_expected = self.action == HoldAction::Release;
                if let Some(right) = &mut self.right {
                    *right += usize::from(is_success == was_expected);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(action: HoldAction, decided: usize, succeeded: usize) -> AnswerOutcomes {
        let right = match action {
            HoldAction::Release => Some(succeeded),
            HoldAction::Leave | HoldAction::None => None,
            _ => Some(decided - succeeded),
        };
        AnswerOutcomes {
            action,
            firmness: None,
            given: decided,
            not_in_log: 0,
            still_held: 0,
            released: decided,
            decided,
            succeeded,
            right,
        }
    }

    fn tally(answers: Vec<AnswerOutcomes>) -> Option<AnswerTally> {
        let check = AnswerCheck {
            since_ms: Some(7),
            log_end_ms: 9,
            answers,
        };
        check.tally()
    }

    #[test]
    fn successes_after_fix_or_later_are_neither_right_nor_wrong() {
        let rows = vec![
            row(HoldAction::Release, 10, 8),
            row(HoldAction::Fix, 20, 5),
            row(HoldAction::Later, 4, 3),
            row(HoldAction::Remove, 3, 1),
            row(HoldAction::None, 100, 50),
        ];
        let expected = AnswerTally {
            since_ms: 7,
            decided: 10 + 15 + 1 + 3,
            right: 8 + 15 + 1 + 2,
            heeded_or_wrong: 8,
        };
        assert_eq!(tally(rows), Some(expected));
    }

    #[test]
    fn tally_is_none_without_decided_answers() {
        assert_eq!(tally(Vec::new()), None);
        assert_eq!(tally(vec![row(HoldAction::None, 5, 5)]), None);
        assert_eq!(tally(vec![row(HoldAction::Release, 0, 0)]), None);
        assert_eq!(tally(vec![row(HoldAction::Fix, 2, 2)]), None);
    }
}
