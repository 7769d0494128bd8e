//! The states of a hold after it began, each dated from when it was known.

use crate::cycles::{HoldCycle, removal_just_before};
use crate::history::next_run_outcome;
use htcondor_eventlog::{ABORTED, EVICTED, EXECUTE, HELD, RELEASED, TERMINATED};
use poolcast_events::{JobHistory, LogGap, StoredJob};

/// The state of a hold, or the end of the first run of a job that was not held by then. The order
/// is that of the one-hot features of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum OutcomeState {
    Held,
    RemovedWhileHeld,
    /// Released, and waiting to run.
    Waiting,
    Running,
    /// Running past the point at which the run before the hold had ended.
    PastThePoint,
    Succeeded,
    HeldForSameReason,
    HeldForOtherReason,
    Failed,
    RemovedAfterRelease,
    FirstRunSucceeded,
    FirstRunFailed,
}

impl OutcomeState {
    /// Number of states.
    pub(crate) const COUNT: usize = 12;

    /// Returns true if the state says how the release, or the first run, turned out.
    pub(crate) fn is_decided(self) -> bool {
        !matches!(
            self,
            OutcomeState::Held | OutcomeState::Waiting | OutcomeState::Running
        )
    }

    /// The state after the end of a first run.
    pub(crate) fn of_first_run(history: &JobHistory<'_>, end: usize) -> OutcomeState {
        if is_success(history, end) {
            OutcomeState::FirstRunSucceeded
        } else {
            OutcomeState::FirstRunFailed
        }
    }
}

/// A state, and the time from which it holds.
pub(crate) type DatedState = (i64, OutcomeState);

/// Returns the states of the hold `cycle` of `job`, in order of time. A state depends on no event
/// after its time.
pub(crate) fn hold_states(
    job: &StoredJob<'_>,
    cycle: &HoldCycle,
    gaps: &[LogGap],
) -> Vec<DatedState> {
    let history = &job.history;
    let hold_ms = history.time_ms[cycle.hold];
    if removal_just_before(*history, cycle.hold).is_some() {
        return vec![(hold_ms, OutcomeState::RemovedWhileHeld)];
    }
    let mut states = vec![(hold_ms, OutcomeState::Held)];
    let Some(end) = cycle.end else {
        return states;
    };

    let mut past_ms = next_run_outcome(history, cycle)
        .filter(|run| run.is_success())
        .map(|run| run.decided_ms())
        .filter(|&past_ms| !gaps.iter().any(|gap| gap.is_between(hold_ms, past_ms)));
    for at in end..history.number.len() {
        // The log may have the events of a second in another order.
        let time_ms = history.time_ms[at].max(hold_ms);
        if let Some(past_ms) = past_ms.take_if(|past_ms| *past_ms < time_ms) {
            states.push((past_ms, OutcomeState::PastThePoint));
        }
        if let Some(state) = state_after(job, cycle, at, states[states.len() - 1].1) {
            states.push((time_ms, state));
            if state.is_decided() {
                break;
            }
        }
    }
    // The job may still run when the log ends, or the run ends in the second in which it got past the
    // point: a later event must not be what shows it.
    if !states[states.len() - 1].1.is_decided() {
        states.extend(past_ms.map(|past_ms| (past_ms, OutcomeState::PastThePoint)));
    }
    keep_order(&mut states);
    states
}

/// Returns the state of the hold `cycle` after event `at`, or `None` if it stays `before`.
fn state_after(
    job: &StoredJob<'_>,
    cycle: &HoldCycle,
    at: usize,
    before: OutcomeState,
) -> Option<OutcomeState> {
    let history = &job.history;
    let is_released = before != OutcomeState::Held;
    let state = match history.number[at] {
        RELEASED if !is_released => OutcomeState::Waiting,
        EXECUTE if before == OutcomeState::Waiting => OutcomeState::Running,
        EVICTED if before == OutcomeState::Running => OutcomeState::Waiting,
        HELD if is_same_reason(job, cycle.hold, at) => OutcomeState::HeldForSameReason,
        HELD => OutcomeState::HeldForOtherReason,
        TERMINATED if is_success(history, at) => OutcomeState::Succeeded,
        TERMINATED => OutcomeState::Failed,
        ABORTED if is_released => OutcomeState::RemovedAfterRelease,
        ABORTED => OutcomeState::RemovedWhileHeld,
        _ => return None,
    };
    Some(state)
}

