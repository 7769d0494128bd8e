//! Compares earlier answers with a later log, and counts the correct ones.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::action::{AnswerFirmness, HoldAction};
use super::answer_ledger::{GivenAnswer, HoldKey};
use super::cause_groups::answer_rank;
use crate::answers::is_visibly_repaired;
use crate::events::{EventStore, StoredJob};
use crate::tensors::{ExclusionReason, FrameChoice, HoldCycle, HoldOutcome, hold_cycles};
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
    /// Successes among `decided` before which the log shows that the job was changed.
    pub repaired: usize,
    /// Correct answers among `decided`. Absent for other actions than `release`, `fix`, `remove` and
    /// `later`.
    pub right: Option<usize>,
}

/// The decided outcome of a hold that got an answer.
#[derive(Debug, Clone, Copy)]
struct AnswerOutcome {
    is_success: bool,
    /// True if the log shows that the job was changed before it ran again.
    is_repaired: bool,
    /// True if the job was released at once, without waiting for a passing fault.
    is_at_once: bool,
}

/// Outcomes of all answers.
#[derive(Debug, Clone, Serialize)]
pub struct AnswerCheck {
    /// Prediction time of the first answer, epoch ms; absent if there are no answers.
    pub since_ms: Option<i64>,
    /// End of the log, epoch ms.
    pub log_end_ms: i64,
    /// Totals over all answers; absent if no answer is known to be right or wrong.
    pub total: Option<AnswerTally>,
    /// Outcomes by kind of answer, in display order.
    pub answers: Vec<AnswerOutcomes>,
}

/// Totals over all answers given earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct AnswerTally {
    /// Prediction time of the first answer, epoch ms.
    pub since_ms: i64,
    /// Answers that are known to be right or wrong.
    pub decided: usize,
    /// Correct answers among `decided`.
    pub right: usize,
}

impl AnswerTally {
    /// Adds up the rows; `None` if no answer is known to be right or wrong.
    fn from_rows(since_ms: Option<i64>, rows: &[AnswerOutcomes]) -> Option<AnswerTally> {
        let mut tally = AnswerTally {
            since_ms: since_ms?,
            decided: 0,
            right: 0,
        };
        for row in rows {
            if let Some(right) = row.right {
                tally.right += right;
                tally.decided += row.decided;
            }
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
    let at_once_ms = at_once_ms(store);
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
                row.add(&job, &cycle, answer.asked_ms + at_once_ms);
            }
        }
    }
    let since_ms = given.iter().map(|answer| answer.asked_ms).min();
    let answers: Vec<AnswerOutcomes> = rows.into_values().collect();
    AnswerCheck {
        since_ms,
        log_end_ms: store.summary.end_ms,
        total: AnswerTally::from_rows(since_ms, &answers),
        answers,
    }
}

/// Returns the time, in ms, within which a release after an answer counts as a release at once: a
/// tenth of the median hold.
fn at_once_ms(store: &EventStore) -> i64 {
    let median_ms = FrameChoice::by_log(store).median_hold_ms;
    median_ms.unwrap_or(0) / 10
}

