//! Columns and classes → a random forest, whose trees vote with the shares of classes in their
//! leaves.
//!
//! The trees are smartcore's, regressions on 0 and 1: their variance is half of Gini's impurity, so
//! the splits are those of a classification. Two classes need one forest, several need one for
//! each, and their votes are made to sum to one.

use anyhow::{Context as _, Result, ensure};
use rand::Rng as _;
use serde::{Deserialize, Serialize};
use smartcore::ensemble::random_forest_regressor::{
    RandomForestRegressor, RandomForestRegressorParameters,
};
use smartcore::linalg::basic::matrix::DenseMatrix;

use super::classifier::{Classifier, FitRun, TrainingSet};
use super::importances::ColumnImportances;
use super::solvers::labels::{output_classes, output_count};
use super::solvers::matrix::{ColumnMatrix, add_scaled};
use super::tree::{DecisionTree, TreeNode};
use crate::output::counted;

/// How many trees are grown in one go: enough to share the sorting of columns, few enough that a
/// wish to stop is heard soon.
const TREES_AT_ONCE: usize = 4;

type SmartcoreForest = RandomForestRegressor<f64, f64, DenseMatrix<f64>, Vec<f64>>;

/// The hyper-parameters of the pipeline `rf`.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct ForestSettings {
    n_estimators: usize,
    max_depth: Option<u16>,
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

/// A random forest for each of `o` outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RandomForest {
    /// `[o][trees]`.
    forests: Vec<Vec<DecisionTree>>,
    /// How much each column did for the splits, `[f]`.
    gains: Vec<f64>,
}

impl RandomForest {
    /// Fits a forest for each output.
    pub(super) fn fit(
        settings: ForestSettings,
        training: TrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<RandomForest> {
        let mut forests = Vec::new();
        let mut gains = vec![0.0; training.x.f];
        for class in output_classes(training.labels.class_count) {
            let mut trees = Vec::new();
            grow_forest(settings, training, class, run, |grown| {
                trees.extend(decision_trees(grown)?);
                add_scaled(&mut gains, 1.0, &grown.compute_feature_importances()?);
                Ok(())
            })?;
            forests.push(trees);
        }
        Ok(RandomForest { forests, gains })
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
    let sum: f64 = trees.iter().map(|tree| tree.score_row(row)).sum();
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
    let mut importances = vec![0.0; training.x.f];
    for class in output_classes(training.labels.class_count) {
        grow_forest(settings, training, class, run, |grown| {
            add_scaled(&mut importances, 1.0, &grown.compute_feature_importances()?);
            Ok(())
        })?;
    }

    let sum: f64 = importances.iter().sum();
    for importance in &mut importances {
        *importance /= sum.max(f64::MIN_POSITIVE);
    }
    Ok(importances)
}

/// Grows trees that tell `class` from the others, and shows them to `visit` a few at a time.
fn grow_forest(
    settings: ForestSettings,
    training: TrainingSet<'_>,
    class: u32,
    run: FitRun<'_>,
    mut visit: impl FnMut(&SmartcoreForest) -> Result<()>,
) -> Result<()> {
    let TrainingSet { x, labels } = training;
    let columns = DenseMatrix::new(x.n, x.f, x.values.clone(), true)?;
    let truth: Vec<f64> = labels.y.iter().map(|y| f64::from(*y == class)).collect();

    for first in (0..settings.n_estimators).step_by(TREES_AT_ONCE) {
        run.stop.check()?;
        let parts = [i64::from(class), first as i64];
        let parameters = RandomForestRegressorParameters {
            max_depth: settings.max_depth,
            min_samples_leaf: settings.min_samples_leaf,
            min_samples_split: 2,
            n_trees: TREES_AT_ONCE.min(settings.n_estimators - first),
            m: Some(settings.max_features.count(x.f)),
            keep_samples: false,
            seed: crate::seed::generator(run.seed, "random forest", &parts).random(),
        };
        visit(&SmartcoreForest::fit(&columns, &truth, parameters)?)?;
    }
    Ok(())
}

/// What is read of smartcore's serialised forest.
#[derive(Deserialize)]
struct SerialisedForest {
    forest_regressor: SerialisedTrees,
}

#[derive(Deserialize)]
struct SerialisedTrees {
    trees: Vec<SerialisedTree>,
}

#[derive(Deserialize)]
struct SerialisedTree {
    nodes: Vec<SerialisedNode>,
}

#[derive(Deserialize)]
struct SerialisedNode {
    output: f64,
    split_feature: usize,
    split_value: Option<f64>,
    true_child: Option<usize>,
    false_child: Option<usize>,
}

impl SerialisedNode {
    fn to_tree_node(&self) -> TreeNode {
        match (self.split_value, self.true_child, self.false_child) {
            (Some(value), Some(yes), Some(no)) => TreeNode::Split {
                feature: self.split_feature,
                // smartcore asks for at most the value, our trees for less than a number.
                below: value.next_up(),
                yes,
                no,
                missing: false,
            },
            _ => TreeNode::Leaf(self.output),
        }
    }
}

/// The trees of a forest. smartcore shows them in its serialised form alone.
fn decision_trees(grown: &SmartcoreForest) -> Result<Vec<DecisionTree>> {
    let forest: SerialisedForest = serde_json::from_slice(&serde_json::to_vec(grown)?)
        .context("smartcore's forests have another form")?;
    Ok(forest
        .forest_regressor
        .trees
        .iter()
        .map(|tree| DecisionTree::new(|number| tree.nodes[number].to_tree_node()))
        .collect())
}

impl Classifier for RandomForest {
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
