//! Sampling methods, one per file.

pub(super) mod grid;
pub(super) mod random;
pub(super) mod sobol;
pub(super) mod tpe;
