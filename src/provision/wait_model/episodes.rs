//! Episodes: the samples grouped by window, split by time into learned and held-back windows.

use std::ops::Range;

use anyhow::{Result, ensure};

use crate::samples::WaitSamples;
use poolcast_base::error::hinted;
use poolcast_base::output::counted;

/// One in this many windows is held back for the evaluation: the last ones.
const HELD_BACK_DIVISOR: usize = 5;

/// One in this many windows of an expert's part chooses its best epoch: the last ones.
const JUDGED_DIVISOR: usize = 3;

/// Minimum number of windows to learn from, and also of windows held back.
const MIN_EPISODES: usize = 2;

/// The rows of one window, by time. The last row is at the predecessor's end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Episode {
    /// All rows of the window.
    pub(super) rows: Range<usize>,
    /// First row at which the predecessor runs. Before, its remaining time is not known.
    pub(super) running: usize,
    /// Time of the first row, in epoch seconds.
    begin_s: i64,
    /// Start of the latest successor, in epoch seconds. From then on, all outcomes are known.
    known_s: i64,
}

impl Episode {
    /// The rows at which a submission can be decided.
    pub(super) fn decisions(&self) -> Range<usize> {
        self.running..self.rows.end
    }
}

/// Windows to learn from, and later windows for the evaluation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EpisodeSplit {
    pub(super) learned: Vec<Episode>,
    pub(super) held_back: Vec<Episode>,
    /// Number of windows in the gap between both parts. Their successors may start after the first
    /// held-back window begins.
    pub(super) between: usize,
}

/// The rows that one network of a mixture learns from alone, and the rows that decide which epoch
/// is kept.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExpertRows {
    pub(super) learned: Vec<usize>,
    pub(super) judged: Vec<usize>,
}

impl EpisodeSplit {
    /// Splits `samples` by time. The gap between both parts is as long as the longest window.
    ///
    /// # Errors
    /// Fails if there are too few windows.
    pub(super) fn new(samples: &WaitSamples) -> Result<EpisodeSplit> {
        let mut episodes = episodes(samples);
        let count = episodes.len();
        let held_back = episodes.split_off(count - count / HELD_BACK_DIVISOR);
        // The outcomes of all learned windows must be known when the first held-back window begins.
        let longest_s = episodes.iter().chain(&held_back);
        let longest_s = longest_s
            .map(|episode| episode.known_s - episode.begin_s)
            .max();
        let before_s = held_back.first().map_or(0, |first| first.begin_s) - longest_s.unwrap_or(0);

        let is_before = |episode: &Episode| episode.begin_s <= before_s;
        let (learned, between): (Vec<Episode>, Vec<Episode>) =
            episodes.into_iter().partition(is_before);
        ensure!(
            learned.len() >= MIN_EPISODES && held_back.len() >= MIN_EPISODES,
            hinted(
                format!(
                    "the samples have {}: {} held back, and {} with outcomes known before those; at least {MIN_EPISODES} of each are needed",
                    counted(count, "window"),
                    held_back.len(),
                    learned.len()
                ),
                "create samples with an earlier `--start-time`, or with a smaller `--interval`"
            )
        );
        Ok(EpisodeSplit {
            learned,
            held_back,
            between: between.len(),
        })
    }

    /// Returns the rows of all windows to learn from.
    pub(super) fn learned_rows(&self) -> Vec<usize> {
        rows(&self.learned)
    }

    /// Returns the rows that each of `experts` networks of a mixture learns from alone.
    ///
    /// They are from the first half of all windows, without windows that are not learned from. That
    /// half is cut into `experts` consecutive parts. The last third of each part, but at least one
    /// window, is for the evaluation. A part of fewer than two windows has no rows to learn from.
    pub(super) fn expert_rows(&self, experts: usize) -> Vec<ExpertRows> {
        let count = self.learned.len() + self.between + self.held_back.len();
        let half = &self.learned[..self.learned.len().min(count / 2)];
        let mut parts = Vec::with_capacity(experts);
        for expert in 0..experts {
            let [begin, end] = [expert, expert + 1].map(|before| half.len() * before / experts);
            let judged = ((end - begin) / JUDGED_DIVISOR).max(1).min(end - begin);
            let (learned, judged) = half[begin..end].split_at(end - begin - judged);
            parts.push(ExpertRows {
                learned: rows(learned),
                judged: rows(judged),
            });
        }
        parts
    }

