//! The classes, groups or times of rows → folds: several ways to learn from some rows and test on others.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, ensure};
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha8Rng;

use super::FeatureTable;
use crate::config::{CrossValidation, Folds};
use crate::error::hinted;

/// The rows of a table that one fit learns from and those it is tested on, each ascending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CrossValidationFold {
    /// What is learned from.
    pub train: Vec<usize>,
    /// What is tested on.
    pub test: Vec<usize>,
}

/// The folds of `table`, whose rows have the `times` `[n]` where they are known; by `seed` alone.
///
/// - `stratified` without groups: the rows of each class are shuffled and dealt out in turn, so that no two folds differ
///   by more than one row of a class, nor by more than one row.
/// - `stratified` with groups: whole groups, those of the most uneven classes first, each to the fold where the shares of
///   the classes stay most even (as scikit-learn's StratifiedGroupKFold).
/// - `leave-one-group-out`: a fold for each group.
/// - `time`: the rows in order of time are cut into one part more than there are folds; each fold is tested on one part and
///   learns from all before it, but for the groups it is tested on. Rows of one time stay together.
///
/// # Errors
/// Fails with fewer rows or groups than folds, and where a fold could not learn from every class.
pub fn cross_validation_folds(
    table: &FeatureTable,
    times: Option<&[f64]>,
    cv: CrossValidation,
    seed: u64,
) -> Result<Vec<CrossValidationFold>> {
    let mut random = crate::seed::generator(seed, "folds", &[]);
    let distinct: BTreeSet<u64> = table.groups.iter().copied().collect();
    let is_grouped = distinct.len() < table.row_count();
    let folds = match cv.folds {
        Folds::Stratified if is_grouped => {
            enough(distinct.len(), "group", cv.k)?;
            of_parts(&stratified_groups(table, cv.k, &mut random), cv.k)
        }
        Folds::Stratified => {
            enough(table.row_count(), "row", cv.k)?;
            of_parts(&stratified(table, cv.k, &mut random), cv.k)
        }
        Folds::LeaveOneGroupOut => {
            ensure!(
                is_grouped && distinct.len() > 1,
                hinted(
                    "there are no groups to leave out one by one",
                    "name their column in `data.group`"
                )
            );
            let parts: Vec<usize> = table
                .groups
                .iter()
                .map(|group| distinct.range(..group).count())
                .collect();
            of_parts(&parts, distinct.len())
        }
        Folds::Time => by_time(table, times, cv.k)?,
    };
    folds
        .iter()
        .enumerate()
        .try_for_each(|(number, fold)| check(table, fold, number + 1))?;
    Ok(folds)
}

fn enough(found: usize, what: &str, k: usize) -> Result<()> {
    ensure!(
        found >= k,
        hinted(
            format!(
                "{} cannot make {k} folds",
                crate::output::counted(found, what)
            ),
            "ask for fewer with `--cv`"
        )
    );
    Ok(())
}

