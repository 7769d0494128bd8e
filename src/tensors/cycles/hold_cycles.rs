//! The hold cycles of one job, each with its outcome.

use serde::{Deserialize, Serialize};

use htcondor_eventlog::{ABORTED, DecidedBy, EXECUTE, HELD, RELEASED, SUBMIT, TERMINATED};
use poolcast_config as config;
use poolcast_events::{JobHistory, LogGap};

/// One hold of a job, and its outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HoldCycle {
    /// Index of the hold in the job's history.
    pub hold: usize,
    /// Number of earlier holds of the job.
    pub earlier_holds: u32,
    /// Number of times that the job began to execute before the hold.
    pub earlier_starts: u32,
    /// Index of the submission or release from which the job waited for its last start before the
    /// hold, or for the hold itself if it did not start since the previous hold. `None` if the log
    /// has neither.
    pub queued: Option<usize>,
    /// Index of the event that ended the hold: the first release, removal, termination or next hold
    /// after it. `None` while the job is held.
    pub end: Option<usize>,
    /// The label, or the reason why there is none.
    pub outcome: HoldOutcome,
    /// Index of the event that decided the outcome; the index of the hold if no event did.
    pub decided: usize,
}

/// The outcome of a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldOutcome {
    /// The label: true if the job succeeded.
    Label(bool),
    /// The cycle cannot be labelled, or is excluded by the settings.
    LeftOut(ExclusionReason),
}

/// Reasons why a cycle is not a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ExclusionReason {
    /// The log ends while the job is held.
    #[serde(rename = "still held")]
    StillHeld,
    /// Removed without a release, so the effect of a release is unknown.
    #[serde(rename = "removed while held")]
    RemovedWhileHeld,
    /// The next hold or the end follows without a release in the log.
    #[serde(rename = "no release seen")]
    NoReleaseSeen,
    /// Removed after the release, by a person or for an unknown reason.
    #[serde(rename = "removed after release")]
    RemovedAfterRelease,
    /// Events are missing between the hold and the next known event.
    #[serde(rename = "across a gap")]
    AcrossGap,
    /// The log ends after the release.
    #[serde(rename = "log ends")]
    LogEnds,
    /// The code of the hold is one of `exclude_hold_codes`.
    #[serde(rename = "hold code excluded")]
    HoldCodeExcluded,
    /// Not the job's first hold, and the settings select only first holds.
    #[serde(rename = "not the first hold")]
    NotTheFirst,
    /// The outcome was decided after the next split had begun.
    #[serde(rename = "decided too late")]
    DecidedTooLate,
    /// The cluster also has holds in a later split.
    #[serde(rename = "cluster on two sides")]
    ClusterInTwoSplits,
}

impl ExclusionReason {
    /// The name of the reason in reports.
    pub fn name(self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    }
}

/// Returns the hold cycles of a job, in order. `gaps` are the time ranges without events of its
/// access point.
pub fn hold_cycles(
    history: JobHistory<'_>,
    label: config::LabelKind,
    gaps: &[LogGap],
) -> Vec<HoldCycle> {
    // Most jobs were never held. A fold over all events, without an early exit, is vectorized and
    // finds that out sooner than a search.
    if !history
        .number
        .iter()
        .fold(false, |held, &number| held | (number == HELD))
    {
        return Vec::new();
    }

    // A job may be held very often, so what is true of all its holds is found once.
    let of_all_holds = match label {
        config::LabelKind::Next => None,
        config::LabelKind::Final => Some(final_outcome(history)),
    };
    let mut cycles: Vec<HoldCycle> = Vec::new();
    let mut runs = RunsSoFar::default();
    for (hold, &number) in history.number.iter().enumerate() {
        if number != HELD {
            runs.add_event(hold, number);
            continue;
        }
        let decision = of_all_holds.unwrap_or_else(|| next_outcome(history, hold));
        let hold_ms = history.time_ms[hold];
        let decided_ms = history.time_ms[decision.at];
        let is_across_gap = gaps.iter().any(|gap| gap.is_between(hold_ms, decided_ms));
        let outcome = if is_across_gap {
            HoldOutcome::LeftOut(ExclusionReason::AcrossGap)
        } else {
            decision.outcome
        };
        cycles.push(HoldCycle {
            hold,
            earlier_holds: cycles.len() as u32,
            earlier_starts: runs.starts,
            queued: runs.queued_before_hold(),
            end: hold_end(history, hold),
            outcome,
            decided: decision.at,
        });
    }
    cycles
}

/// The runs of a job up to an event, with what cycles need of them.
#[derive(Default)]
struct RunsSoFar {
    /// Number of times that the job began to execute.
    starts: u32,
    /// Index of the last submission or release.
    last_queued: Option<usize>,
    /// `last_queued` at the last start, if the job has started since the last hold.
    queued_at_start: Option<Option<usize>>,
}

impl RunsSoFar {
    /// Adds event `number` at index `at`, which is not a hold.
    fn add_event(&mut self, at: usize, number: u16) {
        match number {
            EXECUTE => {
                self.starts += 1;
                self.queued_at_start = Some(self.last_queued);
            }
            SUBMIT | RELEASED => self.last_queued = Some(at),
            _ => {}
        }
    }

