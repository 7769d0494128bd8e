//! Gradient boosted trees: columns and classes or numbers → boosted trees.
//!
//! The rounds follow xgboost: each round grows a tree on the gradient of the loss. With more than
//! two classes, each round grows one tree per class on the gradient of the softmax, as in xgboost's
//! `multi:softprob`.

mod boosted_trees;
mod class_rounds;
mod number_rounds;
mod rounds;

pub(super) use boosted_trees::BoostedTrees;
pub(super) use class_rounds::fit_classes;
pub(super) use number_rounds::{base_number, fit_numbers};