impl AnswerOutcome {
    /// Returns true if `action` was right. `release` is right if the job succeeded, and `remove` if
    /// it did not. `fix` is right if it did not succeed unrepaired. `later` is right if the job
    /// succeeded later, or did not succeed at once.
    fn is_right(self, action: HoldAction) -> bool {
        match action {
            HoldAction::Release | HoldAction::Probe => self.is_success,
            HoldAction::Fix => !self.is_success || self.is_repaired,
            HoldAction::Later => self.is_success != self.is_at_once,
            HoldAction::Remove | HoldAction::Leave | HoldAction::None => !self.is_success,
        }
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
            repaired: 0,
            right: is_checkable.then_some(0),
        }
    }

    /// Adds the outcome of a hold that got this answer. A release until `at_once_ms` was at once.
    fn add(&mut self, job: &StoredJob<'_>, cycle: &HoldCycle, at_once_ms: i64) {
        self.not_in_log = self.not_in_log.saturating_sub(1);
        self.released += usize::from(cycle.is_released(&job.history));
        match cycle.outcome {
            HoldOutcome::LeftOut(ExclusionReason::StillHeld) => self.still_held += 1,
            HoldOutcome::LeftOut(_) => {}
            HoldOutcome::Label(is_success) => {
                let release_ms = cycle.end.map(|end| job.history.time_ms[end]);
                self.add_decided(AnswerOutcome {
                    is_success,
                    is_repaired: is_success && is_visibly_repaired(job, cycle),
                    is_at_once: release_ms.is_some_and(|release_ms| release_ms <= at_once_ms),
                });
            }
        }
    }

    fn add_decided(&mut self, outcome: AnswerOutcome) {
        self.decided += 1;
        self.succeeded += usize::from(outcome.is_success);
        self.repaired += usize::from(outcome.is_repaired);
        if let Some(right) = &mut self.right {
            *right += usize::from(outcome.is_right(self.action));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::ATTRIBUTE_UPDATE;
    use crate::events::store_of;
    use htcondor_eventlog::{
        EXECUTE, EventFacts, HELD, JobEvent, RELEASED, RunUsage, SUBMIT, TERMINATED,
    };

    /// Returns the outcome of one answer.
    fn outcome(is_success: bool, is_repaired: bool, is_at_once: bool) -> AnswerOutcome {
        AnswerOutcome {
            is_success,
            is_repaired,
            is_at_once,
        }
    }

    fn row(action: HoldAction, outcomes: &[AnswerOutcome]) -> AnswerOutcomes {
        let is_checkable = !matches!(action, HoldAction::Leave | HoldAction::None);
        let mut row = AnswerOutcomes {
            action,
            firmness: None,
            given: outcomes.len(),
            not_in_log: 0,
            still_held: 0,
            released: outcomes.len(),
            decided: 0,
            succeeded: 0,
            repaired: 0,
            right: is_checkable.then_some(0),
        };
        outcomes
            .iter()
            .for_each(|outcome| row.add_decided(*outcome));
        row
    }

    #[test]
    fn every_decided_answer_counts() {
        let (succeeded, failed) = (outcome(true, false, true), outcome(false, false, true));
        let rows = [
            row(HoldAction::Release, &[succeeded, succeeded, failed]),
            row(HoldAction::Fix, &[succeeded, succeeded, failed]),
            row(HoldAction::Later, &[succeeded, failed]),
            row(HoldAction::Remove, &[succeeded, failed, failed]),
            row(HoldAction::None, &[succeeded, failed]),
        ];
        let expected = AnswerTally {
            since_ms: 7,
            decided: 3 + 3 + 2 + 3,
            right: 2 + 1 + 1 + 2,
        };
        assert_eq!(AnswerTally::from_rows(Some(7), &rows), Some(expected));
    }

    #[test]
    fn success_after_fix_is_right_only_if_repaired() {
        let is_right = |is_success, is_repaired| {
            outcome(is_success, is_repaired, false).is_right(HoldAction::Fix)
        };
        assert_eq!(
            [
                is_right(true, false),
                is_right(true, true),
                is_right(false, false)
            ],
            [false, true, true]
        );
    }

    #[test]
    fn later_means_a_success_later_and_a_failure_at_once() {
        let is_right = |is_success, is_at_once| {
            outcome(is_success, false, is_at_once).is_right(HoldAction::Later)
        };
        assert!(is_right(true, false) && is_right(false, true));
        assert!(!is_right(true, true) && !is_right(false, false));
    }

    #[test]
    fn tally_is_none_without_decided_answers() {
        let tally = |rows: &[AnswerOutcomes]| AnswerTally::from_rows(Some(7), rows);
        assert_eq!(tally(&[]), None);
        assert_eq!(
            tally(&[row(HoldAction::None, &[outcome(true, false, false)])]),
            None
        );
        assert_eq!(tally(&[row(HoldAction::Release, &[])]), None);
    }

    /// Returns whether the success of a job that was held with this code is visibly repaired. The
    /// job updates an attribute if `is_edited`, and its last run uses `memory_mb`.
    fn is_repaired(hold_code: i32, memory_mb: u32, is_edited: bool) -> bool {
        let mut life = vec![(0, SUBMIT), (1, EXECUTE), (2, HELD)];
        life.extend(is_edited.then_some((3, ATTRIBUTE_UPDATE)));
        life.extend([(4, RELEASED), (5, EXECUTE), (6, TERMINATED)]);
        let events: Vec<JobEvent> = (life.into_iter())
            .map(|(s, number)| JobEvent {
                cluster: 1,
                time_ms: s * 1000,
                number,
                normal: u8::from(number == TERMINATED),
                hold_code: if number == HELD { hold_code } else { 0 },
                hold_subcode: if number == HELD { 102 } else { 0 },
                facts: match number {
                    TERMINATED => EventFacts::from_run(RunUsage {
                        memory_mb: Some(memory_mb),
                        ..RunUsage::default()
                    }),
                    _ => EventFacts::default(),
                },
                ..JobEvent::default()
            })
            .collect();
        let store = store_of(&events);
        let mut job = store.jobs().get(0);
        job.request.memory_mb = 128;
        let cycle = hold_cycles(job.history, LabelKind::Next, &[])[0];
        assert_eq!(cycle.outcome, HoldOutcome::Label(true));
        is_visibly_repaired(&job, &cycle)
    }

    #[test]
    fn repairs_are_visible_as_edits_and_as_use_above_the_request() {
        assert!(
            is_repaired(34, 200, false),
            "used more than it had requested"
        );
        assert!(!is_repaired(34, 100, false));
        assert!(!is_repaired(13, 200, false), "was not held for its use");
        assert!(is_repaired(13, 100, true), "edited");
    }
}