    /// Returns the rows of all held-back windows.
    pub(super) fn held_back_rows(&self) -> Vec<usize> {
        rows(&self.held_back)
    }
}

/// Returns the rows of all `episodes`.
fn rows(episodes: &[Episode]) -> Vec<usize> {
    episodes
        .iter()
        .flat_map(|episode| episode.rows.clone())
        .collect()
}

/// Groups `samples` into episodes, sorted by time.
fn episodes(samples: &WaitSamples) -> Vec<Episode> {
    let mut episodes = Vec::new();
    let mut begin = 0;
    for end in 1..=samples.len() {
        if end == samples.len() || samples.window[end] != samples.window[begin] {
            episodes.push(episode(samples, begin..end));
            begin = end;
        }
    }
    episodes.sort_by_key(|episode| episode.begin_s);
    episodes
}

/// Creates the episode of one window, whose rows are `rows`.
fn episode(samples: &WaitSamples, rows: Range<usize>) -> Episode {
    let length_s = samples.description.length_s;
    let last = rows.end - 1;
    let running = rows.clone().find(|row| samples.left_s[*row] <= length_s);
    let known_s = rows
        .clone()
        .map(|row| samples.moment_s[row] + samples.wait_s[row]);
    Episode {
        running: running.unwrap_or(last),
        begin_s: samples.moment_s[rows.start],
        known_s: known_s.max().unwrap_or(0),
        rows,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_model::sample_checks::queue_samples;

    #[test]
    fn the_last_windows_are_held_back_with_a_gap() {
        let samples = queue_samples(40, 1);
        let split = EpisodeSplit::new(&samples).expect("a split");
        assert_eq!(split.held_back.len(), 8);
        assert!(split.between > 0);
        assert_eq!(split.learned.len() + split.between, 32);

        let first_s = split.held_back[0].begin_s;
        for episode in &split.learned {
            assert!(episode.known_s <= first_s);
            assert_eq!(samples.left_s[episode.rows.end - 1], 0);
            let before = episode.rows.start..episode.running;
            assert!(
                before
                    .clone()
                    .all(|row| samples.left_s[row] > samples.description.length_s)
            );
            assert!(!before.is_empty(), "its first probe comes before it runs");
        }
        let rows = split.learned_rows();
        assert!(rows.is_sorted() && split.held_back_rows()[0] > rows[rows.len() - 1]);
    }

    #[test]
    fn experts_share_the_first_half_by_time() {
        let samples = queue_samples(60, 1);
        let split = EpisodeSplit::new(&samples).expect("a split");
        let parts = split.expert_rows(4);
        let mut shared: Vec<usize> = Vec::new();
        for part in &parts {
            assert!(part.learned.len() >= 2 * part.judged.len() && !part.judged.is_empty());
            shared.extend(part.learned.iter().chain(&part.judged));
        }
        assert!(shared.is_sorted());
        assert_eq!(shared, rows(&split.learned[..30]));

        let few = EpisodeSplit {
            learned: split.learned[..5].to_vec(),
            ..split
        };
        let counts = few.expert_rows(4).into_iter();
        let counts = counts.map(|part| (part.learned.is_empty(), part.judged.is_empty()));
        let (none, some) = ((true, false), (false, false));
        assert_eq!(counts.collect::<Vec<_>>(), [none, none, none, some]);
    }

    #[test]
    fn too_few_windows_are_rejected() {
        let error = EpisodeSplit::new(&queue_samples(9, 1)).expect_err("too few");
        assert!(
            error
                .to_string()
                .contains("the samples have 9 windows: 1 held back"),
            "{error}"
        );
        assert!(EpisodeSplit::new(&queue_samples(0, 1)).is_err());
    }
}