    /// Adds a hold, and returns its [`HoldCycle::queued`].
    fn queued_before_hold(&mut self) -> Option<usize> {
        self.queued_at_start.take().unwrap_or(self.last_queued)
    }
}

impl HoldCycle {
    /// Returns true if a release ended the hold.
    pub fn is_released(&self, history: &JobHistory<'_>) -> bool {
        self.end.is_some_and(|end| history.number[end] == RELEASED)
    }
}

/// Returns the index of the event that ended the hold at `hold`.
fn hold_end(history: JobHistory<'_>, hold: usize) -> Option<usize> {
    (hold + 1..history.number.len())
        .find(|&at| matches!(history.number[at], RELEASED | ABORTED | TERMINATED | HELD))
        .or_else(|| removal_just_before(history, hold))
}

/// The outcome of a hold, and the index of the event that decided it.
#[derive(Clone, Copy)]
struct Decision {
    outcome: HoldOutcome,
    at: usize,
}

/// Returns the outcome after the release that ended the hold at `hold`, decided by the next hold,
/// end or removal.
fn next_outcome(history: JobHistory<'_>, hold: usize) -> Decision {
    let mut is_released = false;
    for at in hold + 1..history.number.len() {
        let outcome = match (history.number[at], is_released) {
            (RELEASED, _) => {
                is_released = true;
                continue;
            }
            (ABORTED, false) => HoldOutcome::LeftOut(ExclusionReason::RemovedWhileHeld),
            (HELD | TERMINATED, false) => HoldOutcome::LeftOut(ExclusionReason::NoReleaseSeen),
            (HELD, true) => HoldOutcome::Label(false),
            (TERMINATED, true) => {
                HoldOutcome::Label(history.normal[at] == 1 && history.value[at] == 0)
            }
            (ABORTED, true) if history.value[at] == DecidedBy::Policy as i32 => {
                HoldOutcome::Label(false)
            }
            (ABORTED, true) => HoldOutcome::LeftOut(ExclusionReason::RemovedAfterRelease),
            _ => continue,
        };
        return Decision { outcome, at };
    }

    let (reason, at) = match removal_just_before(history, hold) {
        _ if is_released => (ExclusionReason::LogEnds, hold),
        Some(at) => (ExclusionReason::RemovedWhileHeld, at),
        None => (ExclusionReason::StillHeld, hold),
    };
    Decision {
        outcome: HoldOutcome::LeftOut(reason),
        at,
    }
}

/// Returns the index of a removal in the second before the hold at `hold`.
///
/// Two daemons write these events, so their order may be wrong. A removed job is not held.
pub(crate) fn removal_just_before(history: JobHistory<'_>, hold: usize) -> Option<usize> {
    let is_near = |at: &usize| history.time_ms[hold] - history.time_ms[*at] <= 1000;
    (0..hold)
        .rev()
        .take_while(is_near)
        .find(|&at| history.number[at] == ABORTED)
}

