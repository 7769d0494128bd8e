//! Numerical methods of the models. They use matrices, labels and tolerances, but no
//! hyper-parameters or files.

mod cholesky;
pub(super) mod coupling;
mod fit_point;
pub(super) mod kernel;
pub(super) mod labels;
pub(super) mod least_squares;
pub(super) mod logits;
pub(super) mod matrix;
pub(super) mod newton;
pub(super) mod objective;
pub(super) mod platt;
mod quadratic;
mod quasi_newton;
pub(super) mod smo;
pub(super) mod stop;
pub(super) mod svd;
