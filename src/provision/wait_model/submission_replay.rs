//! Replays a submission policy on the samples, window by window. The samples contain the outcome of
//! a submission at each decision time.

use super::episodes::Episode;
use crate::samples::WaitSamples;

/// Returns the gap of a successor submitted in row `row`, in hours.
pub(super) fn gap_h(samples: &WaitSamples, row: usize) -> f64 {
    samples.gap_s[row] as f64 / 3600.0
}

/// Returns the gap in each of `episodes`, in hours. The successor is submitted in the first row for
/// which `submits` returns true, or else at its predecessor's end.
pub(super) fn replayed_gaps_h(
    samples: &WaitSamples,
    episodes: &[Episode],
    submits: impl Fn(usize) -> bool,
) -> Vec<f64> {
    let mut gaps_h = Vec::with_capacity(episodes.len());
    for episode in episodes {
        let last = episode.rows.end - 1;
        let chosen = (episode.running..last).find(|row| submits(*row));
        gaps_h.push(gap_h(samples, chosen.unwrap_or(last)));
    }
    gaps_h
}

/// Returns the smallest gap in each of `episodes`, by absolute value, in hours: the best choice in
/// hindsight.
pub(super) fn best_gaps_h(samples: &WaitSamples, episodes: &[Episode]) -> Vec<f64> {
    let mut gaps_h = Vec::with_capacity(episodes.len());
    for episode in episodes {
        let gaps = episode.decisions().map(|row| gap_h(samples, row));
        gaps_h.extend(gaps.min_by(|a, b| a.abs().total_cmp(&b.abs())));
    }
    gaps_h
}

/// Returns the smallest wait, in seconds, for which a successor should be submitted in row `row`.
/// With such a wait it starts nearer to its predecessor's end than after a submission in the next
/// row.
pub(super) fn needed_wait_s(samples: &WaitSamples, row: usize) -> i64 {
    let left_s = samples.left_s[row];
    let is_last = samples.window.get(row + 1) != Some(&samples.window[row]);
    let next_s = if is_last {
        left_s
    } else {
        samples.left_s[row + 1]
    };
    left_s - (left_s - next_s) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_model::episodes::EpisodeSplit;
    use crate::wait_model::sample_checks::queue_samples;

    #[test]
    fn an_episode_ends_with_its_first_submission() {
        let samples = queue_samples(30, 1);
        let split = EpisodeSplit::new(&samples).expect("a split");
        let episode = &split.learned[..1];
        let rows = episode[0].decisions();
        let gap_of = |submits: &dyn Fn(usize) -> bool| replayed_gaps_h(&samples, episode, submits);

        let last = gap_h(&samples, rows.end - 1);
        assert_eq!(gap_of(&|_| false), [last]);
        assert!(last >= 0.0, "the reactive one is never early");
        assert_eq!(gap_of(&|_| true), [gap_h(&samples, rows.start)]);
        assert_eq!(
            gap_of(&|row| row > rows.start + 1),
            [gap_h(&samples, rows.start + 2)]
        );

        let best = best_gaps_h(&samples, episode)[0].abs();
        for row in rows.clone() {
            assert!(best <= gap_h(&samples, row).abs());
        }
        assert_eq!(needed_wait_s(&samples, rows.end - 1), 0);
        let next = [rows.start, rows.start + 1].map(|row| samples.left_s[row]);
        assert_eq!(
            needed_wait_s(&samples, rows.start),
            next[0] - (next[0] - next[1]) / 2
        );
    }
}
