//! Histograms: sums of the gradients of a node's rows, for each bin of a column.
//!
//! Gradients are whole multiples of a unit, so sums are exact and do not depend on the order of
//! additions. The histogram of a node minus the histogram of one child is exactly the other
//! child's.

use rayon::prelude::*;

use super::bins::{BinnedColumn, MAX_BINS};

/// Minimum number of additions to make a histogram on several threads.
const PARALLEL_ADDITIONS: usize = 1 << 16;

/// Units of the derivatives of a tree's rows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DerivativeUnits {
    /// Unit of the first derivative.
    pub(crate) gradient: f64,
    /// Unit of the second derivative.
    pub(crate) hessian: f64,
}

impl DerivativeUnits {
    /// Creates one unit for both derivatives.
    pub(crate) fn same(unit: f64) -> DerivativeUnits {
        DerivativeUnits {
            gradient: unit,
            hessian: unit,
        }
    }
}

/// A row of a tree's sample, with the derivatives of its loss in units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct SampledRow {
    /// Index of the row in the table.
    row: u32,
    gradient: i32,
    /// At least 1.
    hessian: i32,
}

impl SampledRow {
    /// Creates a row, and rounds the first and the second derivative of its loss to multiples of
    /// `units`.
    #[inline]
    pub(crate) fn new(
        row: usize,
        gradient: f64,
        hessian: f64,
        units: DerivativeUnits,
    ) -> SampledRow {
        SampledRow {
            row: row as u32,
            gradient: (gradient / units.gradient).round() as i32,
            // A row that is predicted with certainty must still have a weight.
            hessian: ((hessian / units.hessian).round() as i32).max(1),
        }
    }

    /// Returns the bin of the row in a column.
    #[inline]
    pub(super) fn bin(self, row_bins: &[u8]) -> u8 {
        row_bins[self.row as usize]
    }

    /// Returns true if both rows alone would give the same leaf value.
    pub(super) fn agrees_with(self, other: SampledRow) -> bool {
        i64::from(self.gradient) * i64::from(other.hessian)
            == i64::from(other.gradient) * i64::from(self.hessian)
    }
}

/// Sums of the derivatives of some rows, in units.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct GradientSum {
    pub(super) gradient: i64,
    pub(super) hessian: i64,
}

impl GradientSum {
    /// Sums the derivatives of `rows`.
    pub(super) fn of_rows(rows: &[SampledRow]) -> GradientSum {
        let mut sum = GradientSum::default();
        for row in rows {
            sum.add_row(*row);
        }
        sum
    }

    #[inline]
    fn add_row(&mut self, row: SampledRow) {
        self.gradient += i64::from(row.gradient);
        self.hessian += i64::from(row.hessian);
    }

    #[inline]
    pub(super) fn plus(self, other: GradientSum) -> GradientSum {
        GradientSum {
            gradient: self.gradient + other.gradient,
            hessian: self.hessian + other.hessian,
        }
    }

    #[inline]
    pub(super) fn minus(self, other: GradientSum) -> GradientSum {
        GradientSum {
            gradient: self.gradient - other.gradient,
            hessian: self.hessian - other.hessian,
        }
    }

    /// Returns true if it is the sum of no rows. Every row has a hessian above 0.
    #[inline]
    fn is_empty(self) -> bool {
        self.hessian == 0
    }
}

/// A bin with rows of a node, and their sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FilledBin {
    pub(super) bin: u8,
    pub(super) sum: GradientSum,
}

/// Sums of a node for every bin of some columns.
#[derive(Debug, PartialEq)]
pub(super) struct NodeHistogram {
    /// Sums, `[columns][bins]`.
    sums: Vec<Vec<GradientSum>>,
}

impl NodeHistogram {
    /// Sums `rows` for every bin of the columns at the indices `places`.
    pub(super) fn new(
        columns: &[BinnedColumn],
        places: &[usize],
        rows: &[SampledRow],
    ) -> NodeHistogram {
        let sum_indexed_column = |place: &usize| sum_column(&columns[*place], rows);
        let sums = if rows.len() * places.len() < PARALLEL_ADDITIONS {
            places.iter().map(sum_indexed_column).collect()
        } else {
            places.par_iter().map(sum_indexed_column).collect()
        };
        NodeHistogram { sums }
    }

    /// Subtracts the rows of `other`, a child of this node. The other child remains.
    pub(super) fn subtract(&mut self, other: &NodeHistogram) {
        for (of_column, others) in self.sums.iter_mut().zip(&other.sums) {
            for (sum, other) in of_column.iter_mut().zip(others) {
                *sum = sum.minus(*other);
            }
        }
    }

    /// Lists the bins that have rows in `filled`, ascending. `at` is an index into the columns that
    /// the histogram was made of.
    pub(super) fn list_filled(&self, at: usize, filled: &mut Vec<FilledBin>) {
        filled.clear();
        for (bin, sum) in self.sums[at].iter().enumerate() {
            if !sum.is_empty() {
                filled.push(FilledBin {
                    bin: bin as u8,
                    sum: *sum,
                });
            }
        }
    }
}

