//! Sampling methods, one per file.

pub(super) mod grid;
pub(super) mod random;
pub(super) mod sobol;
#[cfg(test)]
mod test_functions;
pub(super) mod tpe;
