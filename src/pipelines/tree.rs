//! Nodes as a library grew them → a decision tree that scores rows and goes into a file.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// Stands for the feature of a leaf.
const LEAF: u32 = u32::MAX;

/// What one node of another library's tree does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Node {
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

/// A tree whose nodes stand in the order of a walk: the first child of a node comes next. All columns are `[nodes]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Tree {
    features: Vec<u32>,
    /// What a split compares with, or a leaf's value.
    values: Vec<f64>,
    /// Where the rows go that are not below.
    others: Vec<u32>,
    /// 1 where rows that miss the feature go with those below.
    missing: Vec<u8>,
}

impl Tree {
    /// The tree below node 0 of those that `node` describes.
    pub(super) fn new(mut node: impl FnMut(usize) -> Node) -> Tree {
        let mut tree = Tree::default();
        // The nodes to come, and whose `others` points at each.
        let mut ahead = vec![(0, None)];
        while let Some((at, parent)) = ahead.pop() {
            let place = tree.features.len();
            if let Some(parent) = parent {
                tree.others[parent] = place as u32;
            }
            let (feature, value, missing) = match node(at) {
                Node::Leaf(value) => (LEAF, value, 0),
                Node::Split {
                    feature,
                    below,
                    yes,
                    no,
                    missing,
                } => {
                    ahead.push((no, Some(place)));
                    ahead.push((yes, None));
                    (feature as u32, below, u8::from(missing))
                }
            };
            tree.features.push(feature);
            tree.values.push(value);
            tree.others.push(0);
            tree.missing.push(missing);
        }
        tree
    }

    /// The value of the leaf that `row` `[f]` comes to.
    pub(super) fn score(&self, row: &[f64]) -> f64 {
        let mut at = 0;
        while self.features[at] != LEAF {
            let value = row[self.features[at] as usize];
            let first = if value.is_nan() {
                self.missing[at] == 1
            } else {
                value < self.values[at]
            };
            at = if first {
                at + 1
            } else {
                self.others[at] as usize
            };
        }
        self.values[at]
    }

    /// Refuses a tree that could lead outside itself, or outside a row of `f` columns.
    pub(super) fn check(&self, f: usize) -> Result<()> {
        let n = self.features.len();
        let lengths = [self.values.len(), self.others.len(), self.missing.len()];
        ensure!(
            n > 0 && lengths == [n; 3],
            "a tree's columns have other lengths than its {}",
            crate::output::counted(n, "node")
        );
        let sound = |at: usize| {
            let other = self.others[at] as usize;
            self.features[at] == LEAF
                || ((self.features[at] as usize) < f && at + 1 < n && at < other && other < n)
        };
        ensure!((0..n).all(sound), "a tree leads outside itself");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(feature: usize, below: f64, yes: usize, no: usize, missing: bool) -> Node {
        Node::Split {
            feature,
            below,
            yes,
            no,
            missing,
        }
    }

    fn tree() -> Tree {
        let nodes = [
            split(0, 1.0, 3, 1, true),
            split(1, 5.0, 2, 4, false),
            Node::Leaf(10.0),
            Node::Leaf(20.0),
            Node::Leaf(30.0),
        ];
        Tree::new(|at| nodes[at])
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
        .map(|row| tree().score(&row));
        assert_eq!(scores, [20.0, 20.0, 10.0, 30.0, 30.0]);
    }

    #[test]
    fn trees_that_lead_astray_are_refused() {
        tree().check(2).expect("sound");
        assert!(tree().check(1).is_err());
        assert!(Tree::default().check(1).is_err());
        for wrong in [0, 1, 99] {
            let mut tree = tree();
            tree.others[2] = wrong;
            assert!(tree.check(2).is_err(), "{wrong}");
        }
    }
}