/// Applies the published rule: a normal termination is a success with any exit code, and a removal
/// is a failure.
fn final_outcome(history: JobHistory<'_>) -> Decision {
    let is_end = |at: &usize| matches!(history.number[*at], TERMINATED | ABORTED);
    match (0..history.number.len()).rev().find(is_end) {
        Some(at) => Decision {
            outcome: HoldOutcome::Label(
                history.number[at] == TERMINATED && history.normal[at] == 1,
            ),
            at,
        },
        None => Decision {
            outcome: HoldOutcome::LeftOut(ExclusionReason::LogEnds),
            at: history.number.len() - 1,
        },
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Calls `test` with a history of events (number, normal, value), one per second.
    pub(crate) fn with_history<T>(
        events: &[(u16, u8, i32)],
        test: impl Fn(JobHistory<'_>) -> T,
    ) -> T {
        let number: Vec<u16> = events.iter().map(|event| event.0).collect();
        let normal: Vec<u8> = events.iter().map(|event| event.1).collect();
        let value: Vec<i32> = events.iter().map(|event| event.2).collect();
        let time_ms: Vec<i64> = (0..events.len() as i64).map(|s| s * 1000).collect();
        let zeros = vec![0; events.len()];
        test(JobHistory {
            time_ms: &time_ms,
            number: &number,
            hold_code: &zeros,
            hold_subcode: &zeros,
            value: &value,
            normal: &normal,
            text_hash: &vec![0; events.len()],
        })
    }

    const HOLD: (u16, u8, i32) = (12, 0, 0);
    const RELEASE: (u16, u8, i32) = (13, 0, 0);

    fn next(after: &[(u16, u8, i32)]) -> HoldOutcome {
        let events = [&[(0, 0, 0), (1, 0, 0), HOLD], after].concat();
        with_history(&events, |history| {
            hold_cycles(history, config::LabelKind::Next, &[])[0].outcome
        })
    }

    #[test]
    fn next_label_follows_its_rules() {
        assert_eq!(
            next(&[RELEASE, (1, 0, 0), (4, 0, 0), (5, 1, 0)]),
            HoldOutcome::Label(true)
        );
        assert_eq!(
            next(&[RELEASE, (5, 1, 1)]),
            HoldOutcome::Label(false),
            "a failing exit code"
        );
        assert_eq!(
            next(&[RELEASE, (5, 0, 9)]),
            HoldOutcome::Label(false),
            "a signal"
        );
        assert_eq!(
            next(&[RELEASE, HOLD, RELEASE, (5, 1, 0)]),
            HoldOutcome::Label(false),
            "held again"
        );
        assert_eq!(
            next(&[RELEASE, (9, 0, 2)]),
            HoldOutcome::Label(false),
            "removed by policy"
        );
        assert_eq!(
            next(&[RELEASE, (9, 0, 1)]),
            HoldOutcome::LeftOut(ExclusionReason::RemovedAfterRelease)
        );
        assert_eq!(
            next(&[RELEASE, (9, 0, 0)]),
            HoldOutcome::LeftOut(ExclusionReason::RemovedAfterRelease)
        );
        assert_eq!(
            next(&[(9, 0, 2)]),
            HoldOutcome::LeftOut(ExclusionReason::RemovedWhileHeld)
        );
        assert_eq!(
            next(&[HOLD, RELEASE, (5, 1, 0)]),
            HoldOutcome::LeftOut(ExclusionReason::NoReleaseSeen)
        );
        assert_eq!(
            next(&[(5, 1, 0)]),
            HoldOutcome::LeftOut(ExclusionReason::NoReleaseSeen)
        );
        assert_eq!(
            next(&[RELEASE, (1, 0, 0)]),
            HoldOutcome::LeftOut(ExclusionReason::LogEnds)
        );
        assert_eq!(next(&[]), HoldOutcome::LeftOut(ExclusionReason::StillHeld));
    }

    #[test]
    fn hold_within_a_second_of_a_removal_is_removed() {
        let outcome = |events: &[(u16, u8, i32)], last: usize| {
            with_history(events, |h| {
                hold_cycles(h, config::LabelKind::Next, &[])[last].outcome
            })
        };
        let removed = HoldOutcome::LeftOut(ExclusionReason::RemovedWhileHeld);
        assert_eq!(
            outcome(&[(0, 0, 0), (9, 0, 1), HOLD], 0),
            removed,
            "written after the removal"
        );
        assert_eq!(
            outcome(&[(0, 0, 0), HOLD, (9, 0, 1)], 0),
            removed,
            "and before it"
        );
        let other = &[(0, 0, 0), (9, 0, 1), (6, 0, 0), (6, 0, 0), HOLD];
        assert_eq!(
            outcome(other, 0),
            HoldOutcome::LeftOut(ExclusionReason::StillHeld),
            "long after: the next job of this number"
        );
    }

    #[test]
    fn final_label_follows_the_published_rule() {
        let outcome = |events: &[(u16, u8, i32)]| {
            with_history(events, |h| {
                hold_cycles(h, config::LabelKind::Final, &[])[0].outcome
            })
        };
        assert_eq!(
            outcome(&[HOLD, RELEASE, HOLD, RELEASE, (5, 1, 1)]),
            HoldOutcome::Label(true),
            "exit 1 counts as success"
        );
        assert_eq!(outcome(&[HOLD, (9, 0, 1)]), HoldOutcome::Label(false));
        assert_eq!(
            outcome(&[HOLD, RELEASE]),
            HoldOutcome::LeftOut(ExclusionReason::LogEnds)
        );
    }

    #[test]
    fn every_hold_starts_a_cycle() {
        let found = with_history(&[HOLD, RELEASE, HOLD, RELEASE, (5, 1, 0)], |h| {
            hold_cycles(h, config::LabelKind::Next, &[])
        });
        let expected = [(0, 0, None, 1, false, 2), (2, 1, Some(1), 3, true, 4)];
        assert_eq!(found.len(), 2);
        for (cycle, (hold, earlier_holds, queued, end, label, decided)) in
            found.into_iter().zip(expected)
        {
            assert_eq!(
                cycle,
                HoldCycle {
                    hold,
                    earlier_holds,
                    earlier_starts: 0,
                    queued,
                    end: Some(end),
                    outcome: HoldOutcome::Label(label),
                    decided
                }
            );
        }
    }

    #[test]
    fn runs_before_each_hold_are_found_in_one_pass() {
        let (submit, start) = ((0, 0, 0), (1, 0, 0));
        let events = [
            submit,
            start,
            start,
            HOLD,
            HOLD,
            RELEASE,
            start,
            (4, 0, 0),
            HOLD,
            start,
            RELEASE,
            HOLD,
        ];
        let found = with_history(&events, |h| hold_cycles(h, config::LabelKind::Next, &[]));
        let runs = found
            .iter()
            .map(|cycle| (cycle.earlier_starts, cycle.queued));
        let expected = [(2, Some(0)), (2, Some(0)), (3, Some(5)), (4, Some(5))];
        assert_eq!(Vec::from_iter(runs), expected);
    }
}
