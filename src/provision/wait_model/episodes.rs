//! Samples by window: a window is an episode, and the last of them are held back to judge by.

use std::ops::Range;

use anyhow::{Result, ensure};

use poolcast_base::error::hinted;
use poolcast_base::output::counted;
use crate::samples::WaitSamples;

/// One of so many windows is held back: the last ones.
const HELD_BACK: usize = 5;

/// One of so many windows of an expert's part is what its epoch is chosen by.
const EXPERT_JUDGED: usize = 3;

/// So many windows there must be at least to learn from, and to judge by.
const FEWEST_EPISODES: usize = 2;

/// The rows of a window, by moment. The last one is at the predecessor's end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Episode {
    /// All of them.
    pub(super) rows: Range<usize>,
    /// From which of them on the predecessor runs: before, nobody knows how long it has left.
    pub(super) running: usize,
    /// The first moment, epoch seconds.
    begin_s: i64,
    /// When the last of the successors has started.
    known_s: i64,
}

impl Episode {
    /// The rows in which it can be decided whether to submit.
    pub(super) fn decisions(&self) -> Range<usize> {
        self.running..self.rows.end
    }
}

/// Windows to learn from, and later ones to judge by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EpisodeSplit {
    pub(super) learned: Vec<Episode>,
    pub(super) held_back: Vec<Episode>,
    /// Windows between, whose successors may start after the first window that is held back begins.
    pub(super) between: usize,
}

/// What a network of a mixture learns from by itself, and what its epoch is chosen by.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ExpertRows {
    pub(super) learned: Vec<usize>,
    pub(super) judged: Vec<usize>,
}

impl EpisodeSplit {
    /// Splits `samples` by time. Between the two parts lies a gap as long as the longest window.
    ///
    /// # Errors
    /// Fails where there are too few windows.
    pub(super) fn new(samples: &WaitSamples) -> Result<EpisodeSplit> {
        let mut episodes = episodes(samples);
        let count = episodes.len();
        let held_back = episodes.split_off(count - count / HELD_BACK);
        let longest_s = episodes.iter().chain(&held_back);
        let longest_s = longest_s
            .map(|episode| episode.known_s - episode.begin_s)
            .max();
        let before_s = held_back.first().map_or(0, |first| first.begin_s) - longest_s.unwrap_or(0);

        let is_before = |episode: &Episode| episode.begin_s <= before_s;
        let (learned, between): (Vec<Episode>, Vec<Episode>) =
            episodes.into_iter().partition(is_before);
        ensure!(
            learned.len() >= FEWEST_EPISODES && held_back.len() >= FEWEST_EPISODES,
            hinted(
                format!(
                    "the samples have {}: {} to judge by, and {} that begin as long before as a window lasts",
                    counted(count, "window"),
                    held_back.len(),
                    learned.len()
                ),
                "make samples with an earlier `--start-time`, or with a smaller `--interval`"
            )
        );
        Ok(EpisodeSplit {
            learned,
            held_back,
            between: between.len(),
        })
    }

    /// The rows of all windows to learn from.
    pub(super) fn learned_rows(&self) -> Vec<usize> {
        rows(&self.learned)
    }

    /// What each of `experts` networks of a mixture learns from by itself: the first half of all
    /// windows, as far as it is learned from, in as many parts that follow each other in time. The
    /// last third of each part is judged by. A part of fewer than two windows has no rows.
    pub(super) fn expert_rows(&self, experts: usize) -> Vec<ExpertRows> {
        let count = self.learned.len() + self.between + self.held_back.len();
        let half = &self.learned[..self.learned.len().min(count / 2)];
        let mut parts = Vec::with_capacity(experts);
        for expert in 0..experts {
            let [begin, end] = [expert, expert + 1].map(|before| half.len() * before / experts);
            let judged = ((end - begin) / EXPERT_JUDGED).max(1).min(end - begin);
            let (learned, judged) = half[begin..end].split_at(end - begin - judged);
            parts.push(ExpertRows {
                learned: rows(learned),
                judged: rows(judged),
            });
        }
        parts
    }

    /// The rows of all windows to judge by.
    pub(super) fn held_back_rows(&self) -> Vec<usize> {
        rows(&self.held_back)
    }
}

fn rows(episodes: &[Episode]) -> Vec<usize> {
    episodes
        .iter()
        .flat_map(|episode| episode.rows.clone())
        .collect()
}

/// The windows of `samples`, by time.
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
    fn too_few_windows_are_refused() {
        let error = EpisodeSplit::new(&queue_samples(9, 1)).expect_err("too few");
        assert!(
            error
                .to_string()
                .contains("the samples have 9 windows: 1 to judge by"),
            "{error}"
        );
        assert!(EpisodeSplit::new(&queue_samples(0, 1)).is_err());
    }
}
