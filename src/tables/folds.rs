//! Cross-validation folds, from the classes, groups or times of rows.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::feature_table::FeatureTable;
use super::row_targets::RowTargets;
use crate::{CrossValidation, Folds};
use poolcast_base::error::hinted;
use poolcast_base::output::counted;

/// Rows of a table that one fit learns from, and rows that it is tested on, each ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossValidationFold {
    /// Rows to learn from.
    pub train: Vec<usize>,
    /// Rows to test on.
    pub test: Vec<usize>,
}

impl CrossValidationFold {
    /// Creates `count` folds. Each fold is tested on the rows that `fold_of_row` `[n]` assigns to
    /// it, and learns from all others.
    pub fn from_assignment(fold_of_row: &[usize], count: usize) -> Vec<CrossValidationFold> {
        let mut folds = Vec::with_capacity(count);
        for fold in 0..count {
            let (test, train) = (0..fold_of_row.len()).partition(|row| fold_of_row[*row] == fold);
            folds.push(CrossValidationFold { train, test });
        }
        folds
    }
}

/// Returns the folds of `table`, which only depend on the arguments. `times` `[n]` are the times of
/// the rows, if they are known.
///
/// - `stratified` without groups: the rows of each class are shuffled and dealt out in turn. Two
///   folds then differ by at most one row of each class, and by at most one row in total. Rows with
///   numbers are all of one class.
/// - `stratified` with groups: whole groups are dealt out, starting with the groups whose classes
///   are most uneven. Each group goes to the fold where the shares of the classes stay most even
///   (as scikit-learn's `StratifiedGroupKFold`).
/// - `leave-one-group-out`: a fold for each group.
/// - `time`: the rows are sorted by time and divided into one more part than there are folds. Each
///   fold is tested on one part. It learns from all earlier parts, but not from the groups that it
///   is tested on. Rows with the same time stay together.
///
/// # Errors
/// Fails with fewer rows or groups than folds, without the groups or times that the folds need, and
/// if a fold could not learn from every class.
pub fn cross_validation_folds(
    table: &FeatureTable,
    times: Option<&[f64]>,
    cv: CrossValidation,
    seed: u64,
) -> Result<Vec<CrossValidationFold>> {
    let mut random = poolcast_base::seed::generator(seed, "folds", &[]);
    let distinct: BTreeSet<u64> = table.groups.iter().copied().collect();
    let is_grouped = distinct.len() < table.row_count();

    let folds = match cv.folds {
        Folds::Stratified if is_grouped => {
            check_enough(distinct.len(), "group", cv.k)?;
            let fold_of_row = GroupDealer::new(table, cv.k).deal(&mut random);
            CrossValidationFold::from_assignment(&fold_of_row, cv.k)
        }
        Folds::Stratified => {
            check_enough(table.row_count(), "row", cv.k)?;
            let fold_of_row = deal_rows(table, cv.k, &mut random);
            CrossValidationFold::from_assignment(&fold_of_row, cv.k)
        }
        Folds::LeaveOneGroupOut => {
            ensure!(
                is_grouped && distinct.len() > 1,
                hinted(
                    "`folds: leave-one-group-out` needs at least two groups",
                    "name their column in `data.group`"
                )
            );
            let rank: BTreeMap<u64, usize> = distinct.into_iter().zip(0..).collect();
            let fold_of_row: Vec<usize> = table.groups.iter().map(|group| rank[group]).collect();
            CrossValidationFold::from_assignment(&fold_of_row, rank.len())
        }
        Folds::Time => folds_by_time(table, times, cv.k)?,
    };
    for (fold, number) in folds.iter().zip(1..) {
        check_fold(table, fold, number)?;
    }
    Ok(folds)
}

fn check_enough(found: usize, what: &str, k: usize) -> Result<()> {
    ensure!(
        found >= k,
        hinted(
            format!("{} cannot make {k} folds", counted(found, what)),
            "ask for fewer with `--cv`"
        )
    );
    Ok(())
}

