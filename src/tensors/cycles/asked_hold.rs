//! The prediction time of a hold: the time of the decision about it. A sample may only use events
//! up to then.

use super::hold_cycles::HoldCycle;
use poolcast_config::WindowPosition;
use poolcast_events::{EventStore, JobHistory, StoredJobs};

/// A hold of a job, with its prediction time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueriedHold {
    /// Index of the job in the store.
    pub job: u32,
    /// The hold.
    pub cycle: HoldCycle,
    /// Prediction time, in epoch ms. Events up to and including this time are known.
    pub asked_ms: i64,
}

impl QueriedHold {
    /// Creates the hold `cycle` of job `job` with `history`. Its prediction time depends on
    /// `window`.
    ///
    /// With `window = release` it is the last millisecond before the second of the event that ended
    /// the hold. So no event of that second is known, in whatever order the log has them. For a job
    /// that is still held it is `cutoffs_ms`. With `window = hold` and `life` it is the time of
    /// the hold.
    pub fn new(
        job: u32,
        history: &JobHistory<'_>,
        cycle: HoldCycle,
        window: WindowPosition,
        cutoffs_ms: i64,
    ) -> QueriedHold {
        let asked_ms = match (window, cycle.end) {
            (WindowPosition::Hold | WindowPosition::Life, _) => history.time_ms[cycle.hold],
            (WindowPosition::Release, Some(end)) => end_of_previous_second(history.time_ms[end]),
            (WindowPosition::Release, None) => cutoffs_ms,
        };
        QueriedHold {
            job,
            cycle,
            asked_ms,
        }
    }
}

/// Returns the last millisecond before the second that contains `time_ms`.
fn end_of_previous_second(time_ms: i64) -> i64 {
    time_ms.div_euclid(1000) * 1000 - 1
}

/// Returns the time of the last event of each access point of `store`, in epoch ms. The log
/// contains nothing after it.
pub fn cutoffs_ms(store: &EventStore, jobs: &StoredJobs<'_>) -> Vec<i64> {
    let mut until_ms = vec![i64::MIN; store.summary.aps.len()];
    for job in jobs.iter() {
        let of_ap = &mut until_ms[job.ap as usize];
        let last_ms = job.history.time_ms.last().copied();
        *of_ap = last_ms.map_or(*of_ap, |last_ms| last_ms.max(*of_ap));
    }
    until_ms
}

#[cfg(test)]
mod tests {
    use super::super::hold_cycles::{hold_cycles, tests::with_history};
    use super::*;
    use poolcast_config::LabelKind;

    const HOLD: (u16, u8, i32) = (12, 0, 0);

    /// Returns the prediction time of the last hold of `events`, which are one second apart.
    fn asked_ms(window: WindowPosition, events: &[(u16, u8, i32)]) -> i64 {
        with_history(events, |history| {
            let cycles = hold_cycles(history, LabelKind::Next, &[]);
            let last = cycles[cycles.len() - 1];
            QueriedHold::new(0, &history, last, window, 99_000).asked_ms
        })
    }

    #[test]
    fn prediction_time_precedes_the_second_of_the_release() {
        let submit = (0, 0, 0);
        let grown = (6, 0, 0);
        let released = [submit, HOLD, grown, grown, (13, 0, 0), grown, (13, 0, 0)];
        assert_eq!(asked_ms(WindowPosition::Release, &released), 3_999);
        assert_eq!(asked_ms(WindowPosition::Hold, &released), 1_000);
        assert_eq!(asked_ms(WindowPosition::Life, &released), 1_000);

        let removed = [submit, HOLD, grown, (9, 0, 1)];
        assert_eq!(asked_ms(WindowPosition::Release, &removed), 2_999);
        let second = [submit, HOLD, (13, 0, 0), HOLD, grown, (13, 0, 0)];
        assert_eq!(asked_ms(WindowPosition::Release, &second), 4_999);
    }

    #[test]
    fn prediction_time_of_held_jobs_is_the_end_of_the_log() {
        let held = [(0, 0, 0), HOLD, (13, 0, 0), HOLD, (6, 0, 0)];
        assert_eq!(asked_ms(WindowPosition::Release, &held), 99_000);
        assert_eq!(asked_ms(WindowPosition::Hold, &held), 3_000);
    }

    #[test]
    fn negative_times_are_rounded_down() {
        assert_eq!(end_of_previous_second(10_000), 9_999);
        assert_eq!(end_of_previous_second(10_999), 9_999);
        assert_eq!(end_of_previous_second(-1), -1_001);
    }
}
