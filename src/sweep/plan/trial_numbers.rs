//! The numbers of trials in a sweep that was extended: its ended trials keep the numbers that they had.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// The numbers of the trials of an extended sweep. A place is the number, from 1, that a trial of the
/// same configuration has in a sweep that was not extended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrialNumbers {
    /// The places of the trials, in the order of numbers: the first of some consecutive places, and
    /// their count.
    places: Vec<[usize; 2]>,
    /// The numbers of the trials that had ended before, in the same form.
    ended: Vec<[usize; 2]>,
}

impl TrialNumbers {
    /// Creates the numbers from the place of each trial, and from the numbers of ended trials.
    pub(crate) fn new(places: &[usize], ended: &[usize]) -> TrialNumbers {
        TrialNumbers {
            places: ranges_of(places),
            ended: ranges_of(ended),
        }
    }

    /// Returns the places of all `count` trials, in the order of numbers.
    ///
    /// # Errors
    /// Fails if they are not the places 1 to `count` in some order.
    pub(crate) fn places(&self, count: usize) -> Result<Vec<usize>> {
        let mut is_known = vec![false; count];
        let mut places = Vec::with_capacity(count);
        for place in self
            .places
            .iter()
            .flat_map(|[first, count]| range(*first, *count))
        {
            let known = is_known.get_mut(place.wrapping_sub(1));
            let is_new = known.is_some_and(|known| !std::mem::replace(known, true));
            ensure!(
                is_new,
                "the numbers of the sweep's trials do not fit its configuration"
            );
            places.push(place);
        }
        ensure!(
            places.len() == count,
            "the sweep has numbers for {} trials, but its configuration has {count}",
            places.len()
        );
        Ok(places)
    }

    /// Returns true if `trial` had ended before the sweep was extended.
    pub(crate) fn has_ended(&self, trial: usize) -> bool {
        let after = self.ended.partition_point(|[first, _]| *first <= trial);
        let range = after.checked_sub(1).map(|at| self.ended[at]);
        range.is_some_and(|[first, count]| trial - first < count)
    }
}

fn range(first: usize, count: usize) -> std::ops::Range<usize> {
    first..first.saturating_add(count)
}

/// Joins consecutive numbers: the first one, and their count.
fn ranges_of(numbers: &[usize]) -> Vec<[usize; 2]> {
    let mut ranges: Vec<[usize; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some([first, count]) if *first + *count == *number => *count += 1,
            _ => ranges.push([*number, 1]),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_round_trip_as_ranges() {
        let places = [1, 2, 3, 7, 8, 4, 6, 5];
        let numbers = TrialNumbers::new(&places, &[1, 2, 4]);
        assert_eq!(numbers.places, [[1, 3], [7, 2], [4, 1], [6, 1], [5, 1]]);
        assert_eq!(numbers.places(8).expect("places"), places);
        let ended: Vec<usize> = (0..=5).filter(|trial| numbers.has_ended(*trial)).collect();
        assert_eq!(ended, [1, 2, 4]);
    }

    #[test]
    fn damaged_numbers_are_rejected() {
        for ranges in [
            vec![],
            vec![[1, 2]],
            vec![[1, 4]],
            vec![[0, 3]],
            vec![[1, 2], [2, 1]],
            vec![[3, usize::MAX]],
        ] {
            let numbers = TrialNumbers {
                places: ranges,
                ended: Vec::new(),
            };
            assert!(numbers.places(3).is_err(), "{numbers:?}");
        }
    }
}
