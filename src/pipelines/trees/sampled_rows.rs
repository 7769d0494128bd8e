//! The rows that a tree learns from: the derivatives of their loss, sums of these, and the bins of a
//! node's rows at one column.
//!
//! Derivatives are whole multiples of a unit, so sums are exact and do not depend on the order of
//! additions.

use super::bins::BinnedColumn;

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
    pub(super) fn add_row(&mut self, row: SampledRow) {
        self.gradient += i64::from(row.gradient);
        self.hessian += i64::from(row.hessian);
    }

    /// Adds a row if `is_counted`, without a branch, because the processor could not predict it.
    #[inline]
    pub(super) fn add_row_if(&mut self, row: SampledRow, is_counted: bool) {
        let mask = -i32::from(is_counted);
        self.gradient += i64::from(row.gradient & mask);
        self.hessian += i64::from(row.hessian & mask);
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
    pub(super) fn is_empty(self) -> bool {
        self.hessian == 0
    }
}

/// Bins on both sides of a split. The bins between them have no row of the node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SplitBins {
    /// Rows of this bin and of lower bins go first.
    pub(super) last: u8,
    /// Bin of the next rows: the bin of missing values if all known values go first.
    pub(super) next: u8,
}

/// Rows of a node, and their bins at one column. The bins lie side by side, so that the loops over
/// them are vectorised.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowBins<'a> {
    /// Rows of the node.
    pub(super) rows: &'a [SampledRow],
    /// Bin of each row, `[rows]`.
    pub(super) bins: &'a [u8],
    /// Bin of missing values, above all others.
    pub(super) missing_bin: u8,
    lowest: u8,
    highest: u8,
}

impl<'a> RowBins<'a> {
    /// Looks up the bins of `rows` at a column, in the memory of `buffer`.
    pub(super) fn new(
        column: &BinnedColumn,
        rows: &'a [SampledRow],
        buffer: &'a mut Vec<u8>,
    ) -> RowBins<'a> {
        let row_bins = column.row_bins();
        buffer.clear();
        buffer.extend(rows.iter().map(|row| row.bin(row_bins)));
        RowBins::of_bins(rows, buffer, column.missing_bin() as u8)
    }

    pub(super) fn of_bins(rows: &'a [SampledRow], bins: &'a [u8], missing_bin: u8) -> RowBins<'a> {
        RowBins {
            rows,
            bins,
            missing_bin,
            lowest: bins.iter().copied().fold(u8::MAX, u8::min),
            highest: bins.iter().copied().fold(0, u8::max),
        }
    }

    /// Returns true if no row is in another bin than the others.
    pub(super) fn are_same(&self) -> bool {
        self.lowest >= self.highest
    }

    /// Returns true if a row has a missing value.
    pub(super) fn has_missing(&self) -> bool {
        self.highest == self.missing_bin && !self.bins.is_empty()
    }

    /// Returns the lowest and the highest bin of known values, or `None` if there are none.
    pub(super) fn known_range(&self) -> Option<(u8, u8)> {
        let highest = if self.has_missing() {
            self.around(self.missing_bin - 1).last
        } else {
            self.highest
        };
        let has_known = self.lowest != self.missing_bin && !self.bins.is_empty();
        has_known.then_some((self.lowest, highest))
    }

    /// Returns the bins on both sides of a boundary after bin `last`, which is not below the lowest
    /// bin.
    pub(super) fn around(&self, last: u8) -> SplitBins {
        let mut around = SplitBins {
            last: 0,
            next: self.missing_bin,
        };
        for bin in self.bins.iter().copied() {
            let (below, above) = if bin <= last {
                (bin, u8::MAX)
            } else {
                (0, bin)
            };
            around.last = around.last.max(below);
            around.next = around.next.min(above);
        }
        around
    }

    /// Sums the rows whose bin `is_counted`.
    #[inline]
    pub(super) fn sum(&self, is_counted: impl Fn(u8) -> bool) -> GradientSum {
        let mut sum = GradientSum::default();
        for (row, bin) in self.rows.iter().zip(self.bins) {
            sum.add_row_if(*row, is_counted(*bin));
        }
        sum
    }
}
