//! Finds the jobs with the latest events before a time. One lookup serves many samples that are
//! close in time.

use rayon::prelude::*;

use super::frames::SampleWindow;
use super::life_spans::{LifeSpans, has_ended_after};
use poolcast_base::parallel::map_ranges;
use poolcast_events::{JobHistory, StoredJobs};

/// Jobs whose events one parallel task collects.
const JOBS_PER_TASK: usize = 4096;

/// Events of jobs in order of time: all events from the end of the first window to the end of the
/// last one, and the last events before that, as many as any window needs.
#[derive(Debug, Default)]
pub(crate) struct RecentActivity {
    /// The events, sorted by time.
    moments: Vec<ActiveTime>,
}

/// An event of a job: its time, the job, and true if the job has ended then. It is packed in this
/// order into one number, which sorts fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ActiveTime(u128);

impl ActiveTime {
    fn new(time_ms: i64, job: u32, has_ended: bool) -> ActiveTime {
        // Flip the sign bit, so that the earliest time is the lowest number.
        let time = time_ms.cast_unsigned() ^ 1 << 63;
        ActiveTime(u128::from(time) << 64 | u128::from(job) << 1 | u128::from(has_ended))
    }

    fn time_ms(self) -> i64 {
        ((self.0 >> 64) as u64 ^ 1 << 63).cast_signed()
    }

    fn job(self) -> u32 {
        (self.0 >> 1) as u32
    }

    fn has_ended(self) -> bool {
        self.0 & 1 == 1
    }
}

/// The last event of a job before the first of several windows ends.
#[derive(Debug, Clone, Copy)]
struct LastTime {
    moment: ActiveTime,
    /// True if the job ends before the last window does.
    ends_later: bool,
}

impl RecentActivity {
    /// Looks up the activity for samples with these windows, of up to `count` jobs each, among the
    /// jobs of `spans`.
    pub(crate) fn new(
        jobs: &StoredJobs<'_>,
        spans: &LifeSpans,
        windows: &[SampleWindow],
        count: usize,
    ) -> RecentActivity {
        let from_ms = windows.iter().map(|window| window.from_ms).min();
        let first_end_ms = windows.iter().map(|window| window.to_ms).min().unwrap_or(0);
        let last_end_ms = windows.iter().map(|window| window.to_ms).max().unwrap_or(0);
        let all_windows = SampleWindow {
            from_ms: from_ms.unwrap_or(0),
            to_ms: last_end_ms,
        };
        let existing: Vec<u32> = spans.all(all_windows).collect();

        // All events between the first and the last window end are kept. Every window ends after
        // the older events, so only the last of them per job matters.
        let parts = map_ranges(existing.len(), JOBS_PER_TASK, |range| {
            let mut before = Vec::new();
            let mut moments = Vec::new();
            for &job in &existing[range] {
                let mut own = active_times(job, jobs.history(job as usize)).peekable();
                let until_first_end =
                    std::iter::from_fn(|| own.next_if(|moment| moment.time_ms() <= first_end_ms));
                let last_before = until_first_end.last();

                let first_later = moments.len();
                moments.extend(own.take_while(|moment| moment.time_ms() <= last_end_ms));
                let ends_later = moments[first_later..]
                    .iter()
                    .any(|moment: &ActiveTime| moment.has_ended());
                before.extend(last_before.map(|moment| LastTime { moment, ends_later }));
            }
            (before, moments)
        });
        let (before, moments): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let mut before = before.concat();
        let mut moments = moments.concat();
        before.par_sort_unstable_by(|a, b| b.moment.cmp(&a.moment));

        // A sample may skip a job that ends before its window, and takes every other job in order.
        // So only jobs that no window can skip count as found.
        let mut missing = count;
        for LastTime { moment, ends_later } in before {
            if missing == 0 {
                break;
            }
            if !moment.has_ended() && !ends_later {
                missing -= 1;
            }
            moments.push(moment);
        }
        moments.par_sort_unstable();
        RecentActivity { moments }
    }

    /// Adds the jobs with the latest events, latest first, until `chosen` has `count` jobs.
    pub(crate) fn add_latest(&self, window: SampleWindow, count: usize, chosen: &mut Vec<u32>) {
        let known = self
            .moments
            .partition_point(|moment| moment.time_ms() <= window.to_ms);
        // Jobs whose last event by the end of the window is their end, before the window began. An
        // earlier event of such a job must not add it.
        let mut gone = Vec::new();

        for moment in self.moments[..known].iter().rev() {
            if chosen.len() >= count {
                break;
            }
            let job = moment.job();
            if chosen.contains(&job) || gone.contains(&job) {
                continue;
            }
            if moment.has_ended() && moment.time_ms() < window.from_ms {
                gone.push(job);
            } else {
                chosen.push(job);
            }
        }
    }
}

/// Returns the events of a job in order, the last one of each time. Skips events written after the
/// end of the job that do not revive it.
fn active_times(job: u32, history: JobHistory<'_>) -> impl Iterator<Item = ActiveTime> {
    let mut has_ended = false;
    let mut is_active = false;
    history
        .number
        .iter()
        .enumerate()
        .filter_map(move |(at, &number)| {
            let had_ended = has_ended;
            has_ended = has_ended_after(had_ended, number);
            is_active |= !(had_ended && has_ended);

            // The last of several events of one time stands for all. The job is active if any of
            // them was not skipped.
            let is_last = history.time_ms.get(at + 1) != Some(&history.time_ms[at]);
            (is_last && std::mem::take(&mut is_active))
                .then(|| ActiveTime::new(history.time_ms[at], job, has_ended))
        })
}