/// Fails if a fold does not learn from every class, or has no rows to test on.
fn check_fold(table: &FeatureTable, fold: &CrossValidationFold, number: usize) -> Result<()> {
    let classes = table.targets.classes();
    for (class, name) in (0..).zip(table.targets.class_names()) {
        ensure!(
            fold.train.iter().any(|row| classes[*row] == class),
            hinted(
                format!("fold {number} has no row of the class `{name}` to learn from"),
                "ask for fewer folds, or use `folds: stratified`"
            )
        );
    }
    ensure!(
        !fold.test.is_empty(),
        hinted(
            format!("fold {number} has no row to test on"),
            "ask for fewer folds"
        )
    );
    Ok(())
}

/// Strata of the rows. Folds have equal shares of each stratum.
struct Strata {
    /// Stratum of each row, `[n]`: its class. Rows with numbers are all in one stratum.
    of_row: Vec<usize>,
    count: usize,
}

impl Strata {
    fn new(table: &FeatureTable) -> Strata {
        match &table.targets {
            RowTargets::Classes(classes) => Strata {
                of_row: classes.y.iter().map(|class| *class as usize).collect(),
                count: classes.names.len(),
            },
            RowTargets::Numbers(numbers) => Strata {
                of_row: vec![0; numbers.y.len()],
                count: 1,
            },
        }
    }
}

/// Returns the fold of each row, `[n]`: deals out the shuffled rows of each class in turn.
fn deal_rows(table: &FeatureTable, k: usize, random: &mut ChaCha8Rng) -> Vec<usize> {
    let mut fold_of_row = vec![0; table.row_count()];
    let mut dealt = 0;
    let strata = Strata::new(table);
    for class in 0..strata.count {
        let mut rows: Vec<usize> = (0..table.row_count())
            .filter(|row| strata.of_row[*row] == class)
            .collect();
        rows.shuffle(random);
        for row in rows {
            // The count continues over all classes, so that the sizes of the folds stay even, too.
            fold_of_row[row] = dealt % k;
            dealt += 1;
        }
    }
    fold_of_row
}

/// A group of rows, and its number of rows of each class.
struct GroupCounts {
    group: u64,
    counts: Vec<f64>,
}

/// Deals out whole groups to folds, by the greedy method of scikit-learn's `StratifiedGroupKFold`.
struct GroupDealer<'a> {
    table: &'a FeatureTable,
    strata: Strata,
    /// Number of rows of each class, `[classes]`.
    class_totals: Vec<f64>,
    /// Number of rows of each class in each fold so far, `[k]` of `[classes]`.
    fold_counts: Vec<Vec<f64>>,
}

