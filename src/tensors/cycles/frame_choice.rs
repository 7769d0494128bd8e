//! Chooses the length of time frames from the durations of holds and the length of the log.

use poolcast_base::output;
use poolcast_base::stats::upper_median;
use poolcast_config::LabelKind;
use poolcast_events::{EventStore, StoredJob};

use super::hold_cycles::hold_cycles;

/// Candidate lengths, in seconds.
const LENGTHS_S: [u32; 17] = [
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14_400, 43_200, 86_400,
];

/// Minimum number of frames per hold of median duration.
const MIN_FRAMES_PER_HOLD: i64 = 2;

/// Minimum number of frames in the log. With fewer frames there would be little to learn from.
const MIN_FRAMES_PER_LOG: i64 = 100;

/// The length of a time frame, and the values that determined it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameChoice {
    /// Seconds per time frame.
    pub timeframe_len_s: u32,
    /// Median duration of the released holds, in ms; `None` if there are none.
    pub median_hold_ms: Option<i64>,
    /// Time from the first event to the last, in ms.
    pub log_span_ms: i64,
}

impl FrameChoice {
    /// Chooses frames that show the activity of the pool while jobs are held: two frames per hold
    /// of median duration, or shorter ones if the log is too short for that.
    pub fn by_log(store: &EventStore) -> FrameChoice {
        let jobs = store.jobs();
        let mut held_for_ms: Vec<i64> = jobs
            .map_ranges(|range| {
                range
                    .flat_map(|index| released_hold_durations_ms(store, &jobs.get(index)))
                    .collect::<Vec<i64>>()
            })
            .concat();
        held_for_ms.sort_unstable();
        let median = upper_median(&held_for_ms);
        FrameChoice::new(median, store.summary.end_ms - store.summary.begin_ms)
    }

    fn new(median_hold_ms: Option<i64>, log_span_ms: i64) -> FrameChoice {
        let max_by_log_ms = log_span_ms / MIN_FRAMES_PER_LOG;
        let max_length_ms = median_hold_ms.map_or(max_by_log_ms, |median_ms| {
            max_by_log_ms.min(median_ms / MIN_FRAMES_PER_HOLD)
        });
        let fits = |length_s: &u32| i64::from(*length_s) * 1000 <= max_length_ms;
        let longest = LENGTHS_S.into_iter().rev().find(fits);
        FrameChoice {
            timeframe_len_s: longest.unwrap_or(LENGTHS_S[0]),
            median_hold_ms,
            log_span_ms,
        }
    }

    /// Describes the choice in words.
    pub fn describe(&self) -> String {
        let holds = match self.median_hold_ms {
            Some(median_ms) => format!(
                "the median hold was released after {}",
                output::time_span(median_ms)
            ),
            None => "no hold was released".to_owned(),
        };
        format!(
            "time frames of {}: {holds}, and the log spans {}",
            output::time_span(i64::from(self.timeframe_len_s) * 1000),
            output::time_span(self.log_span_ms)
        )
    }
}

/// Returns the durations of the job's holds that ended with a release, in ms.
fn released_hold_durations_ms(store: &EventStore, job: &StoredJob<'_>) -> Vec<i64> {
    let history = job.history;
    let mut lasted_ms = Vec::new();
    for cycle in hold_cycles(history, LabelKind::Next, store.gaps(job.ap)) {
        if let Some(end) = cycle.end
            && cycle.is_released(&history)
        {
            lasted_ms.push(history.time_ms[end] - history.time_ms[cycle.hold]);
        }
    }
    lasted_ms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_length_fits_holds_and_log() {
        let length_s = |median_s: Option<i64>, span_s: i64| {
            let median_ms = median_s.map(|median_s| 1000 * median_s);
            FrameChoice::new(median_ms, 1000 * span_s).timeframe_len_s
        };
        const DAY_S: i64 = 86_400;
        assert_eq!(length_s(Some(50), 2190), 20, "the bundled log");
        assert_eq!(length_s(Some(1290), 14 * DAY_S), 600);
        assert_eq!(length_s(Some(7 * DAY_S), 365 * DAY_S), 86_400);
        assert_eq!(length_s(Some(7 * DAY_S), 30 * DAY_S), 14_400, "a short log");
        assert_eq!(length_s(None, 2190), 20);
        assert_eq!(length_s(Some(1), 2190), 1);
        assert_eq!(length_s(Some(0), 0), 1);
    }

    #[test]
    fn frame_choice_is_described_in_words() {
        let choice = FrameChoice::new(Some(1_290_000), 14 * 86_400_000);
        assert_eq!(
            choice.describe(),
            "time frames of 10 min 0 s: the median hold was released after 21 min 30 s, and the log spans 14 d 0 h"
        );
        assert_eq!(
            FrameChoice::new(None, 60_000).describe(),
            "time frames of 1 s: no hold was released, and the log spans 1 min 0 s"
        );
    }
}
