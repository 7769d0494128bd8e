//! Nodes as a library grew them → a decision tree that scores rows and goes into a file.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::output::counted;

/// Stands for the feature of a leaf.
const LEAF: u32 = u32::MAX;

/// What one node of another library's tree does.
#[derive(Debug, Clone, Copy)]
pub(super) enum TreeNode {
    /// Ends, with this value.
    Leaf(f64),
    /// Asks whether a feature is below a number.
    Split {
        /// The feature's column.
        feature: usize,
        /// The number.
        below: f64,
        /// The node of rows that are below.
        yes: usize,
        /// The node of the others.
        no: usize,
        /// Whether rows that miss the feature go with those below.
        missing: bool,
    },
}

/// A tree whose nodes stand in depth-first order: the first child of a node comes next. That way a
/// node needs to name only its second child. All columns are `[nodes]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct DecisionTree {
    /// The column that a split looks at, or [`LEAF`].
    features: Vec<u32>,
    /// What a split compares with, or a leaf's value.
    values: Vec<f64>,
    /// The second child: where the rows go that are not below.
    others: Vec<u32>,
    /// 1 where rows that miss the feature go with those below.
    missing: Vec<u8>,
}

/// A node that is still to be added to a tree.
struct PendingNode {
    /// Its number in the library's tree.
    number: usize,
    /// The place of the node whose second child it is; none for a first child.
    second_of: Option<usize>,
}

impl DecisionTree {
    /// The tree below node 0 of those that `describe` describes by number.
    pub(super) fn new(mut describe: impl FnMut(usize) -> TreeNode) -> DecisionTree {
        let mut tree = DecisionTree::default();
        let mut pending = vec![PendingNode {
            number: 0,
            second_of: None,
        }];
        while let Some(next) = pending.pop() {
            let place = tree.features.len();
            if let Some(parent) = next.second_of {
                tree.others[parent] = place as u32;
            }

            match describe(next.number) {
                TreeNode::Leaf(value) => tree.push_node(LEAF, value, false),
                TreeNode::Split {
                    feature,
                    below,
                    yes,
                    no,
                    missing,
                } => {
                    tree.push_node(feature as u32, below, missing);
                    // The last one pushed comes next: the first child.
                    pending.push(PendingNode {
                        number: no,
                        second_of: Some(place),
                    });
                    pending.push(PendingNode {
                        number: yes,
                        second_of: None,
                    });
                }
            }
        }
        tree
    }

    fn push_node(&mut self, feature: u32, value: f64, missing: bool) {
        self.features.push(feature);
        self.values.push(value);
        self.others.push(0);
        self.missing.push(u8::from(missing));
    }

    /// The value of the leaf that `row` `[f]` comes to.
    pub(super) fn score_row(&self, row: &[f64]) -> f64 {
        let mut at = 0;
        while self.features[at] != LEAF {
            let value = row[self.features[at] as usize];
            let goes_first = if value.is_nan() {
                self.missing[at] == 1
            } else {
                value < self.values[at]
            };
            at = if goes_first {
                at + 1
            } else {
                self.others[at] as usize
            };
        }
        self.values[at]
    }

    /// Refuses a tree that could lead outside itself, or outside a row of `f` columns. Every step
    /// leads to a later node, so a walk always ends.
    pub(super) fn check(&self, f: usize) -> Result<()> {
        let n = self.features.len();
        let lengths = [self.values.len(), self.others.len(), self.missing.len()];
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
        let n = self.features.len();
        let second = self.others[at] as usize;
        (self.features[at] as usize) < f && at + 1 < n && at < second && second < n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(feature: usize, below: f64, yes: usize, no: usize, missing: bool) -> TreeNode {
        TreeNode::Split {
            feature,
            below,
            yes,
            no,
            missing,
        }
    }

    fn tree() -> DecisionTree {
        let nodes = [
            split(0, 1.0, 3, 1, true),
            split(1, 5.0, 2, 4, false),
            TreeNode::Leaf(10.0),
            TreeNode::Leaf(20.0),
            TreeNode::Leaf(30.0),
        ];
        DecisionTree::new(|at| nodes[at])
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
        .map(|row| tree().score_row(&row));
        assert_eq!(scores, [20.0, 20.0, 10.0, 30.0, 30.0]);
    }

    #[test]
    fn trees_that_lead_astray_are_refused() {
        tree().check(2).expect("sound");
        assert!(tree().check(1).is_err());
        assert!(DecisionTree::default().check(1).is_err());
        for wrong in [0, 1, 99] {
            let mut tree = tree();
            tree.others[2] = wrong;
            assert!(tree.check(2).is_err(), "{wrong}");
        }
    }
}
