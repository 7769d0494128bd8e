//! Grows the trees of a forest: binned columns, and a number per row → trees that predict it.
//!
//! All trees use the squared loss, so a leaf is the mean of its rows. Classes are numbers too: 1
//! for the rows of one class, and 0 for the others. The gain of a split is then half of the
//! reduction in Gini impurity, so the splits equal a classification tree's.

use anyhow::Result;
use rand::Rng as _;
use serde::Deserialize;

use crate::classifier::FitRun;
use crate::trees::bins::BinnedColumn;
use crate::trees::grow::{
    DrawnColumns, GrowSettings, GrownTree, SplitColumns, SplitPosition, grow_tree,
};
use crate::trees::sampled_rows::{DerivativeUnits, SampledRow};
use crate::trees::split::SplitRule;
use poolcast_base::parallel::map_numbers;

/// Method that makes the trees of a forest differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForestKind {
    /// Random forest.
    Random,
    /// Extremely randomised trees.
    ExtraTrees,
}

/// Hyper-parameters of the pipelines `rf` and `et`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(crate) struct ForestSettings {
    pub(super) n_estimators: usize,
    pub(super) max_depth: Option<usize>,
    pub(super) min_samples_leaf: usize,
    pub(super) max_features: MaxFeatures,
}

/// Number of columns that a split chooses from.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(super) enum MaxFeatures {
    /// Number of columns, which is written as a whole number, as for scikit-learn.
    Count(usize),
    /// Share of all columns.
    Share(f64),
    /// Number that a rule gives.
    Rule(MaxFeaturesRule),
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MaxFeaturesRule {
    /// Square root of the number of columns.
    Sqrt,
}

impl MaxFeatures {
    /// Returns the number of columns to choose from out of `f`, at least 1.
    fn count(self, f: usize) -> usize {
        let count = match self {
            MaxFeatures::Count(count) => return count.clamp(1, f),
            MaxFeatures::Share(share) => share * f as f64,
            MaxFeatures::Rule(MaxFeaturesRule::Sqrt) => (f as f64).sqrt(),
        };
        (count as usize).max(1)
    }
}

impl ForestSettings {
    /// Returns scikit-learn's defaults for a classification forest of `trees` trees.
    pub(super) fn with_defaults(trees: usize) -> ForestSettings {
        ForestSettings {
            n_estimators: trees,
            max_depth: None,
            min_samples_leaf: 1,
            max_features: MaxFeatures::Rule(MaxFeaturesRule::Sqrt),
        }
    }

    /// Returns the settings of a tree whose derivatives are multiples of `units`.
    fn grow_settings(self, units: DerivativeUnits) -> GrowSettings {
        GrowSettings {
            max_depth: self.max_depth.unwrap_or(usize::MAX),
            rule: SplitRule {
                reg_lambda: 0.0,
                reg_alpha: 0.0,
                // As in scikit-learn, rows that differ are split even without a gain.
                min_gain: -1.0,
                min_child_weight: self.min_samples_leaf as f64,
                units,
            },
            learning_rate: 1.0,
        }
    }
}

/// Training data of the trees of one forest.
#[derive(Clone, Copy)]
pub(super) struct ForestRows<'a> {
    /// Binned columns, `[f]`.
    pub(super) columns: &'a [BinnedColumn],
    /// Number to predict for each row, `[n]`.
    pub(super) numbers: &'a [f64],
    /// Weight of each row, `[n]`.
    pub(super) weights: &'a [f64],
    /// Units of the derivatives of the rows.
    pub(super) units: DerivativeUnits,
    /// Index of the forest in its model, which seeds its own random draws.
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
    let trees = map_numbers(settings.n_estimators, |tree| {
        run.stop.check()?;
        let (sampled, place) = match kind {
            ForestKind::Random => (rows.drawn(run.seed, tree), SplitPosition::Best),
            ForestKind::ExtraTrees => (rows.all(), SplitPosition::Drawn),
        };
        let parts = [rows.forest, tree as i64];
        let generator = poolcast_base::seed::generator(run.seed, "forest columns", &parts);
        let mut drawn = DrawnColumns::new(drawn_count, place, f, generator);
        let choice = SplitColumns::Drawn(&mut drawn);
        Ok(grow_tree(&grow_settings, rows.columns, choice, sampled))
    });
    trees.into_iter().collect()
}

/// Draws `n` rows with replacement for a tree of a random forest; returns the number of draws of
/// each row, `[n]`.
pub(super) fn draw_counts(n: usize, seed: u64, forest: i64, tree: usize) -> Vec<u32> {
    let mut generator = poolcast_base::seed::generator(seed, "forest rows", &[forest, tree as i64]);
    let mut draws = vec![0_u32; n];
    for _ in 0..n {
        draws[generator.random_range(0..n)] += 1;
    }
    draws
}

impl ForestRows<'_> {
    /// Returns the rows that are drawn for a tree. A row that is drawn twice has twice the weight.
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

    /// Returns each row once.
    fn all(&self) -> Vec<SampledRow> {
        let rows = 0..self.numbers.len();
        rows.map(|row| self.weighted_row(row, self.weights[row]))
            .collect()
    }

    /// Returns a row with the derivatives of the squared loss at a prediction of 0, for which the
    /// best leaf value is the mean.
    fn weighted_row(&self, row: usize, weight: f64) -> SampledRow {
        SampledRow::new(row, -weight * self.numbers[row], weight, self.units)
    }
}

/// Returns the share of each number in their sum, or 0 for each if all are 0.
pub(super) fn shares_of_sum(mut numbers: Vec<f64>) -> Vec<f64> {
    let sum: f64 = numbers.iter().sum();
    for number in &mut numbers {
        *number /= sum.max(f64::MIN_POSITIVE);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_of_columns_are_counts() {
        let count = |text: &str| {
            let features: MaxFeatures = serde_json::from_str(text).expect("valid");
            features.count(9)
        };
        assert_eq!(["1", "1.0", "0.5", "\"sqrt\""].map(count), [1, 9, 4, 3]);
    }
}
