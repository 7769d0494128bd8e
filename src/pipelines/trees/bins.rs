//! Bins of columns, each with about the same number of rows.

use crate::solvers::matrix::ColumnMatrix;
use poolcast_base::parallel::map_numbers;

/// Maximum number of bins of a column, including the bin of missing values. A bin number is one
/// byte.
pub(crate) const MAX_BINS: usize = 256;

/// Maximum number of bins of known values.
const MAX_VALUE_BINS: usize = MAX_BINS - 1;

/// A column in bins. The last bin is for missing values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BinnedColumn {
    /// Boundaries between bins, ascending. Bin `b` has the values that are at least `cuts[b - 1]`
    /// and below `cuts[b]`.
    cuts: Vec<f64>,
    /// Bin of each row, `[n]`.
    row_bins: Vec<u8>,
}

/// A value and the number of rows that have it.
#[derive(Debug, Clone, Copy)]
struct ValueCount {
    value: f64,
    rows: usize,
}

/// Bins the columns of `x`, `[f]`.
pub(crate) fn bin_columns(x: &ColumnMatrix) -> Vec<BinnedColumn> {
    map_numbers(x.f, |place| BinnedColumn::new(x.column(place)))
}

impl BinnedColumn {
    /// Bins `values` `[n]`. NaN marks a missing value.
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

    /// Returns the bin of each row, `[n]`.
    #[inline]
    pub(super) fn row_bins(&self) -> &[u8] {
        &self.row_bins
    }

    /// Number of the bin of missing values. The bins below it are for known values.
    pub(super) fn missing_bin(&self) -> usize {
        self.cuts.len() + 1
    }

    /// Returns a boundary: values in bin `last` or lower are below it, values in bin `next` are
    /// not. Of several such cuts, it returns the one in the middle. If `next` is the bin of missing
    /// values, it returns the largest number.
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

/// Counts the rows of each known value, ascending.
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

/// Chooses the cuts between `values`. Few values have a bin each. Otherwise, bins have about the
/// same number of rows. A frequent value has its own bin, so that the other bins stay of equal
/// size.
fn choose_cuts(values: &[ValueCount]) -> Vec<f64> {
    let mut cuts = Vec::new();
    let mut rows_left: usize = values.iter().map(|next| next.rows).sum();
    let mut bins_left = MAX_VALUE_BINS;
    let mut rows_in_bin = 0;
    for pair in values.windows(2) {
        rows_in_bin += pair[0].rows;
        // A bin ends once it has its share of the remaining rows, or before a value that fills a
        // bin alone.
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

/// Returns the number midway, or `upper` if rounding makes that equal to `lower`.
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
    fn adjacent_floats_are_in_different_bins() {
        let values = [1.0, 1.0_f64.next_up(), f64::MAX.next_down(), f64::MAX];
        assert_eq!(BinnedColumn::new(&values).row_bins, [0, 1, 2, 3]);
    }

    #[test]
    fn many_values_are_in_bins_of_equal_size() {
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
    fn frequent_value_has_its_own_bin() {
        let mut values = vec![500.5; 9_000];
        values.extend((0..1_000).map(f64::from));
        let column = BinnedColumn::new(&values);
        let own = column.row_bins[0];
        let own_bin_count = column.row_bins.iter().filter(|bin| **bin == own).count();
        assert_eq!(own_bin_count, 9_000);
        assert!(column.missing_bin() > 230, "{}", column.missing_bin());
    }

    #[test]
    fn column_without_values_has_only_the_missing_bin() {
        assert_eq!(BinnedColumn::new(&[f64::NAN; 3]).row_bins, [1, 1, 1]);
    }
}
