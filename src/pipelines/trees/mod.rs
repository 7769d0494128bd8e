//! Decision trees, grown on histograms of the rows' gradients.
//!
//! Each column is divided into at most 256 bins once. A split then only needs the sum of gradients
//! for each bin, which one pass over the rows of a node gives. Random forests and gradient boosting
//! differ in the gradients, and in the columns that a split may choose from.

pub(super) mod bins;
pub(super) mod grow;
pub(super) mod histogram;
pub(super) mod sampled_rows;
pub(super) mod split;
pub(super) mod tree;
