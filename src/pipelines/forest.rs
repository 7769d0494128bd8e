//! Columns and classes → a forest, whose trees vote with the shares of classes in their leaves.
//!
//! A tree of a random forest learns from rows drawn with replacement, and splits where that gains
//! most. One of extremely randomised trees (Geurts, Ernst and Wehenkel, Machine Learning 63, 2006)
//! learns from all rows, and each column is split at a place that is drawn: between two of its
//! bins.
//!
//! The trees learn 0 and 1 with squared loss. What a split gains is then half of what it takes from
//! Gini's impurity, so the splits are those of a classification. Two classes need one forest,
//! several need one for each, and their votes are made to sum to one.

use anyhow::{Result, ensure};
use rand::Rng as _;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::classifier::{Classifier, FitRun, TrainingSet};
use super::importances::ColumnImportances;
use super::solvers::labels::{ClassLabels, output_classes, output_count};
use super::solvers::matrix::{ColumnMatrix, add_scaled};
use super::trees::bins::{BinnedColumn, bin_columns};
use super::trees::grow::{
    DrawnColumns, GrowSettings, GrownTree, SplitColumns, SplitPlace, grow_tree,
};
use super::trees::histogram::SampledRow;
use super::trees::split::SplitRule;
use super::trees::tree::DecisionTree;
use crate::output::counted;

/// What derivatives are multiples of, by the largest weight of a row. A row is drawn far fewer times than
/// the 2,048 that would not fit.
const WEIGHT_UNIT: f64 = 1.0 / (1 << 20) as f64;

/// How the trees of a forest come to differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ForestKind {
    /// A random forest.
    Random,
    /// Extremely randomised trees.
    ExtraTrees,
}

/// The hyper-parameters of the pipelines `rf` and `et`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ForestSettings {
    n_estimators: usize,
    max_depth: Option<usize>,
    min_samples_leaf: usize,
    max_features: MaxFeatures,
}

/// How many columns a split chooses from.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum MaxFeatures {
    /// This share of them.
    Share(f64),
    /// As many as a rule says.
    Rule(MaxFeaturesRule),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum MaxFeaturesRule {
    /// The square root of their number.
    Sqrt,
}

impl MaxFeatures {
    /// How many of `f` columns; one at least.
    fn count(self, f: usize) -> usize {
        let count = match self {
            MaxFeatures::Share(share) => share * f as f64,
            MaxFeatures::Rule(MaxFeaturesRule::Sqrt) => (f as f64).sqrt(),
        };
        (count as usize).max(1)
    }
}

impl ForestSettings {
    /// The settings of a tree whose weights are multiples of `unit`.
    fn grow_settings(self, unit: f64) -> GrowSettings {
        GrowSettings {
            max_depth: self.max_depth.unwrap_or(usize::MAX),
            rule: SplitRule {
                reg_lambda: 0.0,
                reg_alpha: 0.0,
                // As in scikit-learn, rows that differ are told apart even if that gains nothing.
                min_gain: -1.0,
                min_child_weight: self.min_samples_leaf as f64,
                unit,
            },
            learning_rate: 1.0,
        }
    }
}

/// A forest for each of `o` outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct TreeForest {
    /// `[o][trees]`.
    forests: Vec<Vec<DecisionTree>>,
    /// How much each column did for the splits, `[f]`.
    gains: Vec<f64>,
}

