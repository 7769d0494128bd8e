//! What every classical model does, and the one a pipeline holds.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::boosting::Boosted;
use super::forest::Forest;
use super::importances::ColumnImportances;
use super::logistic::Logistic;
use super::matrix::Matrix;
use super::network::Network;
use super::parameters::Settings;
use super::stop::Stop;
use super::svc::Svc;

/// What a model is fitted to besides its columns, and how.
#[derive(Clone, Copy)]
pub(super) struct Fitting<'a> {
    /// The hyper-parameters.
    pub(super) settings: Settings<'a>,
    /// The class of each row `[n]`, below `k`.
    pub(super) y: &'a [u32],
    /// How many classes there are.
    pub(super) k: usize,
    /// Of every random choice.
    pub(super) seed: u64,
    /// Asked between iterations, trees and epochs.
    pub(super) stop: Stop<'a>,
}

/// A fitted model of `k` classes over `f` columns.
pub(super) trait Model {
    /// The probability of each class, row by row: `[n, k]`.
    fn probabilities(&self, x: &Matrix) -> Vec<f64>;

    /// What the model makes of each of its `f` columns; none where that cannot be read off it.
    fn importances(&self, f: usize) -> Option<ColumnImportances>;

    /// Refuses what no fit leaves, as a file from elsewhere may hold it.
    fn check(&self, f: usize, k: usize) -> Result<()>;
}

/// The model of a pipeline, as its file holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AnyModel {
    /// Of `lasso`, `ridge` and `enet`.
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
