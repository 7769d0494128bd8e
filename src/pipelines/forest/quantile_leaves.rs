//! Quantile regression forests: predict a quantile from the training rows in the leaves
//! (Meinshausen, "Quantile regression forests", Journal of Machine Learning Research 7, 2006).
//!
//! For each tree, the distribution of a row's number consists of the numbers in its leaf, by the
//! weights of their rows. The leaves hold all training rows, even those not drawn for the tree. The
//! prediction is the quantile of the mean distribution over the trees.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::solvers::labels::NumberLabels;
use crate::solvers::matrix::ColumnMatrix;
use crate::trees::tree::DecisionTree;
use poolcast_base::output::counted;
use poolcast_base::parallel::map_items;

/// Tolerance for a sum of shares that rounding made too small.
const ROUNDING: f64 = 1e-12;

/// Training rows in the leaves of every tree, to predict a quantile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct QuantileLeaves {
    /// Quantile to predict, between 0 and 1.
    quantile: f64,
    /// Numbers of all rows, ascending, `[n]`.
    numbers: Vec<f64>,
    /// Weight of each number, `[n]`.
    weights: Vec<f64>,
    /// Leaves of each tree, `[trees]`.
    trees: Vec<LeafRows>,
}

/// Rows in the leaves of one tree, as indices into the sorted numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LeafRows {
    /// Start of each node's rows in `rows`, followed by the end of the last, `[nodes + 1]`. A node
    /// that is split has no rows.
    bounds: Vec<u32>,
    /// Rows by leaf, ascending in each leaf, `[n]`.
    rows: Vec<u32>,
}

impl QuantileLeaves {
    /// Assigns every row of `x` to its leaf in each of `trees`.
    pub(super) fn new(
        trees: &[DecisionTree],
        x: &ColumnMatrix,
        labels: NumberLabels<'_>,
        quantile: f64,
    ) -> QuantileLeaves {
        let mut order: Vec<usize> = (0..x.n).collect();
        order.sort_by(|a, b| labels.y[*a].total_cmp(&labels.y[*b]));
        let leaves_of_tree = |tree: &DecisionTree| LeafRows::new(tree, x, &order);
        QuantileLeaves {
            quantile,
            numbers: order.iter().map(|row| labels.y[*row]).collect(),
            weights: order.iter().map(|row| labels.weights[*row]).collect(),
            trees: map_items(trees, leaves_of_tree),
        }
    }

    /// Predicts the quantile for a row that falls into `leaves` `[trees]`, one leaf per tree.
    pub(super) fn predict(&self, leaves: impl Iterator<Item = usize>) -> f64 {
        // The votes of each tree sum to one, however many rows its leaf has.
        let mut votes: Vec<(u32, f64)> = Vec::new();
        for (tree, leaf) in self.trees.iter().zip(leaves) {
            let rows = tree.leaf_rows(leaf);
            let sum: f64 = rows.iter().map(|row| self.weights[*row as usize]).sum();
            let share = |row: &u32| (*row, self.weights[*row as usize] / sum);
            votes.extend(rows.iter().map(share));
        }
        votes.sort_by_key(|(row, _)| *row);

        let all: f64 = votes.iter().map(|(_, share)| share).sum();
        let wanted = (self.quantile - ROUNDING) * all;
        let mut sum = 0.0;
        let reaches = |(_, share): &&(u32, f64)| {
            sum += share;
            sum >= wanted
        };
        let found = votes.iter().find(reaches).or(votes.last());
        // A fitted forest has a row in every leaf, so the result is never NaN.
        found.map_or(f64::NAN, |(row, _)| self.numbers[*row as usize])
    }

    /// Rejects leaves that do not match `trees`.
    pub(super) fn check(&self, trees: &[DecisionTree]) -> Result<()> {
        let n = self.numbers.len();
        ensure!(
            self.weights.len() == n && self.trees.len() == trees.len(),
            "{} and leaves of {} for {} and {}",
            counted(self.weights.len(), "weight"),
            counted(self.trees.len(), "tree"),
            counted(n, "number"),
            counted(trees.len(), "tree")
        );
        ensure!(
            (0.0..=1.0).contains(&self.quantile),
            "the quantile is {}, expected 0 to 1",
            self.quantile
        );
        ensure!(
            self.trees
                .iter()
                .zip(trees)
                .all(|(leaves, tree)| leaves.is_sound(tree.node_count(), n)),
            "the rows in the leaves of a tree do not match its nodes"
        );
        Ok(())
    }
}

impl LeafRows {
    /// Assigns the rows of `x` to the leaves of `tree`. `order` `[n]` lists the rows by ascending
    /// number.
    fn new(tree: &DecisionTree, x: &ColumnMatrix, order: &[usize]) -> LeafRows {
        let leaf_of = |row: &usize| tree.leaf_of_row(|column| x.values[column * x.n + row]);
        let leaves: Vec<usize> = order.iter().map(leaf_of).collect();

        let mut bounds = vec![0_u32; tree.node_count() + 1];
        for leaf in &leaves {
            bounds[leaf + 1] += 1;
        }
        for node in 1..bounds.len() {
            bounds[node] += bounds[node - 1];
        }

        let mut rows: Vec<u32> = (0..order.len() as u32).collect();
        rows.sort_by_key(|row| leaves[*row as usize]);
        LeafRows { bounds, rows }
    }

    /// Returns the rows in a leaf, ascending.
    fn leaf_rows(&self, leaf: usize) -> &[u32] {
        &self.rows[self.bounds[leaf] as usize..self.bounds[leaf + 1] as usize]
    }

    /// Returns true if they can belong to a tree of `nodes` nodes and `n` rows.
    fn is_sound(&self, nodes: usize, n: usize) -> bool {
        self.bounds.len() == nodes + 1
            && self.bounds.is_sorted()
            && self.bounds.last().map(|end| *end as usize) == Some(self.rows.len())
            && self.rows.iter().all(|row| (*row as usize) < n)
    }
}
