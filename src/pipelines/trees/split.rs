//! Search for the best split of a node at a column, over the bins that have rows of the node.
//!
//! Scores, leaves and penalties follow Chen and Guestrin, "XGBoost: a scalable tree boosting
//! system", KDD 2016, with xgboost's L1 penalty. Without penalties, and with squared loss, a score
//! is the part of the sum of squares that the mean explains. For rows of two classes, that is half
//! of Gini's impurity.

use std::ops::Range;

use super::histogram::FilledBin;
use super::sampled_rows::{DerivativeUnits, GradientSum, RowBins, SplitBins};

/// Rule that rates splits and sets the values of leaves.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitRule {
    /// Weight of the L2 penalty on leaves.
    pub(crate) reg_lambda: f64,
    /// Weight of the L1 penalty on leaves.
    pub(crate) reg_alpha: f64,
    /// Exclusive lower limit of a split's gain.
    pub(crate) min_gain: f64,
    /// Minimum sum of second derivatives on each side.
    pub(crate) min_child_weight: f64,
    /// Units of the derivatives of the rows.
    pub(crate) units: DerivativeUnits,
}

impl SplitRule {
    fn weight(&self, sum: GradientSum) -> f64 {
        sum.hessian as f64 * self.units.hessian
    }

    /// Returns the sum of gradients, shrunk towards 0 by the L1 penalty.
    fn shrunk_gradient(&self, sum: GradientSum) -> f64 {
        let gradient = sum.gradient as f64 * self.units.gradient;
        gradient.signum() * (gradient.abs() - self.reg_alpha).max(0.0)
    }

    /// Returns twice the reduction of the rows' loss by the best leaf.
    #[inline]
    fn score(&self, sum: GradientSum) -> f64 {
        let gradient = self.shrunk_gradient(sum);
        gradient * gradient / (self.weight(sum) + self.reg_lambda)
    }

    /// Returns the value of the best leaf.
    pub(super) fn leaf_value(&self, sum: GradientSum) -> f64 {
        -self.shrunk_gradient(sum) / (self.weight(sum) + self.reg_lambda)
    }

    /// Returns true if a split of the rows could leave enough weight on both sides.
    pub(super) fn could_split(&self, sum: GradientSum) -> bool {
        self.weight(sum) >= 2.0 * self.min_child_weight
    }

    fn is_heavy_enough(&self, side: GradientSum) -> bool {
        side.hessian > 0 && self.weight(side) >= self.min_child_weight
    }
}

/// A split of a node at one column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ColumnSplit {
    /// Sum of the scores of both sides, minus the score of the node.
    pub(super) gain: f64,
    /// Bins on both sides of the split.
    pub(super) bins: SplitBins,
    /// True if rows with a missing value go first, too.
    pub(super) missing_first: bool,
    /// Sum of the rows that go first.
    pub(super) first: GradientSum,
}

/// Search for the best split of one node, at one column after another.
#[derive(Debug)]
pub(super) struct SplitSearch<'a> {
    rule: &'a SplitRule,
    /// Sum of all rows of the node.
    total: GradientSum,
    node_score: f64,
}

