//! The samples that a network learns from → the range of each static feature, and other samples
//! drawn into it.

use serde::{Deserialize, Serialize};

/// The lowest and the highest value of each static feature, over the samples that a network learned
/// from.
///
/// A network is all but linear beyond what it has seen: a count ten times as high as any that it
/// knows would drown whatever else speaks for or against a job. So it is shown the end of the range
/// in place of what lies beyond.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StaticRange {
    /// `[s]`.
    lowest: Vec<f32>,
    /// `[s]`.
    highest: Vec<f32>,
}

impl StaticRange {
    /// The ranges of the `s` static features of `samples`; without samples, all numbers.
    pub(super) fn learn<'a>(s: usize, samples: impl Iterator<Item = &'a [f32]>) -> StaticRange {
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

    /// Draws `statics` `[n, s]` into the ranges.
    pub(super) fn clip(&self, statics: &mut [f32]) {
        if self.lowest.is_empty() {
            return;
        }
        for of_sample in statics.chunks_exact_mut(self.lowest.len()) {
            for (at, value) in of_sample.iter_mut().enumerate() {
                *value = value.max(self.lowest[at]).min(self.highest[at]);
            }
        }
    }

    /// Whether it is one of `s` features.
    pub(super) fn is_of(&self, s: usize) -> bool {
        self.lowest.len() == s && self.highest.len() == s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_beyond_what_was_seen_count_as_its_end() {
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