impl TreeForest {
    /// Fits a forest for each output.
    pub(super) fn fit(
        kind: ForestKind,
        settings: ForestSettings,
        training: TrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<TreeForest> {
        let mut forest = TreeForest {
            forests: Vec::new(),
            gains: vec![0.0; training.x.f],
        };
        let columns = bin_columns(training.x);
        for class in output_classes(training.labels.class_count) {
            let mut trees = Vec::with_capacity(settings.n_estimators);
            for grown in grow_forest(kind, settings, &columns, training, class, run)? {
                add_scaled(&mut forest.gains, 1.0, &shares_of_sum(grown.gains));
                trees.push(grown.tree);
            }
            forest.forests.push(trees);
        }
        Ok(forest)
    }

    /// The probability of each class for one row, `[classes]`.
    fn row_probabilities(&self, row: &[f64]) -> Vec<f64> {
        let votes: Vec<f64> = self
            .forests
            .iter()
            .map(|trees| mean_vote(trees, row))
            .collect();
        if let [p] = votes[..] {
            return vec![1.0 - p, p];
        }

        let sum: f64 = votes.iter().sum();
        if sum > 0.0 {
            votes.iter().map(|vote| vote / sum).collect()
        } else {
            // No tree gives any class a share: all classes are alike.
            vec![1.0 / votes.len() as f64; votes.len()]
        }
    }
}

fn mean_vote(trees: &[DecisionTree], row: &[f64]) -> f64 {
    let sum: f64 = trees
        .iter()
        .map(|tree| tree.score_row(|column| row[column]))
        .sum();
    (sum / trees.len() as f64).clamp(0.0, 1.0)
}

/// How much each column does for the splits of a random forest of `trees` trees with scikit-learn's
/// defaults, `[f]`: its `feature_importances_`, which sum to one.
pub(super) fn forest_importances(
    trees: usize,
    training: TrainingSet<'_>,
    run: FitRun<'_>,
) -> Result<Vec<f64>> {
    let settings = ForestSettings {
        n_estimators: trees,
        max_depth: None,
        min_samples_leaf: 1,
        max_features: MaxFeatures::Rule(MaxFeaturesRule::Sqrt),
    };
    let forest = TreeForest::fit(ForestKind::Random, settings, training, run)?;
    Ok(shares_of_sum(forest.gains))
}

/// The share of each number in the sum of all; 0 where all are 0.
fn shares_of_sum(mut numbers: Vec<f64>) -> Vec<f64> {
    let sum: f64 = numbers.iter().sum();
    for number in &mut numbers {
        *number /= sum.max(f64::MIN_POSITIVE);
    }
    numbers
}

/// Grows trees that tell `class` from the others.
fn grow_forest(
    kind: ForestKind,
    settings: ForestSettings,
    columns: &[BinnedColumn],
    training: TrainingSet<'_>,
    class: u32,
    run: FitRun<'_>,
) -> Result<Vec<GrownTree>> {
    let f = columns.len();
    let drawn_count = settings.max_features.count(f);
    let labels = training.labels;
    let unit = WEIGHT_UNIT * labels.largest_weight();
    let grow_settings = settings.grow_settings(unit);
    (0..settings.n_estimators)
        .into_par_iter()
        .map(|number| {
            run.stop.check()?;
            let parts = [i64::from(class), number as i64];
            let (rows, place) = match kind {
                ForestKind::Random => (
                    draw_rows(labels, class, unit, run.seed, &parts),
                    SplitPlace::Best,
                ),
                ForestKind::ExtraTrees => (all_rows(labels, class, unit), SplitPlace::Drawn),
            };
            let generator = crate::seed::generator(run.seed, "forest columns", &parts);
            let mut drawn = DrawnColumns::new(drawn_count, place, f, generator);
            let choice = SplitColumns::Drawn(&mut drawn);
            Ok(grow_tree(&grow_settings, columns, choice, rows))
        })
        .collect()
}

/// As many rows as there are, drawn with replacement. One that is drawn twice weighs twice.
fn draw_rows(
    labels: ClassLabels<'_>,
    class: u32,
    unit: f64,
    seed: u64,
    parts: &[i64],
) -> Vec<SampledRow> {
    let n = labels.y.len();
    let mut generator = crate::seed::generator(seed, "forest rows", parts);
    let mut draws = vec![0_u32; n];
    for _ in 0..n {
        draws[generator.random_range(0..n)] += 1;
    }

    let mut rows = Vec::new();
    for (row, times) in draws.into_iter().enumerate() {
        if times > 0 {
            let weight = f64::from(times) * labels.weights[row];
            rows.push(weighted_row(row, weight, labels.y[row] == class, unit));
        }
    }
    rows
}

/// Each row once.
fn all_rows(labels: ClassLabels<'_>, class: u32, unit: f64) -> Vec<SampledRow> {
    let rows = labels.y.iter().zip(labels.weights).enumerate();
    rows.map(|(row, (y, weight))| weighted_row(row, *weight, *y == class, unit))
        .collect()
}

/// A row with squared loss, seen from a prediction of 0: the best leaf is the mean.
fn weighted_row(row: usize, weight: f64, is_of_class: bool, unit: f64) -> SampledRow {
    SampledRow::new(row, -weight * f64::from(is_of_class), weight, unit)
}

impl Classifier for TreeForest {
    fn probabilities(&self, x: &ColumnMatrix) -> Vec<f64> {
        x.to_rows()
            .chunks_exact(x.f)
            .flat_map(|row| self.row_probabilities(row))
            .collect()
    }

    fn importances(&self, _f: usize) -> Option<ColumnImportances> {
        Some(ColumnImportances::from_gains(&self.gains))
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        ensure!(
            self.gains.len() == f,
            "{} for {}",
            counted(self.gains.len(), "gain"),
            counted(f, "column")
        );
        ensure!(
            self.forests.len() == output_count(k),
            "{} for {k} classes",
            counted(self.forests.len(), "forest")
        );
        ensure!(
            self.forests.iter().all(|trees| !trees.is_empty()),
            "a forest has no trees"
        );
        self.forests
            .iter()
            .flatten()
            .try_for_each(|tree| tree.check(f))
    }
}
