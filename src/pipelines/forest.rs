//! Columns and classes → a random forest, whose trees vote with the shares of classes in their leaves.
//!
//! The trees are smartcore's, regressions on 0 and 1: their variance is half of Gini's impurity, so that the splits are those
//! of a classification. Two classes take one forest, more one for each, and their votes are made to sum to one.

use anyhow::{Context as _, Result, ensure};
use rand::Rng as _;
use serde::{Deserialize, Serialize};
use smartcore::ensemble::random_forest_regressor::{
    RandomForestRegressor, RandomForestRegressorParameters,
};
use smartcore::linalg::basic::matrix::DenseMatrix;

use super::importances::ColumnImportances;
use super::matrix::Matrix;
use super::model::{Fitting, Model};
use super::stop::{Stop, ask};
use super::tree::{Node, Tree};

/// Trees grown in one go: enough to share the sorting of columns, few enough that a wish to stop is heard soon.
const AT_ONCE: usize = 4;

type Grown = RandomForestRegressor<f64, f64, DenseMatrix<f64>, Vec<f64>>;

/// A random forest for each of `o` outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Forest {
    /// `[o][trees]`.
    forests: Vec<Vec<Tree>>,
    /// How much each column did for the splits, `[f]`.
    gains: Vec<f64>,
}

/// How to grow trees.
#[derive(Debug, Clone, Copy)]
struct Growth {
    trees: usize,
    max_depth: Option<u16>,
    min_samples_leaf: usize,
    /// Columns to choose from at a split.
    columns: usize,
}

impl Forest {
    /// Fits on `x` with classes `y` below `k`.
    pub(super) fn fit(x: &Matrix, fitting: Fitting<'_>) -> Result<Forest> {
        let Fitting {
            settings,
            y,
            k,
            seed,
            stop,
        } = fitting;
        let columns = match settings.number("max_features") {
            Some(share) => (share * x.f as f64) as usize,
            None => (x.f as f64).sqrt() as usize,
        };
        let growth = Growth {
            trees: settings.whole("n_estimators")?,
            max_depth: settings.number("max_depth").map(|depth| depth as u16),
            min_samples_leaf: settings.whole("min_samples_leaf")?,
            columns: columns.max(1),
        };
        let (mut forests, mut gains) = (Vec::new(), vec![0.0; x.f]);
        for output in outputs(k) {
            let mut trees = Vec::new();
            grow(x, y, output, growth, seed, stop, |grown| {
                trees.extend(trees_of(grown)?);
                super::matrix::add(&mut gains, 1.0, &grown.compute_feature_importances()?);
                Ok(())
            })?;
            forests.push(trees);
        }
        Ok(Forest { forests, gains })
    }
}

/// How much each column does for the splits of a random forest of `trees` trees, `[f]`: scikit-learn's
/// `feature_importances_`, which sum to one.
pub(super) fn importances(
    x: &Matrix,
    (y, k): (&[u32], usize),
    trees: usize,
    seed: u64,
    stop: Stop<'_>,
) -> Result<Vec<f64>> {
    let columns = ((x.f as f64).sqrt() as usize).max(1);
    let growth = Growth {
        trees,
        max_depth: None,
        min_samples_leaf: 1,
        columns,
    };
    let mut sums = vec![0.0; x.f];
    for output in outputs(k) {
        grow(x, y, output, growth, seed, stop, |grown| {
            super::matrix::add(&mut sums, 1.0, &grown.compute_feature_importances()?);
            Ok(())
        })?;
    }
    let sum: f64 = sums.iter().sum();
    sums.iter_mut()
        .for_each(|share| *share /= sum.max(f64::MIN_POSITIVE));
    Ok(sums)
}

/// The classes that have a forest.
fn outputs(k: usize) -> Vec<u32> {
    if k == 2 {
        vec![1]
    } else {
        (0..k as u32).collect()
    }
}

