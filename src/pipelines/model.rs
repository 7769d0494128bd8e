//! What every classical model does, and the one a pipeline holds.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::boosting::Boosted;
use super::forest::Forest;
use super::logistic::Logistic;
use super::matrix::Matrix;
use super::network::Network;
use super::svc::Svc;

/// A fitted model of `k` classes over `f` columns.
pub(super) trait Model {
    /// The probability of each class, row by row: `[n, k]`.
    fn probabilities(&self, x: &Matrix) -> Vec<f64>;

    /// Refuses what no fit leaves, as a file from elsewhere may hold it.
    fn check(&self, f: usize, k: usize) -> Result<()>;
}

/// The model of a pipeline, as its file holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnyModel {
    /// Of `lasso` and `enet`.
    Logistic(Logistic),
    /// Of `svc`.
    Svc(Svc),
    /// Of `xgb`.
    Boosted(Boosted),
    /// Of `rf`.
    Forest(Forest),
    /// Of `nn`.
    Network(Network),
}

impl AnyModel {
    /// The model itself.
    pub(super) fn get(&self) -> &dyn Model {
        match self {
            AnyModel::Logistic(model) => model,
            AnyModel::Svc(model) => model,
            AnyModel::Boosted(model) => model,
            AnyModel::Forest(model) => model,
            AnyModel::Network(model) => model,
        }
    }
}
