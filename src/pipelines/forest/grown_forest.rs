//! Columns in bins, and a number for each row → trees that predict the number.
//!
//! All trees learn with squared loss, so that a leaf is the mean of its rows. Classes are numbers,
//! too: 1 for the rows of one class, and 0 for the others. What a split gains is then half of what
//! it takes from Gini's impurity, so the splits are those of a classification.

use anyhow::Result;
use rand::Rng as _;
use rayon::prelude::*;
use serde::Deserialize;

use crate::classifier::FitRun;
use crate::trees::bins::BinnedColumn;
use crate::trees::grow::{
    DrawnColumns, GrowSettings, GrownTree, SplitColumns, SplitPlace, grow_tree,
};
use crate::trees::histogram::{DerivativeUnits, SampledRow};
use crate::trees::split::SplitRule;

/// How the trees of a forest come to differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate) enum ForestKind {
    /// A random forest.
    Random,
    /// Extremely randomised trees.
    ExtraTrees,
}

/// The hyper-parameters of the pipelines `rf` and `et`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(in crate) struct ForestSettings {
    pub(super) n_estimators: usize,
    pub(super) max_depth: Option<usize>,
    pub(super) min_samples_leaf: usize,
    pub(super) max_features: MaxFeatures,
}

/// How many columns a split chooses from.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(super) enum MaxFeatures {
    /// This share of them.
    Share(f64),
    /// As many as a rule says.
    Rule(MaxFeaturesRule),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MaxFeaturesRule {
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
    /// scikit-learn's defaults of a classification, of `trees` trees.
    pub(super) fn of_defaults(trees: usize) -> ForestSettings {
        ForestSettings {
            n_estimators: trees,
            max_depth: None,
            min_samples_leaf: 1,
            max_features: MaxFeatures::Rule(MaxFeaturesRule::Sqrt),
        }
    }

    /// The settings of a tree whose derivatives are multiples of `units`.
    fn grow_settings(self, units: DerivativeUnits) -> GrowSettings {
        GrowSettings {
            max_depth: self.max_depth.unwrap_or(usize::MAX),
            rule: SplitRule {
                reg_lambda: 0.0,
                reg_alpha: 0.0,
                // As in scikit-learn, rows that differ are told apart even if that gains nothing.
                min_gain: -1.0,
                min_child_weight: self.min_samples_leaf as f64,
                units,
            },
            learning_rate: 1.0,
        }
    }
}

/// What the trees of one forest learn from.
#[derive(Clone, Copy)]
pub(super) struct ForestRows<'a> {
    /// The columns in bins, `[f]`.
    pub(super) columns: &'a [BinnedColumn],
    /// The number of each row, `[n]`.
    pub(super) numbers: &'a [f64],
    /// How often each row counts, `[n]`.
    pub(super) weights: &'a [f64],
    /// What the derivatives of rows are multiples of.
    pub(super) units: DerivativeUnits,
    /// The number of the forest among those of one model: its draws are its own.
    pub(super) forest: i64,
}

/// Grows the trees of one forest.
pub(super) fn grow_forest(
    kind: ForestKind,
    settings: ForestSettings,
    rows: ForestRows<'_>,
    run: FitRun<'_>,
) -> Result<Vec<GrownTree>> {
    let f = rows.columns.len();
    let drawn_count = settings.max_features.count(f);
    let grow_settings = settings.grow_settings(rows.units);
    (0..settings.n_estimators)
        .into_par_iter()
        .map(|tree| {
            run.stop.check()?;
            let (sampled, place) = match kind {
                ForestKind::Random => (rows.drawn(run.seed, tree), SplitPlace::Best),
                ForestKind::ExtraTrees => (rows.all(), SplitPlace::Drawn),
            };
            let parts = [rows.forest, tree as i64];
            let generator = poolcast_base::seed::generator(run.seed, "forest columns", &parts);
            let mut drawn = DrawnColumns::new(drawn_count, place, f, generator);
            let choice = SplitColumns::Drawn(&mut drawn);
            Ok(grow_tree(&grow_settings, rows.columns, choice, sampled))
        })
        .collect()
}

/// How often each of `n` rows is drawn for a tree of a random forest, `[n]`: as many as there are,
/// with replacement.
pub(super) fn draw_counts(n: usize, seed: u64, forest: i64, tree: usize) -> Vec<u32> {
    let mut generator = poolcast_base::seed::generator(seed, "forest rows", &[forest, tree as i64]);
    let mut draws = vec![0_u32; n];
    for _ in 0..n {
        draws[generator.random_range(0..n)] += 1;
    }
    draws
}

impl ForestRows<'_> {
    /// The rows that are drawn for a tree. One that is drawn twice weighs twice.
    fn drawn(&self, seed: u64, tree: usize) -> Vec<SampledRow> {
        let draws = draw_counts(self.numbers.len(), seed, self.forest, tree);
        let drawn = draws
            .into_iter()
            .enumerate()
            .filter(|(_, times)| *times > 0);
        drawn
            .map(|(row, times)| self.weighted_row(row, f64::from(times) * self.weights[row]))
            .collect()
    }

    /// Each row once.
    fn all(&self) -> Vec<SampledRow> {
        let rows = 0..self.numbers.len();
        rows.map(|row| self.weighted_row(row, self.weights[row]))
            .collect()
    }

    /// A row with squared loss, seen from a prediction of 0: the best leaf is the mean.
    fn weighted_row(&self, row: usize, weight: f64) -> SampledRow {
        SampledRow::new(row, -weight * self.numbers[row], weight, self.units)
    }
}

/// The share of each number in the sum of all; 0 where all are 0.
pub(super) fn shares_of_sum(mut numbers: Vec<f64>) -> Vec<f64> {
    let sum: f64 = numbers.iter().sum();
    for number in &mut numbers {
        *number /= sum.max(f64::MIN_POSITIVE);
    }
    numbers
}
