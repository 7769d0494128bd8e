//! A hold that was released → whether the job's next run got past the point at which the run before
//! the hold had ended. That is known long before the outcome: within seconds where input could not
//! be transferred, and so while a fault still passes or begins.

use super::hold_cycles::HoldCycle;
use super::last_run::last_start;
use super::outcome_record::DatedOutcome;
use htcondor_eventlog::{ABORTED, EVICTED, EXECUTE, HELD, TERMINATED};
use crate::events::JobHistory;

/// So much longer than the run before the hold a run must last, beside a fifth of it, to have got
/// past: stamps are whole seconds, and no two runs are alike.
const LONGER_MS: i64 = 5_000;

/// Whether a run after the hold of `cycle` got past the point of the hold, and from when on that is
/// known; none where the hold was not released, or what followed does not tell. A job that was held
/// before it began to execute is past when it begins; one that was held later, when a run lasts
/// longer than that one did. It is not where the job is held again or fails first.
pub(super) fn next_run_outcome(
    history: &JobHistory<'_>,
    cycle: &HoldCycle,
) -> Option<DatedOutcome> {
    let release = cycle.end.filter(|_| cycle.is_released(history))?;
    let lasted_ms = last_start(history, cycle.hold)
        .map(|start| history.time_ms[cycle.hold] - history.time_ms[start]);

    let mut past_ms = None;
    for at in release + 1..history.number.len() {
        let time_ms = history.time_ms[at];
        if let Some(past_ms) = past_ms.filter(|past_ms| *past_ms <= time_ms) {
            return Some(DatedOutcome::new(past_ms, true));
        }
        match history.number[at] {
            EXECUTE => match lasted_ms {
                None => return Some(DatedOutcome::new(time_ms, true)),
                Some(lasted_ms) => past_ms = Some(time_ms + lasted_ms * 6 / 5 + LONGER_MS),
            },
            EVICTED => past_ms = None,
            HELD => return Some(DatedOutcome::new(time_ms, false)),
            TERMINATED => {
                let is_success = history.normal[at] == 1 && history.value[at] == 0;
                return Some(DatedOutcome::new(time_ms, is_success));
            }
            ABORTED => return None,
            _ => {}
        }
    }
    // The job still runs when the log ends. By a later moment it is past, which nobody may ask about
    // before.
    past_ms.map(|past_ms| DatedOutcome::new(past_ms, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_config::LabelKind;
    use htcondor_eventlog::{JobEvent, RELEASED, SUBMIT};
    use crate::events::store_of;
    use crate::tensors::hold_cycles;

    /// What came of the run after the first hold of a job with these events, and when, seconds.
    fn outcome(events: &[(i64, u16)]) -> Option<(i64, bool)> {
        let events: Vec<JobEvent> = (events.iter())
            .map(|&(s, number)| JobEvent {
                cluster: 1,
                time_ms: s * 1000,
                number,
                normal: u8::from(number == TERMINATED),
                ..JobEvent::default()
            })
            .collect();
        let store = store_of(&events);
        let history = store.jobs().get(0).history;
        let cycles = hold_cycles(history, LabelKind::Next, &[]);
        let found = next_run_outcome(&history, &cycles[0])?;
        Some((found.decided_ms() / 1000, found.is_success()))
    }

    #[test]
    fn a_job_that_had_not_begun_is_past_when_it_begins() {
        let held = [(0, SUBMIT), (10, HELD), (20, RELEASED)];
        let then = |events: &[(i64, u16)]| outcome(&[&held[..], events].concat());
        assert_eq!(then(&[(30, EXECUTE), (31, HELD)]), Some((30, true)));
        assert_eq!(then(&[(30, HELD)]), Some((30, false)));
        assert_eq!(then(&[(30, ABORTED)]), None);
        assert_eq!(then(&[]), None);
        assert_eq!(outcome(&held[..2]), None);
    }

    #[test]
    fn a_job_that_had_begun_is_past_when_it_lasts_longer() {
        let held = [(0, SUBMIT), (5, EXECUTE), (105, HELD), (200, RELEASED)];
        let then = |events: &[(i64, u16)]| outcome(&[&held[..], events].concat());
        // 100 s, a fifth, and five more.
        assert_eq!(then(&[(300, EXECUTE)]), Some((425, true)));
        assert_eq!(then(&[(300, EXECUTE), (425, HELD)]), Some((425, true)));
        assert_eq!(then(&[(300, EXECUTE), (424, HELD)]), Some((424, false)));
        assert_eq!(
            then(&[(300, EXECUTE), (400, TERMINATED)]),
            Some((400, true))
        );
        assert_eq!(
            then(&[(300, EXECUTE), (310, EVICTED), (320, EXECUTE), (430, HELD)]),
            Some((430, false))
        );
    }
}
