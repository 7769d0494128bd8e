//! The rows in the leaves of a forest → the quantile of the number that a row would have
//! (Meinshausen, "Quantile regression forests", Journal of Machine Learning Research 7, 2006).
//!
//! A tree says of a row that its number is one of those in its leaf, each as likely as the row of it
//! weighs there. All rows that were learned from stand in the leaves, also those that were not drawn
//! for the tree. The mean over the trees is a distribution, whose quantile is the answer.

use anyhow::{Result, ensure};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use poolcast_base::output::counted;
use crate::solvers::labels::NumberLabels;
use crate::solvers::matrix::ColumnMatrix;
use crate::trees::tree::DecisionTree;

/// What rounding may leave a sum of weights below the share that it is.
const ROUNDING: f64 = 1e-12;

/// The rows in the leaves of every tree.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct QuantileLeaves {
    /// Which quantile is predicted, between 0 and 1.
    quantile: f64,
    /// The numbers of all rows, ascending, `[n]`.
    numbers: Vec<f64>,
    /// How often each of them counts, `[n]`.
    weights: Vec<f64>,
    /// `[trees]`.
    trees: Vec<LeafRows>,
}

/// The rows in the leaves of one tree, by their places among the sorted numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LeafRows {
    /// Where the rows of each node begin in `rows`, and the end of the last, `[nodes + 1]`. A node
    /// that is split has none.
    bounds: Vec<u32>,
    /// Leaf by leaf, ascending in each, `[n]`.
    rows: Vec<u32>,
}

impl QuantileLeaves {
    /// Puts every row of `x` into its leaf of each of `trees`.
    pub(super) fn new(
        trees: &[DecisionTree],
        x: &ColumnMatrix,
        labels: NumberLabels<'_>,
        quantile: f64,
    ) -> QuantileLeaves {
        let mut order: Vec<usize> = (0..x.n).collect();
        order.sort_by(|a, b| labels.y[*a].total_cmp(&labels.y[*b]));
        let of_tree = |tree: &DecisionTree| LeafRows::new(tree, x, &order);
        QuantileLeaves {
            quantile,
            numbers: order.iter().map(|row| labels.y[*row]).collect(),
            weights: order.iter().map(|row| labels.weights[*row]).collect(),
            trees: trees.par_iter().map(of_tree).collect(),
        }
    }

    /// The quantile of the row that comes to the leaf `leaves` `[trees]` of each tree.
    pub(super) fn predict(&self, leaves: impl Iterator<Item = usize>) -> f64 {
        let mut votes: Vec<(u32, f64)> = Vec::new();
        for (tree, leaf) in self.trees.iter().zip(leaves) {
            let rows = tree.of_leaf(leaf);
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
        // A forest that was fitted has a row in every leaf.
        found.map_or(f64::NAN, |(row, _)| self.numbers[*row as usize])
    }

    /// Refuses leaves that are not those of `trees`.
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
            "the quantile is {}",
            self.quantile
        );
        ensure!(
            self.trees
                .iter()
                .zip(trees)
                .all(|(leaves, tree)| leaves.is_sound(tree.node_count(), n)),
            "the rows in the leaves of a tree are not those of its nodes"
        );
        Ok(())
    }
}

impl LeafRows {
    /// The rows of `x` in the leaves of `tree`, where `order` `[n]` has the rows by their numbers.
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

    /// The rows in a leaf, ascending.
    fn of_leaf(&self, leaf: usize) -> &[u32] {
        &self.rows[self.bounds[leaf] as usize..self.bounds[leaf + 1] as usize]
    }

    /// Whether they can be those of a tree of so many nodes, and `n` rows.
    fn is_sound(&self, nodes: usize, n: usize) -> bool {
        self.bounds.len() == nodes + 1
            && self.bounds.is_sorted()
            && self.bounds.last().map(|end| *end as usize) == Some(self.rows.len())
            && self.rows.iter().all(|row| (*row as usize) < n)
    }
}
