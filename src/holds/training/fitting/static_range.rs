//! The range of each static feature over the samples that a network learns from. Other samples are
//! clipped to it.

use serde::{Deserialize, Serialize};

/// Minimum and maximum of each static feature, over the samples that a network learned from.
///
/// A network extrapolates almost linearly beyond the values it has seen. A count ten times as high
/// as any known one would outweigh all other features. Values outside the range are therefore
/// replaced by its nearer end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StaticRange {
    /// Minima, `[s]`.
    lowest: Vec<f32>,
    /// Maxima, `[s]`.
    highest: Vec<f32>,
}

impl StaticRange {
    /// Learns the ranges of the `s` static features of `samples`. Without samples, each range
    /// covers all numbers.
    pub(crate) fn learn<'a>(s: usize, samples: impl Iterator<Item = &'a [f32]>) -> StaticRange {
        let mut lowest = vec![f32::INFINITY; s];
        let mut highest = vec![f32::NEG_INFINITY; s];
        for statics in samples {
            for (at, &value) in statics.iter().enumerate() {
                lowest[at] = lowest[at].min(value);
                highest[at] = highest[at].max(value);
            }
        }

        for (lowest, highest) in lowest.iter_mut().zip(&mut highest) {
            if *lowest > *highest {
                (*lowest, *highest) = (f32::MIN, f32::MAX);
            }
        }
        StaticRange { lowest, highest }
    }

    /// Clips `statics` `[n, s]` to the ranges.
    pub(crate) fn clip(&self, statics: &mut [f32]) {
        if self.lowest.is_empty() {
            return;
        }
        for sample_statics in statics.chunks_exact_mut(self.lowest.len()) {
            for (at, value) in sample_statics.iter_mut().enumerate() {
                *value = value.max(self.lowest[at]).min(self.highest[at]);
            }
        }
    }

    /// Returns true if there is a range for each of `s` features.
    pub(crate) fn is_of(&self, s: usize) -> bool {
        self.lowest.len() == s && self.highest.len() == s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_outside_the_range_are_clipped() {
        let samples: [&[f32]; 3] = [&[0.0, 2.0], &[0.5, -1.0], &[1.0, 0.0]];
        let range = StaticRange::learn(2, samples.into_iter());
        let mut statics = [0.5, 9.0, -3.0, -3.0];
        range.clip(&mut statics);
        assert_eq!(statics, [0.5, 2.0, 0.0, -1.0]);
        assert!(range.is_of(2) && !range.is_of(3));

        let unseen = StaticRange::learn(2, std::iter::empty());
        let mut statics = [-9.0, 9.0];
        unseen.clip(&mut statics);
        assert_eq!(statics, [-9.0, 9.0]);
        StaticRange::learn(0, std::iter::empty()).clip(&mut []);
    }
}
