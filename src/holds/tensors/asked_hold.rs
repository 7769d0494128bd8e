//! The moment of asking: when somebody decides about a hold, and so the last moment that a sample
//! may know of.

use super::hold_cycles::HoldCycle;
use poolcast_config::WindowPlace;
use crate::events::{EventStore, JobHistory, StoredJobs};

/// A hold of a job, and when it is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskedHold {
    /// The index of the job in the store.
    pub job: u32,
    /// The hold.
    pub cycle: HoldCycle,
    /// The moment of asking, epoch ms: what was written until it is known, that moment included.
    pub asked_ms: i64,
}

impl AskedHold {
    /// The hold `cycle` of job `job` with `history`, asked about where `window` says.
    ///
    /// `window = release`: just before the second of the event that ended the hold, so that nothing
    /// of that second is known, whatever the order in which it was written; of a job that is still
    /// held at `known_until_ms`. `window = hold` and `life`: at the hold.
    pub fn new(
        job: u32,
        history: &JobHistory<'_>,
        cycle: HoldCycle,
        window: WindowPlace,
        known_until_ms: i64,
    ) -> AskedHold {
        let asked_ms = match (window, cycle.end) {
            (WindowPlace::Hold | WindowPlace::Life, _) => history.time_ms[cycle.hold],
            (WindowPlace::Release, Some(end)) => before_second_of(history.time_ms[end]),
            (WindowPlace::Release, None) => known_until_ms,
        };
        AskedHold {
            job,
            cycle,
            asked_ms,
        }
    }
}

/// The last millisecond before the second in which `time_ms` is.
fn before_second_of(time_ms: i64) -> i64 {
    time_ms.div_euclid(1000) * 1000 - 1
}

/// The last event of the jobs of each access point of `store`, epoch ms: what is not known by then
/// is not known.
pub fn known_until_ms(store: &EventStore, jobs: &StoredJobs<'_>) -> Vec<i64> {
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

    /// When the last hold of `events`, one a second, is asked about.
    fn asked_ms(window: WindowPlace, events: &[(u16, u8, i32)]) -> i64 {
        with_history(events, |history| {
            let cycles = hold_cycles(history, LabelKind::Next, &[]);
            let last = cycles[cycles.len() - 1];
            AskedHold::new(0, &history, last, window, 99_000).asked_ms
        })
    }

    #[test]
    fn a_hold_is_asked_about_before_the_second_that_ends_it() {
        let submit = (0, 0, 0);
        let grown = (6, 0, 0);
        let released = [submit, HOLD, grown, grown, (13, 0, 0), grown, (13, 0, 0)];
        assert_eq!(asked_ms(WindowPlace::Release, &released), 3_999);
        assert_eq!(asked_ms(WindowPlace::Hold, &released), 1_000);
        assert_eq!(asked_ms(WindowPlace::Life, &released), 1_000);

        let removed = [submit, HOLD, grown, (9, 0, 1)];
        assert_eq!(asked_ms(WindowPlace::Release, &removed), 2_999);
        let second = [submit, HOLD, (13, 0, 0), HOLD, grown, (13, 0, 0)];
        assert_eq!(asked_ms(WindowPlace::Release, &second), 4_999);
    }

    #[test]
    fn a_job_that_is_still_held_is_asked_about_at_the_end() {
        let held = [(0, 0, 0), HOLD, (13, 0, 0), HOLD, (6, 0, 0)];
        assert_eq!(asked_ms(WindowPlace::Release, &held), 99_000);
        assert_eq!(asked_ms(WindowPlace::Hold, &held), 3_000);
    }

    #[test]
    fn seconds_are_cut_below_zero_too() {
        assert_eq!(before_second_of(10_000), 9_999);
        assert_eq!(before_second_of(10_999), 9_999);
        assert_eq!(before_second_of(-1), -1_001);
    }
}