/// Sums `rows` for each bin of a column.
fn sum_column(column: &BinnedColumn, rows: &[SampledRow]) -> Vec<GradientSum> {
    // The length is constant, so that no bin needs a bounds check.
    let mut sums = [GradientSum::default(); MAX_BINS];
    let row_bins = column.row_bins();
    for row in rows {
        sums[usize::from(row.bin(row_bins))].add_row(*row);
    }
    sums[..=column.missing_bin()].to_vec()
}

/// Sums of one column, reused for all columns and nodes. For a node of few rows, the cost only
/// depends on these rows.
#[derive(Debug)]
pub(super) struct ColumnHistogram {
    /// All zero between two uses.
    sums: Box<[GradientSum; MAX_BINS]>,
}

impl ColumnHistogram {
    /// Creates an empty histogram.
    pub(super) fn new() -> ColumnHistogram {
        ColumnHistogram {
            sums: Box::new([GradientSum::default(); MAX_BINS]),
        }
    }

    /// Lists the bins of a column that have some of `rows` in `filled`, ascending.
    pub(super) fn list_filled(
        &mut self,
        column: &BinnedColumn,
        rows: &[SampledRow],
        filled: &mut Vec<FilledBin>,
    ) {
        let row_bins = column.row_bins();
        filled.clear();
        if rows.len() >= MAX_BINS {
            for row in rows {
                self.sums[usize::from(row.bin(row_bins))].add_row(*row);
            }
            for bin in 0..=column.missing_bin() {
                self.take_bin(bin, filled);
            }
            return;
        }

        // Few rows touch few bins, so remember them instead of visiting all bins afterwards.
        let mut touched = [0_u64; MAX_BINS / 64];
        for row in rows {
            let bin = row.bin(row_bins);
            self.sums[usize::from(bin)].add_row(*row);
            touched[usize::from(bin / 64)] |= 1 << (bin % 64);
        }
        for (word, mut bits) in touched.into_iter().enumerate() {
            while bits != 0 {
                self.take_bin(word * 64 + bits.trailing_zeros() as usize, filled);
                // Clear the lowest bit.
                bits &= bits - 1;
            }
        }
    }

    /// Moves the sum of a bin to the end of `filled`, if the bin has rows.
    #[inline]
    fn take_bin(&mut self, bin: usize, filled: &mut Vec<FilledBin>) {
        let sum = std::mem::take(&mut self.sums[bin]);
        if !sum.is_empty() {
            filled.push(FilledBin {
                bin: bin as u8,
                sum,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solvers::matrix::ColumnMatrix;
    use crate::trees::bins::bin_columns;
    use rand::Rng as _;

    /// Returns two columns, of many values and of few, some missing, and a row for each index.
    fn random_rows(n: usize) -> (Vec<BinnedColumn>, Vec<SampledRow>) {
        let mut generator = poolcast_base::seed::generator(1, "histogram rows", &[]);
        let mut values: Vec<f64> = (0..n).map(|_| generator.random_range(-1.0..1.0)).collect();
        values.extend((0..n).map(|row| {
            if row % 5 == 0 {
                f64::NAN
            } else {
                (row % 3) as f64
            }
        }));
        let rows = (0..n)
            .map(|row| {
                let gradient = generator.random_range(-1.0..1.0);
                SampledRow::new(
                    row,
                    gradient,
                    generator.random_range(0.0..0.25),
                    DerivativeUnits::same(1e-9),
                )
            })
            .collect();
        (bin_columns(&ColumnMatrix { n, f: 2, values }), rows)
    }

    #[test]
    fn node_minus_one_child_is_the_other_child() {
        let (columns, rows) = random_rows(1_000);
        let of = |rows: &[SampledRow]| NodeHistogram::new(&columns, &[0, 1], rows);
        let mut node = of(&rows);
        node.subtract(&of(&rows[..300]));
        assert_eq!(node, of(&rows[300..]));
    }

    #[test]
    fn both_histograms_have_the_same_bins() {
        let (columns, rows) = random_rows(1_000);
        let mut scratch = ColumnHistogram::new();
        let (mut of_node, mut of_column) = (Vec::new(), Vec::new());
        for rows in [&rows[..], &rows[..100], &rows[100..103], &[]] {
            let node = NodeHistogram::new(&columns, &[1, 0], rows);
            for (at, place) in [1, 0].into_iter().enumerate() {
                node.list_filled(at, &mut of_node);
                scratch.list_filled(&columns[place], rows, &mut of_column);
                assert_eq!(of_node, of_column);
            }
        }
    }

    #[test]
    fn histograms_do_not_depend_on_thread_count() {
        let (columns, rows) = random_rows(PARALLEL_ADDITIONS);
        let build_with_threads = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .expect("a pool");
            pool.install(|| NodeHistogram::new(&columns, &[0, 1], &rows))
        };
        assert_eq!(build_with_threads(1), build_with_threads(3));
    }
}
