//! Upper confidence bound on the next wait, computed from past waits by the method of QBETS
//! (Brevik, Nurmi, Wolski, PPoPP 2006).

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// Probability that the bound is not below the quantile.
const CONFIDENCE: f64 = 0.95;

/// Maximum number of waits kept. Older waits are not informative for the next.
const MAX_WAITS: usize = 4096;

/// An upper bound on a quantile of waits.
#[derive(Debug, Clone)]
pub struct HistoryBound {
    quantile: f64,
    /// Waits in order of the starts.
    waits_s: Vec<i64>,
    sorted_s: Vec<i64>,
    /// Number of consecutive waits that exceeded the bound.
    misses: usize,
    bound_s: Option<i64>,
}

impl HistoryBound {
    /// Creates a bound on the quantile `quantile`, without waits.
    pub fn new(quantile: f64) -> HistoryBound {
        HistoryBound {
            quantile,
            waits_s: Vec::new(),
            sorted_s: Vec::new(),
            misses: 0,
            bound_s: None,
        }
    }

    /// Returns the bound, in seconds; `None` while there are too few waits.
    pub fn bound_s(&self) -> Option<i64> {
        self.bound_s
    }

    /// Adds a wait. If too many consecutive waits exceed the bound for chance, the queue has
    /// changed. Then only the last waits are kept, as many as a bound needs.
    pub fn observe(&mut self, wait_s: i64) {
        if self.bound_s.is_some_and(|bound_s| wait_s > bound_s) {
            self.misses += 1;
        } else {
            self.misses = 0;
        }
        self.waits_s.push(wait_s);
        let place = self.sorted_s.partition_point(|other| *other < wait_s);
        self.sorted_s.insert(place, wait_s);

        if self.misses >= unlikely_misses(self.quantile) {
            self.keep_last(min_waits(self.quantile));
            self.misses = 0;
        } else if self.waits_s.len() > MAX_WAITS {
            self.keep_last(MAX_WAITS / 2);
        }
        let place = bound_index(self.sorted_s.len(), self.quantile);
        self.bound_s = place.map(|place| self.sorted_s[place]);
    }

    /// Drops all waits but the last `kept`.
    fn keep_last(&mut self, kept: usize) {
        self.waits_s
            .drain(..self.waits_s.len().saturating_sub(kept));
        self.sorted_s.clone_from(&self.waits_s);
        self.sorted_s.sort_unstable();
    }
}

/// Returns the number of consecutive waits above the quantile that chance hardly explains. It is at
/// least 3, because the waits of consecutive jobs are similar.
fn unlikely_misses(quantile: f64) -> usize {
    let misses = ((1.0 - CONFIDENCE).ln() / (1.0 - quantile).ln()).ceil();
    (misses as usize).max(3)
}

/// Returns the smallest number of waits for which the longest wait is a valid bound.
fn min_waits(quantile: f64) -> usize {
    ((1.0 - CONFIDENCE).ln() / quantile.ln()).ceil() as usize
}

/// Returns the index of the bound among `count` sorted waits. It is the first index whose wait is
/// below the quantile with a probability of at most 1 - [`CONFIDENCE`].
fn bound_index(count: usize, quantile: f64) -> Option<usize> {
    if count < min_waits(quantile) {
        return None;
    }
    let below = Binomial::new(quantile, count as u64).ok()?;
    // The bound is only a few steps above the quantile itself.
    let mut place = (count as f64 * quantile) as usize;
    while place + 1 < count && below.cdf(place as u64) < CONFIDENCE {
        place += 1;
    }
    Some(place.min(count - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published example: the longest of 59 waits bounds the quantile 0.95 with confidence
    /// 0.95.
    #[test]
    fn minimum_numbers_of_waits_are_as_published() {
        assert_eq!(min_waits(0.95), 59);
        assert_eq!(
            (bound_index(58, 0.95), bound_index(59, 0.95)),
            (None, Some(58))
        );
        assert_eq!((min_waits(0.5), unlikely_misses(0.5)), (5, 5));
        // P(Bin(100, 0.5) <= 57) = 0.933, and P(Bin(100, 0.5) <= 58) = 0.956.
        assert_eq!(bound_index(100, 0.5), Some(58));
    }

    #[test]
    fn a_change_of_the_queue_is_noticed() {
        let mut bound = HistoryBound::new(0.75);
        for wait_s in 0..200 {
            bound.observe(wait_s % 20);
        }
        assert!(bound.bound_s().is_some_and(|bound_s| bound_s < 20));
        for _ in 0..12 {
            bound.observe(5000);
        }
        assert_eq!(bound.bound_s(), Some(5000));
    }
}
