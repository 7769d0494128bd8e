//! Makes rows coarser until several owners are behind each of them, so that none shows what one owner
//! requests or does.
//!
//! Any column may identify an owner: a request that nobody else has, the size of a cluster, a share of
//! releases, or several of them together. So all columns count, and the weight. Rows are divided by the
//! column that differs most, as often as enough owners are on both sides (LeFevre, DeWitt and
//! Ramakrishnan, Mondrian multidimensional k-anonymity, ICDE 2006). The rows of a part get their means.

use std::collections::HashSet;

use half::f16;

use super::shared_row::SharedRow;

/// Rows that stand for several owners each.
#[derive(Debug)]
pub(super) struct CoarseRows {
    pub(super) rows: Vec<SharedRow>,
    /// Number of the parts: rows of one part are equal but for their outcomes.
    pub(super) parts: usize,
    /// Rows whose numbers were changed.
    pub(super) changed: usize,
}

impl CoarseRows {
    /// Keeps `rows` as they are, for logs whose owners need no protection.
    pub(super) fn of_exact(rows: Vec<SharedRow>) -> CoarseRows {
        CoarseRows {
            parts: rows.len(),
            changed: 0,
            rows,
        }
    }

    /// Makes `rows` of the `owners`, `[n]`, coarser, so that at least `min_owners` known owners are behind
    /// each combination of numbers. The owner 0 is unknown. All owners together are at least as many.
    pub(super) fn new(mut rows: Vec<SharedRow>, owners: &[u64], min_owners: usize) -> CoarseRows {
        let columns = RowColumns::new(&rows, owners, min_owners);
        let parts = columns.parts();
        let mut changed = 0;
        for part in &parts {
            let means: Vec<f16> = (columns.columns.iter())
                .map(|column| mean(column, part))
                .collect();
            for &at in part {
                let row = &mut rows[at];
                let before = (row.values.clone(), row.weight);
                // The last column is the weight.
                if let Some((weight, values)) = means.split_last() {
                    (row.values, row.weight) = (values.to_vec(), *weight);
                }
                changed += usize::from(before != (row.values.clone(), row.weight));
            }
        }
        CoarseRows {
            rows,
            parts: parts.len(),
            changed,
        }
    }
}

/// The numbers of rows by column, with the owners of the rows.
struct RowColumns<'a> {
    /// Columns, and then the weights, `[f + 1][n]`.
    columns: Vec<Vec<f32>>,
    /// Variance of each column, `[f + 1]`.
    variances: Vec<f64>,
    owners: &'a [u64],
    min_owners: usize,
}

impl RowColumns<'_> {
    fn new<'a>(rows: &[SharedRow], owners: &'a [u64], min_owners: usize) -> RowColumns<'a> {
        let width = rows.first().map_or(0, |row| row.values.len());
        let column = |at: usize| rows.iter().map(|row| row.values[at].to_f32()).collect();
        let mut columns: Vec<Vec<f32>> = (0..width).map(column).collect();
        columns.push(rows.iter().map(|row| row.weight.to_f32()).collect());
        let all: Vec<usize> = (0..rows.len()).collect();
        RowColumns {
            variances: columns
                .iter()
                .map(|column| variance(column, &all))
                .collect(),
            columns,
            owners,
            min_owners,
        }
    }

    /// Divides the rows, named by their places, as often as enough owners are on both sides.
    fn parts(&self) -> Vec<Vec<usize>> {
        let mut open = vec![(0..self.owners.len()).collect::<Vec<usize>>()];
        let mut parts = Vec::new();
        while let Some(part) = open.pop() {
            match self.divided(&part) {
                Some((low, high)) => open.extend([high, low]),
                None => parts.push(part),
            }
        }
        parts
    }

    /// Divides `part` by the column that differs most, compared with all rows, among those that have
    /// enough owners on both sides; `None` if there is no such column.
    fn divided(&self, part: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
        if part.len() < 2 * self.min_owners {
            return None;
        }
        let share = |at: usize| variance(&self.columns[at], part) / self.variances[at];
        let columns = (0..self.columns.len()).filter(|&at| self.variances[at] > 0.0);
        let mut spreads: Vec<(f64, usize)> = columns.map(|at| (share(at), at)).collect();
        spreads.retain(|(spread, _)| *spread > 0.0);
        spreads.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        spreads
            .into_iter()
            .find_map(|(_, column)| self.divided_by(&self.columns[column], part))
    }

    /// Divides `part` between two values of `column`, as near to its middle as enough owners are on both
    /// sides.
    fn divided_by(&self, column: &[f32], part: &[usize]) -> Option<(Vec<usize>, Vec<usize>)> {
        let mut sorted = part.to_vec();
        sorted.sort_by(|&a, &b| column[a].total_cmp(&column[b]).then(a.cmp(&b)));
        let first = self.rows_of_enough_owners(sorted.iter())?;
        let last = sorted.len() - self.rows_of_enough_owners(sorted.iter().rev())?;
        let middle = sorted.len() / 2;
        let is_between = |&at: &usize| column[sorted[at - 1]] < column[sorted[at]];
        let cut = (first..=last)
            .filter(is_between)
            .min_by_key(|at| (at.abs_diff(middle), *at))?;
        let high = sorted.split_off(cut);
        Some((sorted, high))
    }

    /// Returns how many of `rows` have enough known owners; `None` if all of them have too few.
    fn rows_of_enough_owners<'b>(&self, rows: impl Iterator<Item = &'b usize>) -> Option<usize> {
        let mut owners = HashSet::new();
        for (at, &row) in rows.enumerate() {
            owners.extend(Some(self.owners[row]).filter(|&owner| owner != 0));
            if owners.len() >= self.min_owners {
                return Some(at + 1);
            }
        }
        None
    }
}

