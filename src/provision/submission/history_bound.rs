//! A bound on the next wait from past ones, which holds with a confidence: the method of QBETS
//! (Brevik, Nurmi, Wolski, PPoPP 2006).

use statrs::distribution::{Binomial, DiscreteCDF as _};

/// How sure it is that the bound is not below the quantile.
const CONFIDENCE: f64 = 0.95;

/// Waits before these say nothing of the next.
const MOST_WAITS: usize = 4096;

/// An upper bound on a quantile of waits.
#[derive(Debug, Clone)]
pub struct HistoryBound {
    quantile: f64,
    /// In the order of their starts.
    waits_s: Vec<i64>,
    sorted_s: Vec<i64>,
    /// How many waits in a row exceeded the bound.
    misses: usize,
    bound_s: Option<i64>,
}

impl HistoryBound {
    /// A bound on the quantile `quantile`, without waits as yet.
    pub fn new(quantile: f64) -> HistoryBound {
        HistoryBound {
            quantile,
            waits_s: Vec::new(),
            sorted_s: Vec::new(),
            misses: 0,
            bound_s: None,
        }
    }

    /// The bound, seconds; `None` while there are too few waits for one.
    pub fn bound_s(&self) -> Option<i64> {
        self.bound_s
    }

    /// Takes another wait. After so many in a row beyond the bound as chance hardly has it, the
    /// queue has changed, and only as many of the last waits are kept as a bound needs.
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
            self.keep_last(least_waits(self.quantile));
            self.misses = 0;
        } else if self.waits_s.len() > MOST_WAITS {
            self.keep_last(MOST_WAITS / 2);
        }
        let place = bound_place(self.sorted_s.len(), self.quantile);
        self.bound_s = place.map(|place| self.sorted_s[place]);
    }

    fn keep_last(&mut self, kept: usize) {
        self.waits_s
            .drain(..self.waits_s.len().saturating_sub(kept));
        self.sorted_s.clone_from(&self.waits_s);
        self.sorted_s.sort_unstable();
    }
}

/// How many waits in a row have to exceed the quantile for chance to be an unlikely reason; three at
/// least, as waits of jobs that follow each other are alike.
fn unlikely_misses(quantile: f64) -> usize {
    let misses = ((1.0 - CONFIDENCE).ln() / (1.0 - quantile).ln()).ceil();
    (misses as usize).max(3)
}

/// The fewest waits of which the longest is a bound.
fn least_waits(quantile: f64) -> usize {
    ((1.0 - CONFIDENCE).ln() / quantile.ln()).ceil() as usize
}

/// Which of `count` sorted waits is the bound: the first that at most with probability
/// 1 - [`CONFIDENCE`] is below the quantile.
fn bound_place(count: usize, quantile: f64) -> Option<usize> {
    if count < least_waits(quantile) {
        return None;
    }
    let below = Binomial::new(quantile, count as u64).ok()?;
    // From the quantile itself upwards there are few steps.
    let mut place = (count as f64 * quantile) as usize;
    while place + 1 < count && below.cdf(place as u64) < CONFIDENCE {
        place += 1;
    }
    Some(place.min(count - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published example: of 59 waits the longest bounds the quantile 0.95 with confidence 0.95.
    #[test]
    fn the_fewest_waits_are_as_published() {
        assert_eq!(least_waits(0.95), 59);
        assert_eq!(
            (bound_place(58, 0.95), bound_place(59, 0.95)),
            (None, Some(58))
        );
        assert_eq!((least_waits(0.5), unlikely_misses(0.5)), (5, 5));
        // P(Bin(100, 0.5) <= 57) = 0.933, and <= 58 is 0.956.
        assert_eq!(bound_place(100, 0.5), Some(58));
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
