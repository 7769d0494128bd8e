//! A decision tree that scores rows and goes into a file.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use poolcast_base::output::counted;

/// Stands for the column of a leaf.
const LEAF: u32 = u32::MAX;

/// What a split asks of a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct SplitQuestion {
    /// The place of the column.
    pub(super) column: usize,
    /// A row goes first if its value is below.
    pub(super) below: f64,
    /// Whether rows that miss the column go first.
    pub(super) missing_first: bool,
}

/// A tree whose nodes stand after their parents, the two children of one beside each other. All
/// columns are `[nodes]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(in crate) struct DecisionTree {
    /// The column that a split looks at, or [`LEAF`].
    features: Vec<u32>,
    /// What a split compares with, or a leaf's value.
    values: Vec<f64>,
    /// The first child of a split, where the rows go that are below. The second child comes next.
    children: Vec<u32>,
    /// 1 where rows that miss the column go first.
    missing: Vec<u8>,
}

impl DecisionTree {
    /// A tree of one leaf, which is at place 0.
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

    /// Gives a leaf its value.
    pub(super) fn set_leaf(&mut self, place: usize, value: f64) {
        self.values[place] = value;
    }

    /// Makes a leaf a split with two leaves, and returns the place of the first. The other is next
    /// to it.
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

    /// How many nodes there are, leaves included.
    pub(in crate) fn node_count(&self) -> usize {
        self.features.len()
    }

    /// Gives every leaf the value that `value_of` makes of its place and of its value.
    pub(in crate) fn change_leaves(&mut self, value_of: impl Fn(usize, f64) -> f64) {
        for place in 0..self.features.len() {
            if self.features[place] == LEAF {
                self.values[place] = value_of(place, self.values[place]);
            }
        }
    }

    /// The value of the leaf that a row comes to, whose value in each column is `value_in`.
    #[inline]
    pub(in crate) fn score_row(&self, value_in: impl Fn(usize) -> f64) -> f64 {
        self.values[self.leaf_of_row(value_in)]
    }

    /// The place of the leaf that a row comes to, whose value in each column is `value_in`.
    #[inline]
    pub(in crate) fn leaf_of_row(&self, value_in: impl Fn(usize) -> f64) -> usize {
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

    /// Refuses a tree that could lead outside itself, or outside a row of `f` columns. Every step
    /// leads to a later node, so a walk always ends.
    pub(in crate) fn check(&self, f: usize) -> Result<()> {
        let n = self.features.len();
        let lengths = [self.values.len(), self.children.len(), self.missing.len()];
        ensure!(
            n > 0 && lengths == [n; 3],
            "a tree's columns have other lengths than its {}",
            counted(n, "node")
        );
        ensure!(
            (0..n).all(|at| self.is_node_sound(at, f)),
            "a tree leads outside itself"
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
    fn rows_come_to_their_leaves() {
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
    fn trees_that_lead_astray_are_refused() {
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