/// Returns the mean of `column` in the rows of `part`.
fn mean(column: &[f32], part: &[usize]) -> f16 {
    f16::from_f64(exact_mean(column, part))
}

fn exact_mean(column: &[f32], part: &[usize]) -> f64 {
    let sum: f64 = part.iter().map(|&at| f64::from(column[at])).sum();
    sum / part.len() as f64
}

fn variance(column: &[f32], part: &[usize]) -> f64 {
    let mean = exact_mean(column, part);
    let square = |&at: &usize| (f64::from(column[at]) - mean).powi(2);
    part.iter().map(square).sum::<f64>() / part.len() as f64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    const MIN_OWNERS: usize = 3;

    fn row(values: &[f32], weight: f32, is_success: bool) -> SharedRow {
        SharedRow {
            stated: 1,
            values: values.iter().map(|&value| f16::from_f32(value)).collect(),
            is_success,
            weight: f16::from_f32(weight),
        }
    }

    /// Returns the number of owners behind each combination of numbers.
    fn owners_of_combinations(rows: &[SharedRow], owners: &[u64]) -> Vec<usize> {
        let mut combinations: HashMap<Vec<u16>, HashSet<u64>> = HashMap::new();
        for (row, &owner) in rows.iter().zip(owners) {
            let numbers = row.values.iter().chain([&row.weight]);
            let key = numbers.map(|number| number.to_bits()).collect();
            let behind = combinations.entry(key).or_default();
            behind.extend(Some(owner).filter(|&owner| owner != 0));
        }
        combinations
            .into_values()
            .map(|owners| owners.len())
            .collect()
    }

    #[test]
    fn a_request_of_one_owner_is_not_shared() {
        let owners: Vec<u64> = (0..30).map(|at| 1 + at % 5).collect();
        let request = |&owner: &u64| if owner == 4 { 10.5 } else { 9.0 };
        let rows: Vec<SharedRow> = (owners.iter())
            .map(|owner| row(&[request(owner), 1.0], 0.5, *owner == 2))
            .collect();
        let coarse = CoarseRows::new(rows, &owners, MIN_OWNERS);
        let own = f16::from_f32(10.5);
        assert!(coarse.rows.iter().all(|row| row.values[0] != own));
        assert!(coarse.changed > 0);
    }

    #[test]
    fn what_several_owners_have_in_common_stays() {
        let owners: Vec<u64> = (0..40).map(|at| 1 + at % 4).collect();
        let rows: Vec<SharedRow> = (0..40)
            .map(|at| row(&[if at < 20 { 1.0 } else { 2.0 }, 7.0], 1.0, at % 3 == 0))
            .collect();
        let coarse = CoarseRows::new(rows.clone(), &owners, MIN_OWNERS);
        assert_eq!((coarse.parts, coarse.changed), (2, 0));
        assert_eq!(coarse.rows, rows);
    }

    proptest! {
        #[test]
        fn several_owners_are_behind_each_combination(
            drawn in proptest::collection::vec((proptest::array::uniform4(0..6u8), 0..8u64, 1..4u8, any::<bool>()), 3..120),
        ) {
            let mut owners: Vec<u64> = drawn.iter().map(|(_, owner, _, _)| *owner).collect();
            owners[..MIN_OWNERS].copy_from_slice(&[11, 12, 13]);
            let rows: Vec<SharedRow> = (drawn.iter())
                .map(|(values, _, weight, success)| row(&values.map(f32::from), f32::from(*weight), *success))
                .collect();
            let coarse = CoarseRows::new(rows.clone(), &owners, MIN_OWNERS);
            prop_assert_eq!(coarse.rows.len(), rows.len());
            let outcomes = |rows: &[SharedRow]| rows.iter().map(|row| row.is_success).collect::<Vec<_>>();
            prop_assert_eq!(outcomes(&coarse.rows), outcomes(&rows));
            for owners in owners_of_combinations(&coarse.rows, &owners) {
                prop_assert!(owners >= MIN_OWNERS);
            }
        }
    }
}
