//! A table → a fitted pipeline → probabilities of classes, or numbers.
//!
//! A pipeline fills what is missing, selects features, scales them and fits one classical model,
//! all of it on the rows of one table: [`fit_pipeline`]. Its hyper-parameters have scikit-learn's
//! and xgboost's names: [`check_hyper_parameters`].
//!
//! Columns and numbers → which columns matter for them: [`regression_importances`].

mod boosting;
mod classifier;
mod file;
mod fitted;
mod fitted_model;
mod forest;
mod hyper_parameters;
mod importances;
mod logistic;
mod network;
mod number_model;
mod pipeline_kind;
mod regressor;
mod scaler;
mod selection;
mod solvers;
mod statistics;
mod steps;
mod svc;
mod trees;

pub use file::PIPELINE_FILE;
pub use fitted::{FittedPipeline, LearnedRows, fit_pipeline};
pub use forest::{RegressionImportances, regression_importances};
pub use hyper_parameters::{
    HyperParameters, check_for_numbers, check_hyper_parameters, effective_hyper_parameters,
    hyper_parameter_names,
};
pub use importances::{ColumnImportances, ImportanceMeasure};
pub use number_model::best_constant;
pub use pipeline_kind::PIPELINE_NAMES;
pub use solvers::stop::FitStopped;
pub use steps::ValuesBeyond;