/// A fold must learn from every class, and be tested on something.
fn check(table: &FeatureTable, fold: &CrossValidationFold, number: usize) -> Result<()> {
    for (class, name) in table.classes.iter().enumerate() {
        ensure!(
            fold.train.iter().any(|row| table.y[*row] as usize == class),
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

/// The fold of each row `parts` → folds.
fn of_parts(parts: &[usize], k: usize) -> Vec<CrossValidationFold> {
    let rows =
        |keep: &dyn Fn(usize) -> bool| (0..parts.len()).filter(|row| keep(parts[*row])).collect();
    (0..k)
        .map(|part| CrossValidationFold {
            train: rows(&|other| other != part),
            test: rows(&|other| other == part),
        })
        .collect()
}

fn stratified(table: &FeatureTable, k: usize, random: &mut ChaCha8Rng) -> Vec<usize> {
    let mut parts = vec![0; table.row_count()];
    let mut dealt = 0;
    for class in 0..table.classes.len() {
        let mut rows: Vec<usize> = (0..table.row_count())
            .filter(|row| table.y[*row] as usize == class)
            .collect();
        rows.shuffle(random);
        for row in rows {
            parts[row] = dealt % k;
            dealt += 1;
        }
    }
    parts
}

fn stratified_groups(table: &FeatureTable, k: usize, random: &mut ChaCha8Rng) -> Vec<usize> {
    let classes = table.classes.len();
    let mut counts: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let mut totals = vec![0.0_f64; classes];
    for (group, class) in table.groups.iter().zip(&table.y) {
        counts.entry(*group).or_insert_with(|| vec![0.0; classes])[*class as usize] += 1.0;
        totals[*class as usize] += 1.0;
    }
    let mut groups: Vec<(u64, Vec<f64>)> = counts.into_iter().collect();
    groups.shuffle(random);
    groups.sort_by(|a, b| variance(&b.1).total_cmp(&variance(&a.1)));
    let mut folds = vec![vec![0.0_f64; classes]; k];
    let mut part_of = BTreeMap::new();
    for (group, counts) in groups {
        let best = (0..k)
            .map(|part| {
                let share = |other: usize, class: usize| {
                    (folds[other][class] + if other == part { counts[class] } else { 0.0 })
                        / totals[class].max(1.0)
                };
                let uneven = |class| {
                    variance(&(0..k).map(|other| share(other, class)).collect::<Vec<_>>()).sqrt()
                };
                let size: f64 = folds[part].iter().sum();
                ((0..classes).map(uneven).sum::<f64>(), size, part)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)))
            .map_or(0, |(_, _, part)| part);
        folds[best]
            .iter_mut()
            .zip(&counts)
            .for_each(|(sum, count)| *sum += count);
        part_of.insert(group, best);
    }
    table.groups.iter().map(|group| part_of[group]).collect()
}

fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>()
        / values.len() as f64
}

fn by_time(
    table: &FeatureTable,
    times: Option<&[f64]>,
    k: usize,
) -> Result<Vec<CrossValidationFold>> {
    let Some(times) = times else {
        return Err(hinted(
            "folds by time need the time of each row",
            "name its column in `data.time`",
        )
        .into());
    };
    enough(table.row_count(), "row", k + 1)?;
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cuts: Vec<f64> = (1..=k)
        .map(|part| sorted[part * sorted.len() / (k + 1)])
        .collect();
    let part = |row: &usize| cuts.iter().filter(|cut| times[*row] >= **cut).count();
    let fold = |number: usize| {
        let test: Vec<usize> = (0..table.row_count())
            .filter(|row| part(row) == number)
            .collect();
        let tested: BTreeSet<u64> = test.iter().map(|row| table.groups[*row]).collect();
        let train = (0..table.row_count())
            .filter(|row| part(row) < number && !tested.contains(&table.groups[*row]));
        CrossValidationFold {
            train: train.collect(),
            test,
        }
    };
    Ok((1..=k).map(fold).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn table(y: &[u32], groups: Option<&[u64]>) -> FeatureTable {
        let n = y.len();
        let classes = (0..=y.iter().copied().max().unwrap_or(0))
            .map(|class| class.to_string())
            .collect();
        let groups = groups.map_or_else(|| (0..n as u64).collect(), <[u64]>::to_vec);
        FeatureTable {
            features: vec!["a".to_owned()],
            x: vec![0.0; n],
            y: y.to_vec(),
            classes,
            groups,
        }
    }

    fn cv(k: usize, folds: Folds) -> CrossValidation {
        CrossValidation { k, folds }
    }

    /// Every row is tested once, and learned from in every other fold.
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
                let least = (0..table.classes.len() as u32).map(|class| y.iter().filter(|y| **y == class).count()).min();
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
        fn no_group_is_on_two_sides(
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
        // Thirty groups of ten; every third one is mostly of the second class.
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
    fn what_makes_no_folds_is_refused() {
        let refusal = |y: &[u32], groups: Option<&[u64]>, k, kind| {
            crate::error::render(
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
