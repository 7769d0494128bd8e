//! The model of a pipeline that predicts numbers: one variant per kind of model that can.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::boosting::{self, BoostedTrees};
use super::classifier::FitRun;
use super::forest::{ForestKind, NumberForest};
use super::hyper_parameters::{HyperParameters, read_settings};
use super::linear::LinearRegression;
use super::network::NumberNetwork;
use super::penalty::linear_penalty;
use super::pipeline_kind::PipelineKind;
use super::regressor::{NumberTrainingSet, Regressor};
use super::solvers::labels::NumberLabels;
use poolcast_tables::RowNumbers;

/// A fitted regression model, as stored in the pipeline's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NumberModel {
    /// Model of `lasso`, `ridge` and `enet`.
    Linear(LinearRegression),
    /// Model of `xgb`.
    Boosted(BoostedTrees),
    /// Model of `rf` and `et`.
    Forest(NumberForest),
    /// Model of `nn`.
    Network(NumberNetwork),
}

/// Returns the best prediction without features: the constant with the smallest loss on `numbers`,
/// which is their mean or a quantile.
pub fn best_constant(numbers: &RowNumbers) -> f64 {
    boosting::base_number(NumberLabels {
        y: &numbers.y,
        weights: &vec![1.0; numbers.y.len()],
        loss: numbers.loss,
    })
}

impl NumberModel {
    /// Fits the model of the pipeline `kind` with its effective hyper-parameters.
    pub(super) fn fit(
        kind: PipelineKind,
        parameters: &HyperParameters,
        training: NumberTrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<NumberModel> {
        let forest_kind = match kind {
            PipelineKind::BoostedTrees => {
                let settings = read_settings(parameters)?;
                let fitted = boosting::fit_numbers(&settings, training, run)?;
                return Ok(NumberModel::Boosted(fitted));
            }
            PipelineKind::Network => {
                let settings = read_settings(parameters)?;
                let fitted = NumberNetwork::fit(&settings, training, run)?;
                return Ok(NumberModel::Network(fitted));
            }
            PipelineKind::Lasso | PipelineKind::Ridge | PipelineKind::ElasticNet => {
                let penalty = linear_penalty(kind, parameters)?;
                let fitted = LinearRegression::fit(penalty, training, run.stop)?;
                return Ok(NumberModel::Linear(fitted));
            }
            PipelineKind::RandomForest => ForestKind::Random,
            PipelineKind::ExtraTrees => ForestKind::ExtraTrees,
            PipelineKind::SupportVectors => bail!("the pipeline cannot predict numbers"),
        };
        let settings = read_settings(parameters)?;
        let fitted = NumberForest::fit(forest_kind, settings, training, run)?;
        Ok(NumberModel::Forest(fitted))
    }

    /// Returns the model as a trait object.
    pub(super) fn regressor(&self) -> &dyn Regressor {
        match self {
            NumberModel::Linear(model) => model,
            NumberModel::Boosted(model) => model,
            NumberModel::Forest(model) => model,
            NumberModel::Network(model) => model,
        }
    }
}
