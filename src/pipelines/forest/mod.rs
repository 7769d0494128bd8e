//! Random forests and extremely randomised trees for classes and numbers, and the importances of
//! their columns.
//!
//! A tree of a random forest learns from rows drawn with replacement, and takes the split with the
//! largest gain (Breiman, Machine Learning 45, 2001). An extremely randomised tree (Geurts, Ernst
//! and Wehenkel, Machine Learning 63, 2006) learns from all rows, and splits each column at a
//! random boundary between two of its bins.

mod class_forest;
mod grown_forest;
mod number_forest;
mod quantile_leaves;
mod regression_importances;

pub(super) use class_forest::{ClassForest, forest_importances};
pub(super) use grown_forest::ForestKind;
pub(super) use number_forest::{NumberForest, number_forest_importances};
pub use regression_importances::{RegressionImportances, regression_importances};