fn is_success(history: &JobHistory<'_>, end: usize) -> bool {
    history.normal[end] == 1 && history.value[end] == 0
}

fn is_same_reason(job: &StoredJob<'_>, hold: usize, next: usize) -> bool {
    let history = &job.history;
    history.hold_code[hold] == history.hold_code[next]
        && history.hold_subcode[hold] == history.hold_subcode[next]
        && job.reason_hash(hold) == job.reason_hash(next)
}

/// Dates each state no earlier than the one before it.
fn keep_order(states: &mut [DatedState]) {
    let mut last_ms = i64::MIN;
    for (time_ms, _) in states {
        last_ms = last_ms.max(*time_ms);
        *time_ms = last_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles::hold_cycles;
    use OutcomeState::*;
    use htcondor_eventlog::{JobEvent, SUBMIT};
    use poolcast_config::LabelKind;
    use test_stores::store_of;

    /// Returns the states of the first hold of a job that runs from 5 s and is held at 10 s, with
    /// their times in seconds.
    fn states(then: &[(i64, u16)]) -> Vec<(i64, OutcomeState)> {
        states_of(&[&[(0, SUBMIT), (5, EXECUTE), (10, HELD)], then].concat())
    }

    /// Returns the states of the first hold of a job with these events.
    fn states_of(events: &[(i64, u16)]) -> Vec<(i64, OutcomeState)> {
        let event = |&(s, number): &(i64, u16)| JobEvent {
            cluster: 1,
            time_ms: s * 1000,
            number,
            normal: u8::from(number == TERMINATED),
            ..JobEvent::default()
        };
        let events: Vec<JobEvent> = events.iter().map(event).collect();
        let store = store_of(&events);
        let job = store.jobs().get(0);
        let cycles = hold_cycles(job.history, LabelKind::Next, &[]);
        let states = hold_states(&job, &cycles[0], &[]);
        states
            .into_iter()
            .map(|(ms, state)| (ms / 1000, state))
            .collect()
    }

    #[test]
    fn states_follow_the_events() {
        assert_eq!(states(&[]), [(10, Held)]);
        assert_eq!(
            states(&[(20, ABORTED)]),
            [(10, Held), (20, RemovedWhileHeld)]
        );
        let released = [(20, RELEASED), (30, EXECUTE)];
        let begun = [(10, Held), (20, Waiting), (30, Running)];
        let then = |events: &[(i64, u16)]| states(&[&released[..], events].concat());
        let with = |state: &[(i64, OutcomeState)]| [&begun[..], state].concat();
        assert_eq!(then(&[(32, HELD)]), with(&[(32, HeldForSameReason)]));
        assert_eq!(then(&[(32, ABORTED)]), with(&[(32, RemovedAfterRelease)]));
        // The run must last 5 s, a fifth of that, and 5 s more.
        assert_eq!(then(&[]), with(&[(41, PastThePoint)]));
        assert_eq!(
            then(&[(99, TERMINATED)]),
            with(&[(41, PastThePoint), (99, Succeeded)])
        );
        assert_eq!(
            then(&[(33, EVICTED), (34, EXECUTE), (35, TERMINATED), (36, HELD)]),
            with(&[(33, Waiting), (34, Running), (35, Succeeded)])
        );
    }

    #[test]
    fn run_that_ends_in_its_first_second_is_past_the_point_without_a_later_event() {
        let held_before_its_run = [
            (0, HELD),
            (8, RELEASED),
            (29, EXECUTE),
            (29, EVICTED),
            (41, SUBMIT),
        ];
        let all = states_of(&held_before_its_run);
        assert_eq!(all, states_of(&held_before_its_run[..4]));
        assert_eq!(all.last(), Some(&(29, PastThePoint)));
    }

    #[test]
    fn job_that_was_removed_in_the_second_of_its_hold_is_not_held() {
        let removed = [(0, SUBMIT), (10, ABORTED), (10, HELD)];
        let later = [&removed[..], &[(99, TERMINATED)]].concat();
        assert_eq!(states_of(&removed), [(10, RemovedWhileHeld)]);
        assert_eq!(states_of(&later), [(10, RemovedWhileHeld)]);
    }
}
