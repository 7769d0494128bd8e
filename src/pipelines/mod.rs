//! A table → a fitted pipeline → probabilities of classes.
//!
//! A pipeline fills what is missing, selects features, scales them and fits one classical model, all of it on the rows of one
//! table: [`fit`]. Its hyper-parameters have scikit-learn's and xgboost's names: [`check`].

mod fitted;
mod logistic;
mod matrix;
mod model;
mod parameters;
mod selection;
mod steps;
mod stop;

pub use fitted::{FILE, Fitted, fit};
pub use parameters::{PIPELINES, Parameters, check, effective, names};
pub use stop::Stopped;
