//! Columns and classes or numbers → a random forest or extremely randomised trees, and what each
//! column does for them.
//!
//! A tree of a random forest learns from rows drawn with replacement, and splits where that gains
//! most (Breiman, Machine Learning 45, 2001). One of extremely randomised trees (Geurts, Ernst and
//! Wehenkel, Machine Learning 63, 2006) learns from all rows, and each column is split at a place
//! that is drawn: between two of its bins.

mod class_forest;
mod grown_forest;
mod number_forest;
mod quantile_leaves;
mod regression_importances;

pub(super) use class_forest::{ClassForest, forest_importances};
pub(super) use grown_forest::ForestKind;
pub(super) use number_forest::{NumberForest, number_forest_importances};
pub use regression_importances::{RegressionImportances, regression_importances};
