//! A decision tree that scores rows, in the form that is stored in files.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_base::output::counted;

/// Marker of a leaf, in place of a column.
const LEAF: u32 = u32::MAX;

/// Question that a split asks about a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitQuestion {
    /// Index of the column.
    pub(super) column: usize,
    /// Threshold. Rows with a lower value go first.
    pub(super) below: f64,
    /// True if rows with a missing value go first.
    pub(super) missing_first: bool,
}

/// A tree. Its nodes come after their parents, and the two children of a node are adjacent. All
/// vectors are `[nodes]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DecisionTree {
    /// Column of a split, or [`LEAF`].
    features: Vec<u32>,
    /// Threshold of a split, or value of a leaf.
    values: Vec<f64>,
    /// First child of a split, which rows below the threshold go to. The second child is the next
    /// node.
    children: Vec<u32>,
    /// 1 if rows with a missing value go first.
    missing: Vec<u8>,
}

impl DecisionTree {
    /// Creates a tree of one leaf, which has index 0.
    pub(super) fn new() -> DecisionTree {
        let mut tree = DecisionTree::default();
        tree.push_leaf();
        tree
    }

    fn push_leaf(&mut self) {
        self.features.push(LEAF);
        self.values.push(0.0);
        self.children.push(0);
        self.missing.push(0);
    }

    /// Sets the value of a leaf.
    pub(super) fn set_leaf(&mut self, place: usize, value: f64) {
        self.values[place] = value;
    }

    /// Turns a leaf into a split with two leaves; returns the index of the first. The second one
    /// follows it.
    pub(super) fn split(&mut self, place: usize, question: SplitQuestion) -> usize {
        let first = self.features.len();
        self.push_leaf();
        self.push_leaf();
        self.features[place] = question.column as u32;
        self.values[place] = question.below;
        self.children[place] = first as u32;
        self.missing[place] = u8::from(question.missing_first);
        first
    }

    /// Number of nodes, leaves included.
    pub(crate) fn node_count(&self) -> usize {
        self.features.len()
    }

    /// Sets every leaf to the value that `value_of` computes from its index and its value.
    pub(crate) fn change_leaves(&mut self, value_of: impl Fn(usize, f64) -> f64) {
        for place in 0..self.features.len() {
            if self.features[place] == LEAF {
                self.values[place] = value_of(place, self.values[place]);
            }
        }
    }

    /// Returns the value of the leaf that a row reaches. `value_in` returns the row's value in a
    /// column.
    #[inline]
    pub(crate) fn score_row(&self, value_in: impl Fn(usize) -> f64) -> f64 {
        self.values[self.leaf_of_row(value_in)]
    }

    /// Returns the index of the leaf that a row reaches. `value_in` returns the row's value in a
    /// column.
    #[inline]
    pub(crate) fn leaf_of_row(&self, value_in: impl Fn(usize) -> f64) -> usize {
        let mut at = 0;
        while self.features[at] != LEAF {
            let value = value_in(self.features[at] as usize);
            let goes_first = if value.is_nan() {
                self.missing[at] == 1
            } else {
                value < self.values[at]
            };
            at = self.children[at] as usize + usize::from(!goes_first);
        }
        at
    }

    /// Rejects a tree that could lead outside itself, or outside a row of `f` columns. Every step
    /// leads to a later node, so a walk always ends.
    pub(crate) fn check(&self, f: usize) -> Result<()> {
        let n = self.features.len();
        let lengths = [self.values.len(), self.children.len(), self.missing.len()];
        ensure!(
            n > 0 && lengths == [n; 3],
            "the columns of a tree do not have one entry for each of {}",
            counted(n, "node")
        );
        ensure!(
            (0..n).all(|at| self.is_node_sound(at, f)),
            "a node of a tree is out of range"
        );
        Ok(())
    }

    fn is_node_sound(&self, at: usize, f: usize) -> bool {
        if self.features[at] == LEAF {
            return true;
        }
        let first = self.children[at] as usize;
        (self.features[at] as usize) < f && at < first && first + 1 < self.features.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> DecisionTree {
        let question = |column: usize, below: f64, missing_first: bool| SplitQuestion {
            column,
            below,
            missing_first,
        };
        let mut tree = DecisionTree::new();
        let first = tree.split(0, question(0, 1.0, true));
        let later = tree.split(first + 1, question(1, 5.0, false));
        for (place, value) in [(first, 20.0), (later, 10.0), (later + 1, 30.0)] {
            tree.set_leaf(place, value);
        }
        tree
    }

    #[test]
    fn rows_reach_their_leaves() {
        let scores = [
            [0.5, 9.0],
            [f64::NAN, 9.0],
            [1.0, 4.9],
            [1.0, 5.0],
            [1.0, f64::NAN],
        ]
        .map(|row| tree().score_row(|column| row[column]));
        assert_eq!(scores, [20.0, 20.0, 10.0, 30.0, 30.0]);
    }

    #[test]
    fn trees_that_lead_outside_are_rejected() {
        tree().check(2).expect("sound");
        assert!(tree().check(1).is_err());
        assert!(DecisionTree::default().check(1).is_err());
        for wrong in [0, 2, 4, 99] {
            let mut tree = tree();
            tree.children[2] = wrong;
            assert!(tree.check(2).is_err(), "{wrong}");
        }
    }
}
