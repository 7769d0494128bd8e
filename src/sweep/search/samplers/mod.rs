//! One file for each method that a trial's point is drawn by.

pub(super) mod grid;
pub(super) mod random;
pub(super) mod sobol;
pub(super) mod tpe;
