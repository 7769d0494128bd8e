//! How much was held, released and submitted in the last frames.

use super::outcome_record::KeyLists;

/// Over so many frames before the moment of asking events are counted; in ascending order.
pub const RECENT_FRAMES: [u32; 4] = [1, 3, 10, 30];

/// What was written in the frames before a moment, by [`RECENT_FRAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecentCounts {
    /// Holds.
    pub holds: [u32; RECENT_FRAMES.len()],
    /// Releases.
    pub releases: [u32; RECENT_FRAMES.len()],
    /// Held jobs that succeeded once released.
    pub successes: [u32; RECENT_FRAMES.len()],
}

impl RecentCounts {
    /// Counts what is in `known`, which is what was known at `asked_ms`.
    pub(super) fn new(known: KeyLists<'_>, asked_ms: i64, frame_ms: i64) -> RecentCounts {
        let decided = known.decided;
        let successes_by = |decided_count: usize| match decided_count.checked_sub(1) {
            Some(last) => decided.successes[last],
            None => 0,
        };
        let all = decided.outcomes.len();
        let mut before = all;
        let successes = RECENT_FRAMES.map(|frames| {
            let from_ms = asked_ms - i64::from(frames) * frame_ms;
            before = count_near_end(&decided.outcomes[..before], |outcome| {
                outcome.decided_ms() <= from_ms
            });
            successes_by(all) - successes_by(before)
        });
        RecentCounts {
            holds: recent_moments(known.held, asked_ms, frame_ms),
            releases: recent_moments(known.released, asked_ms, frame_ms),
            successes,
        }
    }
}

/// How many of `times_ms`, which are in order and none after `asked_ms`, are in the frames before it.
pub(super) fn recent_moments(
    times_ms: &[i64],
    asked_ms: i64,
    frame_ms: i64,
) -> [u32; RECENT_FRAMES.len()] {
    // More frames begin earlier: what was before fewer of them is searched from its end on.
    let mut before = times_ms.len();
    RECENT_FRAMES.map(|frames| {
        let from_ms = asked_ms - i64::from(frames) * frame_ms;
        before = count_near_end(&times_ms[..before], |&time_ms| time_ms <= from_ms);
        (times_ms.len() - before) as u32
    })
}

/// How many items at the beginning of `items`, which are in order, `is_before` holds for. The last
/// of them is near the end, where doubled steps come to sooner than halves.
fn count_near_end<T>(items: &[T], is_before: impl Fn(&T) -> bool) -> usize {
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
    fn the_end_is_searched_from() {
        for n in 0..40 {
            let items: Vec<usize> = (0..n).collect();
            for until in 0..=n {
                assert_eq!(count_near_end(&items, |&item| item < until), until);
            }
        }
    }

    #[test]
    fn a_frame_ends_with_the_moment_of_asking() {
        let times_ms = [0, 1_000, 9_000, 9_001, 10_000];
        assert_eq!(recent_moments(&times_ms, 10_000, 1_000), [2, 3, 4, 5]);
    }
}
