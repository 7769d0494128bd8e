//! A table → a fitted pipeline → probabilities of classes.
//!
//! A pipeline fills what is missing, selects features, scales them and fits one classical model, all of it on the rows of one
//! table: [`fit_pipeline`]. Its hyper-parameters have scikit-learn's and xgboost's names: [`check_hyper_parameters`].

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

pub use fitted::{FittedPipeline, PIPELINE_FILE, fit_pipeline};
pub use importances::{ColumnImportances, ImportanceMeasure};
pub use parameters::{
    HyperParameters, PIPELINE_NAMES, check_hyper_parameters, effective_hyper_parameters,
    hyper_parameter_names,
};
pub use stop::FitStopped;
