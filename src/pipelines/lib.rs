//! Classical models: fits a pipeline to a table, and predicts class probabilities or numbers.
//!
//! [`fit_pipeline`] fills missing values, selects features, scales them and fits one classical
//! model, all on the rows of one table. [`check_hyper_parameters`] checks the hyper-parameters of a
//! pipeline, which have scikit-learn's and xgboost's names. [`regression_importances`] finds the
//! columns that matter for a number.

mod boosting;
mod classifier;
mod file;
mod fitted;
mod fitted_model;
mod forest;
mod hyper_parameters;
mod importances;
mod linear;
mod logistic;
mod network;
mod number_model;
mod penalty;
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
