//! Intervals of what policies save, by drawing blocks of windows that follow each other (the
//! circular block bootstrap of Politis and Romano): windows overlap, and meet the same queue.

use rand::Rng as _;
use serde::{Deserialize, Serialize};

use poolcast_base::stats::quantile;
use poolcast_base::seed;

const DRAWS: usize = 2000;

/// A mean, and between which values 95 % of those of drawn windows are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DrawnInterval {
    /// Of all windows.
    pub value: f64,
    /// What 2.5 % of the draws do not reach.
    pub low: f64,
    /// What 2.5 % of them exceed.
    pub high: f64,
}

/// Windows, drawn again and again.
#[derive(Debug)]
pub(super) struct BlockDraws {
    /// Which windows each draw has.
    draws: Vec<Vec<usize>>,
}

impl BlockDraws {
    /// Draws of `count` windows in blocks of `length`; none where there are fewer than two blocks.
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

    /// By how much the mean of the absolute `gaps_h` is below that of `reactive_h`.
    pub(super) fn gap_saved_h(&self, reactive_h: &[f64], gaps_h: &[f64]) -> Option<DrawnInterval> {
        self.interval(reactive_h.len(), |windows| {
            let mut saved_h = 0.0;
            for window in windows {
                saved_h += reactive_h[*window].abs() - gaps_h[*window].abs();
            }
            saved_h / windows.len() as f64
        })
    }

    /// By which share the interruptions of `gaps_h` are below those of `reactive_h`.
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
            low: quantile(&drawn, 0.025),
            high: quantile(&drawn, 0.975),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_enclose_what_is_saved() {
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
