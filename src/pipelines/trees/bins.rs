//! Columns of numbers → columns of bins, each of about as many rows.

use rayon::prelude::*;

use crate::solvers::matrix::ColumnMatrix;

/// The most bins of a column, that of missing values included: the number of a bin is one byte.
pub(in crate) const MAX_BINS: usize = 256;

/// The most bins of known values.
const MAX_VALUE_BINS: usize = MAX_BINS - 1;

/// The bin of each row's value. The last bin is that of missing values.
#[derive(Debug, Clone, PartialEq)]
pub(in crate) struct BinnedColumn {
    /// Where a bin ends and the next begins, ascending: bin `b` has the values from `cuts[b - 1]`
    /// on that are below `cuts[b]`.
    cuts: Vec<f64>,
    /// The bin of each row, `[n]`.
    row_bins: Vec<u8>,
}

/// A value and how many rows have it.
#[derive(Debug, Clone, Copy)]
struct ValueCount {
    value: f64,
    rows: usize,
}

/// The columns of `x` in bins, `[f]`.
pub(in crate) fn bin_columns(x: &ColumnMatrix) -> Vec<BinnedColumn> {
    (0..x.f)
        .into_par_iter()
        .map(|place| BinnedColumn::new(x.column(place)))
        .collect()
}

impl BinnedColumn {
    /// The bins of `values` `[n]`; NaN is missing.
    fn new(values: &[f64]) -> BinnedColumn {
        let cuts = choose_cuts(&count_values(values));
        let missing_bin = cuts.len() + 1;
        let bin_of = |value: &f64| {
            if value.is_nan() {
                missing_bin as u8
            } else {
                cuts.partition_point(|cut| cut <= value) as u8
            }
        };
        BinnedColumn {
            row_bins: values.iter().map(bin_of).collect(),
            cuts,
        }
    }

    /// The bin of each row, `[n]`.
    #[inline]
    pub(super) fn row_bins(&self) -> &[u8] {
        &self.row_bins
    }

    /// The number of the bin of missing values. The bins below it are those of known values.
    pub(super) fn missing_bin(&self) -> usize {
        self.cuts.len() + 1
    }

    /// What values are below that are in bin `last` or in one below it, and values in bin `next` are
    /// not: of several such cuts the one in the middle. It is the largest number where `next` is
    /// the bin of missing values.
    pub(super) fn bound_between(&self, last: u8, next: u8) -> f64 {
        let (last, next) = (usize::from(last), usize::from(next));
        if next == self.missing_bin() {
            return f64::MAX;
        }
        let cuts = &self.cuts[last..next];
        let middle = f64::midpoint(cuts[0], cuts[cuts.len() - 1]);
        cuts[cuts
            .partition_point(|cut| *cut < middle)
            .min(cuts.len() - 1)]
    }
}

/// The known values, ascending.
fn count_values(values: &[f64]) -> Vec<ValueCount> {
    let mut known: Vec<f64> = values
        .iter()
        .copied()
        .filter(|value| !value.is_nan())
        .collect();
    known.sort_unstable_by(f64::total_cmp);

    let runs = known.chunk_by(|a, b| a == b);
    runs.map(|run| ValueCount {
        value: run[0],
        rows: run.len(),
    })
    .collect()
}

/// Cuts between `values`. Each has a bin of its own if there are few. Else bins have about as many
/// rows, and a frequent value has one of its own, so that it takes nothing from the others.
fn choose_cuts(values: &[ValueCount]) -> Vec<f64> {
    let mut cuts = Vec::new();
    let mut rows_left: usize = values.iter().map(|next| next.rows).sum();
    let mut bins_left = MAX_VALUE_BINS;
    let mut rows_in_bin = 0;
    for pair in values.windows(2) {
        rows_in_bin += pair[0].rows;
        let share = rows_left.div_ceil(bins_left);
        let is_full = rows_in_bin >= share || pair[1].rows >= share;
        if is_full || values.len() <= MAX_VALUE_BINS {
            cuts.push(cut_between(pair[0].value, pair[1].value));
            rows_left -= rows_in_bin;
            bins_left -= 1;
            rows_in_bin = 0;
        }
    }
    cuts
}

/// The number midway, or where rounding allows none, the upper one.
fn cut_between(lower: f64, upper: f64) -> f64 {
    let middle = f64::midpoint(lower, upper);
    if middle > lower { middle } else { upper }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_a_bin_each() {
        let column = BinnedColumn::new(&[3.0, f64::NAN, 1.0, 2.0, 3.0, -0.0, 0.0]);
        assert_eq!(column.cuts, [0.5, 1.5, 2.5]);
        assert_eq!(column.row_bins, [3, 4, 1, 2, 3, 0, 0]);
        assert_eq!(column.missing_bin(), 4);
        let bounds = [(2, 3), (0, 3), (3, 4)].map(|(last, next)| column.bound_between(last, next));
        assert_eq!(bounds, [2.5, 1.5, f64::MAX]);
    }

    #[test]
    fn neighbours_among_numbers_are_told_apart() {
        let values = [1.0, 1.0_f64.next_up(), f64::MAX.next_down(), f64::MAX];
        assert_eq!(BinnedColumn::new(&values).row_bins, [0, 1, 2, 3]);
    }

    #[test]
    fn many_values_are_in_bins_of_as_many_rows() {
        let values: Vec<f64> = (0..10_000).map(f64::from).collect();
        let column = BinnedColumn::new(&values);
        assert_eq!(column.missing_bin(), MAX_VALUE_BINS);
        let mut counts = [0; MAX_VALUE_BINS];
        for bin in &column.row_bins {
            counts[usize::from(*bin)] += 1;
        }
        assert!(counts.iter().all(|count| (39..=40).contains(count)));
    }

    #[test]
    fn a_frequent_value_leaves_the_other_bins_to_the_others() {
        let mut values = vec![500.5; 9_000];
        values.extend((0..1_000).map(f64::from));
        let column = BinnedColumn::new(&values);
        let own = column.row_bins[0];
        let of_own = column.row_bins.iter().filter(|bin| **bin == own).count();
        assert_eq!(of_own, 9_000);
        assert!(column.missing_bin() > 230, "{}", column.missing_bin());
    }

    #[test]
    fn a_column_without_values_has_only_the_bin_of_missing_ones() {
        assert_eq!(BinnedColumn::new(&[f64::NAN; 3]).row_bins, [1, 1, 1]);
    }
}