/// Grows trees that tell class `output` from the others, and shows them a few at a time.
fn grow(
    x: &Matrix,
    y: &[u32],
    output: u32,
    growth: Growth,
    seed: u64,
    stop: Stop<'_>,
    mut show: impl FnMut(&Grown) -> Result<()>,
) -> Result<()> {
    let rows = DenseMatrix::new(x.n, x.f, x.x.clone(), true)?;
    let truth: Vec<f64> = y.iter().map(|y| f64::from(*y == output)).collect();
    for first in (0..growth.trees).step_by(AT_ONCE) {
        ask(stop)?;
        let parts = [i64::from(output), first as i64];
        let parameters = RandomForestRegressorParameters {
            max_depth: growth.max_depth,
            min_samples_leaf: growth.min_samples_leaf,
            min_samples_split: 2,
            n_trees: AT_ONCE.min(growth.trees - first),
            m: Some(growth.columns),
            keep_samples: false,
            seed: crate::seed::generator(seed, "random forest", &parts).random(),
        };
        show(&Grown::fit(&rows, &truth, parameters)?)?;
    }
    Ok(())
}

/// What of smartcore's serialised forest is looked at.
#[derive(Deserialize)]
struct GrownForest {
    forest_regressor: GrownTrees,
}

#[derive(Deserialize)]
struct GrownTrees {
    trees: Vec<GrownTree>,
}

#[derive(Deserialize)]
struct GrownTree {
    nodes: Vec<GrownNode>,
}

#[derive(Deserialize)]
struct GrownNode {
    output: f64,
    split_feature: usize,
    split_value: Option<f64>,
    true_child: Option<usize>,
    false_child: Option<usize>,
}

/// The trees of a forest: smartcore shows them in its serialised form alone.
fn trees_of(grown: &Grown) -> Result<Vec<Tree>> {
    let forest: GrownForest = serde_json::from_slice(&serde_json::to_vec(grown)?)
        .context("smartcore's forests have another form")?;
    let node = |node: &GrownNode| match (node.split_value, node.true_child, node.false_child) {
        (Some(value), Some(yes), Some(no)) => {
            // Its splits ask for at most the value, ours for less than a number.
            Node::Split {
                feature: node.split_feature,
                below: value.next_up(),
                yes,
                no,
                missing: false,
            }
        }
        _ => Node::Leaf(node.output),
    };
    Ok(forest
        .forest_regressor
        .trees
        .iter()
        .map(|tree| Tree::new(|at| node(&tree.nodes[at])))
        .collect())
}

impl Model for Forest {
    fn probabilities(&self, x: &Matrix) -> Vec<f64> {
        let vote = |trees: &Vec<Tree>, row: &[f64]| {
            (trees.iter().map(|tree| tree.score(row)).sum::<f64>() / trees.len() as f64)
                .clamp(0.0, 1.0)
        };
        let of_row = |row: &[f64]| {
            let votes: Vec<f64> = self.forests.iter().map(|trees| vote(trees, row)).collect();
            if let [p] = votes[..] {
                return vec![1.0 - p, p];
            }
            let sum: f64 = votes.iter().sum();
            // Where no tree gives any class a share, all are alike.
            votes
                .iter()
                .map(|vote| {
                    if sum > 0.0 {
                        vote / sum
                    } else {
                        1.0 / votes.len() as f64
                    }
                })
                .collect()
        };
        x.by_rows().chunks_exact(x.f).flat_map(of_row).collect()
    }

    fn importances(&self, _f: usize) -> Option<ColumnImportances> {
        Some(ColumnImportances::of_gains(&self.gains))
    }

    fn check(&self, f: usize, k: usize) -> Result<()> {
        ensure!(
            self.gains.len() == f,
            "{} for {}",
            crate::output::counted(self.gains.len(), "gain"),
            crate::output::counted(f, "column")
        );
        ensure!(
            self.forests.len() == outputs(k).len(),
            "{} for {k} classes",
            crate::output::counted(self.forests.len(), "forest")
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
