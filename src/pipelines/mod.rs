//! A table → a fitted pipeline → probabilities of classes.
//!
//! A pipeline fills what is missing, selects features, scales them and fits one classical model, all of it on the rows of one
//! table: [`fit`]. Its hyper-parameters have scikit-learn's and xgboost's names: [`check`].

mod boosting;
mod fitted;
mod forest;
mod importances;
mod kernel;
mod logistic;
mod matrix;
mod model;
mod network;
mod newton;
mod parameters;
mod platt;
mod selection;
mod smo;
mod steps;
mod stop;
mod svc;
mod svd;
mod tree;

pub use fitted::{FILE, Fitted, fit};
pub use importances::{Importances, Measure};
pub use parameters::{PIPELINES, Parameters, check, effective, names};
pub use stop::Stopped;
