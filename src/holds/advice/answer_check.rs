//! Answers given earlier, and a log → what came of the jobs: how many answers were right.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::action::{AnswerFirmness, HoldAction};
use super::answer_ledger::{GivenAnswer, HoldOfJob};
use super::cause_groups::answer_rank;
use poolcast_config::LabelKind;
use crate::events::{EventStore, StoredJob};
use crate::tensors::{HoldCycle, HoldOutcome, LeftOutReason, hold_cycles};

/// What came of the holds that got one answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AnswerOutcomes {
    /// The answer.
    pub action: HoldAction,
    /// How firm it was.
    pub firmness: Option<AnswerFirmness>,
    /// How many holds got it, as the last answer to them.
    pub given: usize,
    /// Of these: those that the log does not tell of.
    pub not_in_log: usize,
    /// Those that are held still.
    pub still_held: usize,
    /// Those that were released.
    pub released: usize,
    /// Those that were released, and of which is known what came then.
    pub decided: usize,
    /// Those of them that succeeded.
    pub succeeded: usize,
    /// Those that came out as the answer said, of those that were decided: success after `release`, and
    /// failure after `fix`, `remove` and `later`; absent for other answers.
    pub right: Option<usize>,
}

/// What came of all answers.
#[derive(Debug, Clone, Serialize)]
pub struct AnswerCheck {
    /// The moment of the first answer, epoch ms; absent if there is none.
    pub since_ms: Option<i64>,
    /// The end of the log, epoch ms.
    pub log_end_ms: i64,
    /// By answer.
    pub answers: Vec<AnswerOutcomes>,
}

/// How answers given earlier turned out, in few numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerTally {
    /// The moment of the first answer, epoch ms.
    pub since_ms: i64,
    /// Answers of which is known whether they were right.
    pub decided: usize,
    /// Those of them that were.
    pub right: usize,
    /// Answers to fix a job first or to wait, after which it succeeded: the log does not tell whether
    /// somebody did so.
    pub heeded_or_wrong: usize,
}

impl AnswerCheck {
    /// Its sums; `None` where no answer was shown to be right or wrong.
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
            let is_to_change = matches!(row.action, HoldAction::Fix | HoldAction::Later);
            let untold = if is_to_change { row.succeeded } else { 0 };
            tally.right += right;
            tally.decided += row.decided - untold;
            tally.heeded_or_wrong += untold;
        }
        (tally.decided > 0).then_some(tally)
    }
}

/// What came of `given` by the end of `store`. Of several answers to a hold the last one counts.
pub fn check_answers(given: &[GivenAnswer], store: &EventStore) -> AnswerCheck {
    let mut last: HashMap<HoldOfJob, &GivenAnswer> = HashMap::new();
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
        let is_told_apart = !matches!(answer.action, HoldAction::Leave | HoldAction::None);
        AnswerOutcomes {
            action: answer.action,
            firmness: answer.firmness,
            given: 0,
            not_in_log: 0,
            still_held: 0,
            released: 0,
            decided: 0,
            succeeded: 0,
            right: is_told_apart.then_some(0),
        }
    }

    /// Adds a hold that got this answer.
    fn add(&mut self, job: &StoredJob<'_>, cycle: &HoldCycle) {
        self.not_in_log = self.not_in_log.saturating_sub(1);
        self.released += usize::from(cycle.is_released(&job.history));
        match cycle.outcome {
            HoldOutcome::LeftOut(LeftOutReason::StillHeld) => self.still_held += 1,
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
    fn what_may_have_been_mended_is_neither_right_nor_wrong() {
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
    fn nothing_is_said_where_no_answer_is_decided() {
        assert_eq!(tally(Vec::new()), None);
        assert_eq!(tally(vec![row(HoldAction::None, 5, 5)]), None);
        assert_eq!(tally(vec![row(HoldAction::Release, 0, 0)]), None);
        assert_eq!(tally(vec![row(HoldAction::Fix, 2, 2)]), None);
    }
}
