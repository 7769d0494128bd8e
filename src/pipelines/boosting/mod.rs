//! Columns and classes or numbers → gradient boosted trees.
//!
//! Rounds are those of xgboost: a tree a round on the gradient of the loss. More than two classes
//! have a tree for each class a round, on the gradient of the softmax, as in xgboost's
//! `multi:softprob`.

mod boosted_trees;
mod class_rounds;
mod number_rounds;
mod rounds;

pub(super) use boosted_trees::BoostedTrees;
pub(super) use class_rounds::fit_classes;
pub(super) use number_rounds::{base_number, fit_numbers};
