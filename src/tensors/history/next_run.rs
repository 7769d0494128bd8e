//! The outcome of the next run after a release: whether the job got past the point at which its run
//! before the hold had ended.
//!
//! This is known long before the outcome of the hold. A failed transfer of input shows within
//! seconds, so these records follow a fault while it begins or ends.

use super::last_run::last_start;
use super::outcome_record::DatedOutcome;
use crate::cycles::HoldCycle;
use htcondor_eventlog::{ABORTED, EVICTED, EXECUTE, HELD, TERMINATED};
use poolcast_events::JobHistory;

/// Margin, in ms, beyond 1.2 times the run before the hold. A run that lasts longer got past the
/// point of the hold. Time stamps are whole seconds, and run times vary.
const MARGIN_MS: i64 = 5_000;

/// Returns the outcome of the next run after the hold of `cycle`, dated from when it is known.
/// Returns `None` if the hold was not released, or if the later events do not show the outcome.
///
/// A job that was held before it began to execute gets past the hold when it begins. A job that was
/// held later gets past it when a run lasts longer than the run before the hold, by the margin. The
/// outcome is a failure if the job is held again or fails first, and a success if it terminates
/// first with exit code 0.
pub fn next_run_outcome(history: &JobHistory<'_>, cycle: &HoldCycle) -> Option<DatedOutcome> {
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
                Some(lasted_ms) => past_ms = Some(time_ms + lasted_ms * 6 / 5 + MARGIN_MS),
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
    // The job still runs when the log ends. The outcome is dated `past_ms`, so no earlier
    // prediction can use it.
    past_ms.map(|past_ms| DatedOutcome::new(past_ms, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold_cycles;
    use htcondor_eventlog::{JobEvent, RELEASED, SUBMIT};
    use poolcast_config::LabelKind;
    use test_stores::store_of;

    /// Returns the outcome of the run after the first hold of a job with these events, as its time
    /// in seconds and its success.
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
    fn unstarted_job_gets_past_when_it_starts() {
        let held = [(0, SUBMIT), (10, HELD), (20, RELEASED)];
        let then = |events: &[(i64, u16)]| outcome(&[&held[..], events].concat());
        assert_eq!(then(&[(30, EXECUTE), (31, HELD)]), Some((30, true)));
        assert_eq!(then(&[(30, HELD)]), Some((30, false)));
        assert_eq!(then(&[(30, ABORTED)]), None);
        assert_eq!(then(&[]), None);
        assert_eq!(outcome(&held[..2]), None);
    }

    #[test]
    fn started_job_gets_past_when_it_lasts_longer() {
        let held = [(0, SUBMIT), (5, EXECUTE), (105, HELD), (200, RELEASED)];
        let then = |events: &[(i64, u16)]| outcome(&[&held[..], events].concat());
        // The run must last 100 s, a fifth of that, and 5 s more.
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
