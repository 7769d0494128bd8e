//! Confidence intervals of the savings of a policy, by the circular block bootstrap of Politis and
//! Romano. It draws blocks of consecutive windows, because windows overlap and meet the same queue.

use rand::Rng as _;
use serde::{Deserialize, Serialize};

use poolcast_base::seed;
use poolcast_base::stats::interpolated_quantile;

const DRAWS: usize = 2000;

/// A mean over all windows, with its 95 % bootstrap interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DrawnInterval {
    /// Mean over all windows.
    pub value: f64,
    /// The 2.5 % quantile of the draws.
    pub low: f64,
    /// The 97.5 % quantile of the draws.
    pub high: f64,
}

/// Bootstrap draws of windows.
#[derive(Debug)]
pub(super) struct BlockDraws {
    /// Window numbers of each draw.
    draws: Vec<Vec<usize>>,
}

impl BlockDraws {
    /// Draws `count` windows in blocks of `length`, many times. Makes no draws if there are fewer
    /// than two blocks.
    pub(super) fn new(count: usize, length: usize, root_seed: u64) -> BlockDraws {
        let mut draws = Vec::new();
        if count < 2 * length {
            return BlockDraws { draws };
        }
        for number in 0..DRAWS {
            let mut generator = seed::generator(root_seed, "window blocks", &[number as i64]);
            let mut windows = Vec::with_capacity(count + length);
            while windows.len() < count {
                let first = generator.random_range(0..count);
                windows.extend((first..first + length).map(|window| window % count));
            }
            windows.truncate(count);
            draws.push(windows);
        }
        BlockDraws { draws }
    }

    /// Returns the decrease of the mean absolute gap from `reactive_h` to `gaps_h`, in hours.
    pub(super) fn gap_saved_h(&self, reactive_h: &[f64], gaps_h: &[f64]) -> Option<DrawnInterval> {
        self.interval(reactive_h.len(), |windows| {
            let mut saved_h = 0.0;
            for window in windows {
                saved_h += reactive_h[*window].abs() - gaps_h[*window].abs();
            }
            saved_h / windows.len() as f64
        })
    }

    /// Returns the relative decrease of the interruptions from `reactive_h` to `gaps_h`.
    pub(super) fn interruption_saved(
        &self,
        reactive_h: &[f64],
        gaps_h: &[f64],
    ) -> Option<DrawnInterval> {
        self.interval(reactive_h.len(), |windows| {
            let (mut before_h, mut after_h) = (0.0, 0.0);
            for window in windows {
                before_h += reactive_h[*window].max(0.0);
                after_h += gaps_h[*window].max(0.0);
            }
            if before_h > 0.0 {
                1.0 - after_h / before_h
            } else {
                0.0
            }
        })
    }

    fn interval(&self, count: usize, value: impl Fn(&[usize]) -> f64) -> Option<DrawnInterval> {
        if self.draws.is_empty() {
            return None;
        }
        let mut drawn: Vec<f64> = self.draws.iter().map(|windows| value(windows)).collect();
        drawn.sort_by(f64::total_cmp);
        let all: Vec<usize> = (0..count).collect();
        Some(DrawnInterval {
            value: value(&all),
            low: interpolated_quantile(&drawn, 0.025),
            high: interpolated_quantile(&drawn, 0.975),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_enclose_the_savings() {
        let reactive_h: Vec<f64> = (0..90).map(|window| f64::from(window % 7)).collect();
        let halved_h: Vec<f64> = reactive_h.iter().map(|gap| gap / 2.0).collect();
        let draws = BlockDraws::new(90, 30, 1);
        let share = draws
            .interruption_saved(&reactive_h, &halved_h)
            .expect("drawn");
        assert!((share.value - 0.5).abs() < 1e-12 && (share.low - 0.5).abs() < 1e-12);
        let saved = draws.gap_saved_h(&reactive_h, &halved_h).expect("drawn");
        assert!(
            saved.low < saved.value && saved.value < saved.high,
            "{saved:?}"
        );
        assert_eq!(
            BlockDraws::new(59, 30, 1).gap_saved_h(&[0.0; 59], &[0.0; 59]),
            None
        );
    }
}