impl<'a> GroupDealer<'a> {
    fn new(table: &'a FeatureTable, k: usize) -> GroupDealer<'a> {
        let strata = Strata::new(table);
        let mut class_totals = vec![0.0; strata.count];
        for class in &strata.of_row {
            class_totals[*class] += 1.0;
        }
        GroupDealer {
            table,
            class_totals,
            fold_counts: vec![vec![0.0; strata.count]; k],
            strata,
        }
    }

    /// Returns the fold of each row, `[n]`.
    fn deal(mut self, random: &mut ChaCha8Rng) -> Vec<usize> {
        // Groups with the most uneven classes come first, while there is still room to even them
        // out. The shuffle breaks ties.
        let mut groups = self.count_groups();
        groups.shuffle(random);
        groups.sort_by(|a, b| variance(&b.counts).total_cmp(&variance(&a.counts)));

        let mut fold_of_group = BTreeMap::new();
        for GroupCounts { group, counts } in groups {
            let fold = self.best_fold(&counts);
            for (sum, count) in self.fold_counts[fold].iter_mut().zip(&counts) {
                *sum += count;
            }
            fold_of_group.insert(group, fold);
        }
        self.table
            .groups
            .iter()
            .map(|group| fold_of_group[group])
            .collect()
    }

    fn count_groups(&self) -> Vec<GroupCounts> {
        let no_rows = vec![0.0; self.class_totals.len()];
        let mut counts: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for (group, class) in self.table.groups.iter().zip(&self.strata.of_row) {
            let of_group = counts.entry(*group).or_insert_with(|| no_rows.clone());
            of_group[*class] += 1.0;
        }
        counts
            .into_iter()
            .map(|(group, counts)| GroupCounts { group, counts })
            .collect()
    }

    /// Returns the fold where a group with these `counts` keeps the classes most even. Ties go to
    /// the smallest fold, and then to the first.
    fn best_fold(&self, counts: &[f64]) -> usize {
        let mut best = 0;
        let mut best_unevenness = f64::INFINITY;
        let mut best_size = f64::INFINITY;
        for fold in 0..self.fold_counts.len() {
            let unevenness = self.unevenness_with(fold, counts);
            let size: f64 = self.fold_counts[fold].iter().sum();
            let order = unevenness
                .total_cmp(&best_unevenness)
                .then(size.total_cmp(&best_size));
            if order.is_lt() {
                best = fold;
                best_unevenness = unevenness;
                best_size = size;
            }
        }
        best
    }

    /// Returns the sum over the classes of the standard deviation of their shares over the folds,
    /// if a group with these `counts` is added to `fold`.
    fn unevenness_with(&self, fold: usize, counts: &[f64]) -> f64 {
        (0..counts.len())
            .map(|class| {
                let shares: Vec<f64> = self
                    .fold_counts
                    .iter()
                    .enumerate()
                    .map(|(other, of_other)| {
                        let added = if other == fold { counts[class] } else { 0.0 };
                        (of_other[class] + added) / self.class_totals[class].max(1.0)
                    })
                    .collect();
                variance(&shares).sqrt()
            })
            .sum()
    }
}

fn variance(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    squares / n
}

fn folds_by_time(
    table: &FeatureTable,
    times: Option<&[f64]>,
    k: usize,
) -> Result<Vec<CrossValidationFold>> {
    let Some(times) = times else {
        bail!(hinted(
            "`folds: time` needs the time of each row",
            "name its column in `data.time`",
        ));
    };
    check_enough(table.row_count(), "row", k + 1)?;

    // The part of a row is the number of cuts up to its time, so rows with the same time stay
    // together.
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cuts: Vec<f64> = (1..=k)
        .map(|part| sorted[part * sorted.len() / (k + 1)])
        .collect();
    let part_of_row: Vec<usize> = times
        .iter()
        .map(|time| cuts.iter().filter(|cut| *time >= **cut).count())
        .collect();

    let mut folds = Vec::with_capacity(k);
    for number in 1..=k {
        let test: Vec<usize> = (0..table.row_count())
            .filter(|row| part_of_row[*row] == number)
            .collect();
        let tested: BTreeSet<u64> = test.iter().map(|row| table.groups[*row]).collect();
        // A group of the test part may have earlier rows. Learning from them would be a leak.
        let train = (0..table.row_count())
            .filter(|row| part_of_row[*row] < number && !tested.contains(&table.groups[*row]))
            .collect();
        folds.push(CrossValidationFold { train, test });
    }
    Ok(folds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_targets::RowClasses;
    use proptest::prelude::*;

    fn table(y: &[u32], groups: Option<&[u64]>) -> FeatureTable {
        let n = y.len();
        let names = (0..=y.iter().copied().max().unwrap_or(0))
            .map(|class| class.to_string())
            .collect();
        let groups = groups.map_or_else(|| (0..n as u64).collect(), <[u64]>::to_vec);
        FeatureTable {
            features: vec!["a".to_owned()],
            x: vec![0.0; n],
            targets: RowTargets::Classes(RowClasses {
                names,
                y: y.to_vec(),
            }),
            groups,
        }
    }

    fn cv(k: usize, folds: Folds) -> CrossValidation {
        CrossValidation { k, folds }
    }

    /// Returns true if every row is tested once, and learned from in every other fold.
    fn is_partition(table: &FeatureTable, folds: &[CrossValidationFold]) -> bool {
        (0..table.row_count()).all(|row| {
            let tested = folds.iter().filter(|fold| fold.test.contains(&row)).count();
            tested == 1
                && folds
                    .iter()
                    .all(|fold| fold.train.contains(&row) != fold.test.contains(&row))
        })
    }

    proptest! {
        #[test]
        fn strata_are_even(y in prop::collection::vec(0..3u32, 0..80), k in 2..7usize, seed in 0..5u64) {
            let table = table(&y, None);
            let Ok(folds) = cross_validation_folds(&table, None, cv(k, Folds::Stratified), seed) else {
                let least = (0..table.targets.width() as u32).map(|class| y.iter().filter(|y| **y == class).count()).min();
                prop_assert!(y.len() < k || least < Some(2));
                return Ok(());
            };
            prop_assert!(is_partition(&table, &folds));
            let spread = |count: &dyn Fn(&CrossValidationFold) -> usize| {
                let counts: Vec<usize> = folds.iter().map(count).collect();
                counts.iter().max().expect("folds") - counts.iter().min().expect("folds")
            };
            prop_assert!(spread(&|fold| fold.test.len()) <= 1);
            for class in 0..3 {
                prop_assert!(spread(&|fold| fold.test.iter().filter(|row| y[**row] == class).count()) <= 1);
            }
            prop_assert_eq!(&cross_validation_folds(&table, None, cv(k, Folds::Stratified), seed).expect("again"), &folds);
        }

        #[test]
        fn groups_are_not_split_between_train_and_test(
            rows in prop::collection::vec((0..2u32, 0..25u64, 0..50i32), 2..120),
            k in 2..6usize,
            kind in prop::sample::select(vec![Folds::Stratified, Folds::LeaveOneGroupOut, Folds::Time]),
        ) {
            let (y, groups): (Vec<u32>, Vec<u64>) = rows.iter().map(|row| (row.0, row.1)).unzip();
            let times: Vec<f64> = rows.iter().map(|row| f64::from(row.2)).collect();
            let table = table(&y, Some(&groups));
            let Ok(folds) = cross_validation_folds(&table, Some(&times), cv(k, kind), 1) else { return Ok(()) };
            for fold in &folds {
                let tested: BTreeSet<u64> = fold.test.iter().map(|row| groups[*row]).collect();
                prop_assert!(fold.train.iter().all(|row| !tested.contains(&groups[*row])));
                if kind == Folds::Time {
                    let first = fold.test.iter().map(|row| times[*row]).fold(f64::INFINITY, f64::min);
                    prop_assert!(fold.train.iter().all(|row| times[*row] < first), "only the past is learned from");
                }
            }
            if kind != Folds::Time {
                prop_assert!(is_partition(&table, &folds));
            }
        }
    }

    #[test]
    fn classes_stay_even_over_groups() {
        // Thirty groups of ten rows. Every third group is mostly of the second class.
        let groups: Vec<u64> = (0..300).map(|row| row / 10).collect();
        let y: Vec<u32> = (0..300u64)
            .map(|row| u32::from((row / 10) % 3 == 0 && row % 10 > 1))
            .collect();
        let table = table(&y, Some(&groups));
        for fold in
            cross_validation_folds(&table, None, cv(5, Folds::Stratified), 3).expect("folds")
        {
            let positives = fold.test.iter().filter(|row| y[**row] == 1).count();
            assert_eq!((fold.test.len(), positives), (60, 16));
        }
        let other = |seed| {
            cross_validation_folds(&table, None, cv(5, Folds::Stratified), seed).expect("folds")
        };
        assert_ne!(other(1), other(2));
    }

    #[test]
    fn impossible_folds_are_rejected() {
        let refusal = |y: &[u32], groups: Option<&[u64]>, k, kind| {
            poolcast_base::error::render(
                &cross_validation_folds(&table(y, groups), None, cv(k, kind), 1)
                    .expect_err("refused"),
            )
        };
        insta::assert_snapshot!(
            [
                refusal(&[0, 1, 0], None, 5, Folds::Stratified),
                refusal(&[0, 1, 0, 0], None, 2, Folds::Stratified),
                refusal(&[0, 1, 0, 1], Some(&[1, 1, 2, 2]), 3, Folds::Stratified),
                refusal(&[0, 1, 0, 1], None, 2, Folds::LeaveOneGroupOut),
                refusal(
                    &[0, 0, 1, 1],
                    Some(&[1, 1, 2, 2]),
                    2,
                    Folds::LeaveOneGroupOut
                ),
                refusal(&[0, 1, 0, 1], None, 2, Folds::Time),
            ]
            .join("\n")
        );
    }
}
