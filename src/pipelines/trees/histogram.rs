//! Histograms: sums of the gradients of a node's rows, for each bin of a column.
//!
//! Sums are exact, so the histogram of a node minus the histogram of one child is exactly the other
//! child's.

use rayon::prelude::*;

use super::bins::{BinnedColumn, MAX_BINS};
use super::sampled_rows::{GradientSum, RowBins, SampledRow};

/// Minimum number of additions to make a histogram on several threads.
const PARALLEL_ADDITIONS: usize = 1 << 16;

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

    /// Lists the bins that have rows in `filled`, ascending.
    pub(super) fn list_filled(&mut self, node: RowBins<'_>, filled: &mut Vec<FilledBin>) {
        let RowBins { rows, bins, .. } = node;
        filled.clear();
        if rows.len() >= MAX_BINS {
            for (row, bin) in rows.iter().zip(bins) {
                self.sums[usize::from(*bin)].add_row(*row);
            }
            for bin in 0..=usize::from(node.missing_bin) {
                self.take_bin(bin, filled);
            }
            return;
        }

        // Few rows touch few bins, so remember them instead of visiting all bins afterwards.
        let mut touched = [0_u64; MAX_BINS / 64];
        for (row, bin) in rows.iter().zip(bins) {
            self.sums[usize::from(*bin)].add_row(*row);
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
    use crate::trees::sampled_rows::DerivativeUnits;
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
        let (mut of_node, mut of_column, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
        for rows in [&rows[..], &rows[..100], &rows[100..103], &[]] {
            let node = NodeHistogram::new(&columns, &[1, 0], rows);
            for (at, place) in [1, 0].into_iter().enumerate() {
                node.list_filled(at, &mut of_node);
                let node = RowBins::new(&columns[place], rows, &mut buffer);
                scratch.list_filled(node, &mut of_column);
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
