//! Counts of recent holds, releases and successes, as features at prediction time.

use super::outcome_record::KeyLists;

/// Window lengths in frames, ascending. Each window ends at prediction time.
pub const WINDOW_FRAMES: [u32; 4] = [1, 3, 10, 30];

/// Event counts per window of [`WINDOW_FRAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecentCounts {
    /// Holds begun.
    pub holds: [u32; WINDOW_FRAMES.len()],
    /// Releases.
    pub releases: [u32; WINDOW_FRAMES.len()],
    /// Successes decided after a release.
    pub successes: [u32; WINDOW_FRAMES.len()],
}

impl RecentCounts {
    /// Counts the events in `known`. None may be later than `asked_ms`, the prediction time.
    pub(crate) fn new(known: KeyLists<'_>, asked_ms: i64, frame_ms: i64) -> RecentCounts {
        let decided = known.decided;
        let successes_by = |decided_count: usize| match decided_count.checked_sub(1) {
            Some(last) => decided.successes[last],
            None => 0,
        };
        let all = decided.outcomes.len();
        let mut before = all;
        let successes = WINDOW_FRAMES.map(|frames| {
            let from_ms = asked_ms - i64::from(frames) * frame_ms;
            before = partition_point_from_end(&decided.outcomes[..before], |outcome| {
                outcome.decided_ms() <= from_ms
            });
            successes_by(all) - successes_by(before)
        });
        RecentCounts {
            holds: count_in_windows(known.held, asked_ms, frame_ms),
            releases: count_in_windows(known.released, asked_ms, frame_ms),
            successes,
        }
    }
}

/// Counts the sorted `times_ms` in each window. No time may be later than `asked_ms`.
pub(crate) fn count_in_windows(
    times_ms: &[i64],
    asked_ms: i64,
    frame_ms: i64,
) -> [u32; WINDOW_FRAMES.len()] {
    // Windows grow, so each search continues where the previous one ended.
    let mut before = times_ms.len();
    WINDOW_FRAMES.map(|frames| {
        let from_ms = asked_ms - i64::from(frames) * frame_ms;
        before = partition_point_from_end(&times_ms[..before], |&time_ms| time_ms <= from_ms);
        (times_ms.len() - before) as u32
    })
}

/// Like `items.partition_point(is_before)`, but gallops from the end, where the answer usually is.
fn partition_point_from_end<T>(items: &[T], is_before: impl Fn(&T) -> bool) -> usize {
    let mut step = 1;
    let mut end = items.len();
    while step <= end && !is_before(&items[end - step]) {
        end -= step;
        step *= 2;
    }
    let begin = end.saturating_sub(step);
    begin + items[begin..end].partition_point(is_before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn galloping_agrees_with_partition_point() {
        for n in 0..40 {
            let items: Vec<usize> = (0..n).collect();
            for until in 0..=n {
                assert_eq!(
                    partition_point_from_end(&items, |&item| item < until),
                    until
                );
            }
        }
    }

    #[test]
    fn windows_end_at_prediction_time() {
        let times_ms = [0, 1_000, 9_000, 9_001, 10_000];
        assert_eq!(count_in_windows(&times_ms, 10_000, 1_000), [2, 3, 4, 5]);
    }
}