impl<'a> SplitSearch<'a> {
    /// Creates a search among the rows whose sum is `total`.
    pub(super) fn new(rule: &'a SplitRule, total: GradientSum) -> SplitSearch<'a> {
        SplitSearch {
            rule,
            total,
            node_score: rule.score(total),
        }
    }

    /// Returns the best split at a column, or `None` if no split gains enough. `filled` are the
    /// bins with rows. Rows with a missing value go to the side where they gain more. If no row of
    /// the node has a missing value, missing values go to the heavier side.
    pub(super) fn best_split(
        &self,
        filled: &[FilledBin],
        missing_bin: usize,
    ) -> Option<ColumnSplit> {
        let (known, missing) = split_missing(filled, missing_bin);

        let mut best = None;
        let mut below = GradientSum::default();
        for (at, next) in known.iter().enumerate() {
            below = below.plus(next.sum);
            // Above the last bin of known values, there are only missing values.
            let bins = SplitBins {
                last: next.bin,
                next: known.get(at + 1).map_or(missing_bin as u8, |next| next.bin),
            };
            self.offer_with_missing(&mut best, bins, below, missing);
        }
        best
    }

    /// Returns a split at a random boundary of a column: known values up to bin `last` go first.
    /// `draw_last` draws `last`. Its range begins at the first bin with known values of the node,
    /// and ends before the last such bin. Missing values go as in [`SplitSearch::best_split`].
    pub(super) fn drawn_split(
        &self,
        node: RowBins<'_>,
        draw_last: impl FnOnce(Range<u8>) -> u8,
    ) -> Option<ColumnSplit> {
        let (lowest, highest) = node.known_range()?;
        let missing = node
            .has_missing()
            .then(|| node.sum(|bin| bin == node.missing_bin));
        // If all known values are in one bin, a split can only separate them from missing values.
        let last = match missing {
            _ if lowest < highest => draw_last(lowest..highest),
            Some(_) => highest,
            None => return None,
        };

        let below = node.sum(|bin| bin <= last);
        let mut best = None;
        self.offer_with_missing(&mut best, node.around(last), below, missing);
        best
    }

    /// Offers a split whose known values `below` go first, with the missing values on either side.
    #[inline]
    fn offer_with_missing(
        &self,
        best: &mut Option<ColumnSplit>,
        bins: SplitBins,
        below: GradientSum,
        missing: Option<GradientSum>,
    ) {
        match missing {
            None => {
                let is_heavier = 2 * below.hessian >= self.total.hessian;
                self.keep_if_better(best, bins, below, is_heavier);
            }
            Some(missing) => {
                self.keep_if_better(best, bins, below, false);
                self.keep_if_better(best, bins, below.plus(missing), true);
            }
        }
    }

    /// Replaces the best split so far, if this one gains more and both sides have enough weight.
    #[inline]
    fn keep_if_better(
        &self,
        best: &mut Option<ColumnSplit>,
        bins: SplitBins,
        first: GradientSum,
        missing_first: bool,
    ) {
        let second = self.total.minus(first);
        if !self.rule.is_heavy_enough(first) || !self.rule.is_heavy_enough(second) {
            return;
        }
        let gain = self.rule.score(first) + self.rule.score(second) - self.node_score;
        let least = best.map_or(self.rule.min_gain, |best| best.gain);
        if gain > least {
            *best = Some(ColumnSplit {
                gain,
                bins,
                missing_first,
                first,
            });
        }
    }
}

/// Returns the bins of known values, and the sum of the rows with a missing value, if there are
/// any.
fn split_missing(filled: &[FilledBin], missing_bin: usize) -> (&[FilledBin], Option<GradientSum>) {
    match filled.split_last() {
        Some((last, known)) if usize::from(last.bin) == missing_bin => (known, Some(last.sum)),
        _ => (filled, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trees::sampled_rows::SampledRow;

    const NO_PENALTY: SplitRule = SplitRule {
        reg_lambda: 0.0,
        reg_alpha: 0.0,
        min_gain: 1e-9,
        min_child_weight: 0.0,
        units: DerivativeUnits {
            gradient: 1.0,
            hessian: 1.0,
        },
    };

    /// Returns bins with these sums of gradients and of hessians.
    fn filled(bins: &[(u8, i64, i64)]) -> Vec<FilledBin> {
        let to_bin = |&(bin, gradient, hessian): &(u8, i64, i64)| FilledBin {
            bin,
            sum: GradientSum { gradient, hessian },
        };
        bins.iter().map(to_bin).collect()
    }

    /// Returns the best split of a node that has just these bins, at a column of nine bins of
    /// values.
    fn split(rule: SplitRule, bins: &[(u8, i64, i64)]) -> Option<ColumnSplit> {
        let filled = filled(bins);
        let total = filled
            .iter()
            .fold(GradientSum::default(), |sum, next| sum.plus(next.sum));
        SplitSearch::new(&rule, total).best_split(&filled, 9)
    }

    #[test]
    fn gain_is_the_excess_of_two_means_over_one() {
        // Bin 1 has four rows of class 0, bin 6 two of class 1: 2 * 2 / 2 minus 2 * 2 / 6.
        let found = split(NO_PENALTY, &[(1, 0, 4), (6, -2, 2)]).expect("a split");
        assert!((found.gain - (2.0 - 4.0 / 6.0)).abs() < 1e-12, "{found:?}");
        assert_eq!(found.bins, SplitBins { last: 1, next: 6 });
        assert!(found.missing_first, "the heavier side");
        assert!(
            split(NO_PENALTY, &[(1, -2, 4), (6, -1, 2)]).is_none(),
            "both means are 1/2"
        );
    }

    #[test]
    fn penalties_match_xgboost() {
        let bins = [(0, 6, 4), (1, -6, 4)];
        let rule = SplitRule {
            reg_lambda: 1.0,
            reg_alpha: 2.0,
            ..NO_PENALTY
        };
        // Each side scores (6 - 2)² / (4 + 1), and the whole node has no gradient.
        let found = split(rule, &bins).expect("a split");
        assert!((found.gain - 2.0 * 16.0 / 5.0).abs() < 1e-12, "{found:?}");
        assert!((rule.leaf_value(found.first) + 4.0 / 5.0).abs() < 1e-12);
        assert!(
            split(
                SplitRule {
                    min_gain: 6.3,
                    ..rule
                },
                &bins
            )
            .is_some()
        );
        assert!(
            split(
                SplitRule {
                    min_gain: 6.5,
                    ..rule
                },
                &bins
            )
            .is_none()
        );
    }

    #[test]
    fn both_sides_reach_the_minimum_weight() {
        let heavy = SplitRule {
            min_child_weight: 3.0,
            ..NO_PENALTY
        };
        let found = split(heavy, &[(0, -2, 2), (1, 1, 2), (2, 1, 2), (3, 1, 2)]);
        assert_eq!(found.expect("a split").bins.last, 1);
        assert!(split(heavy, &[(0, -2, 2), (1, 4, 4)]).is_none());
    }

    #[test]
    fn missing_values_go_where_they_gain_more() {
        let way = |missing: i64| {
            let found = split(NO_PENALTY, &[(0, -3, 3), (1, 0, 3), (9, missing, 2)]);
            let found = found.expect("a split");
            (found.bins.last, found.missing_first)
        };
        assert_eq!([way(-2), way(0)], [(0, true), (0, false)]);
        // Only the missing values differ.
        let found = split(NO_PENALTY, &[(0, 0, 3), (1, 0, 3), (9, -2, 2)]);
        assert_eq!(
            found.map(|found| (found.bins.last, found.missing_first)),
            Some((1, false))
        );
    }

    /// Returns the drawn split of a node that has a row of each of these gradients and hessians in
    /// these bins, at a column of nine bins of values.
    fn drawn(
        rows: &[(u8, i64, i64)],
        draw_last: impl FnOnce(Range<u8>) -> u8,
    ) -> Option<ColumnSplit> {
        let to_row = |&(_, gradient, hessian): &(u8, i64, i64)| {
            SampledRow::new(0, gradient as f64, hessian as f64, NO_PENALTY.units)
        };
        let bins: Vec<u8> = rows.iter().map(|row| row.0).collect();
        let rows: Vec<SampledRow> = rows.iter().map(to_row).collect();
        let search = SplitSearch::new(&NO_PENALTY, GradientSum::of_rows(&rows));
        search.drawn_split(RowBins::of_bins(&rows, &bins, 9), draw_last)
    }

    #[test]
    fn drawn_split_is_at_the_drawn_bin() {
        let at = |last: u8| {
            let draw_last = |bins: Range<u8>| {
                assert_eq!(bins, 2..8);
                last
            };
            drawn(&[(8, 0, 3), (2, -2, 3), (5, 0, 3)], draw_last).expect("a split")
        };
        // Boundaries at empty bins separate the same rows.
        for (last, lower, upper) in [(2, 2, 5), (4, 2, 5), (5, 5, 8), (7, 5, 8)] {
            let next = upper;
            assert_eq!(at(last).bins, SplitBins { last: lower, next });
        }
        let sum = |gradient, hessian| GradientSum { gradient, hessian };
        assert_eq!([at(2).first, at(5).first], [sum(-2, 3), sum(-2, 6)]);
        // A drawn split need not be the best one.
        assert!(at(5).gain < at(2).gain);
    }

    #[test]
    fn drawn_split_of_one_value_separates_missing_values() {
        let of = |rows: &[(u8, i64, i64)]| drawn(rows, |_| unreachable!("there is one bin"));
        let found = of(&[(9, -2, 2), (3, 0, 3)]).expect("a split");
        assert_eq!(found.bins, SplitBins { last: 3, next: 9 });
        assert!(!found.missing_first);
        // The lowest bin is a bin like any other.
        let found = of(&[(0, 0, 3), (9, -2, 2)]).expect("a split");
        assert_eq!(found.bins, SplitBins { last: 0, next: 9 });
        assert!(of(&[(3, -1, 3)]).is_none() && of(&[(9, -1, 3)]).is_none() && of(&[]).is_none());
    }
}
