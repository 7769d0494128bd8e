//! The model of a pipeline that predicts classes: one of the classical models.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::boosting::{self, BoostedTrees};
use super::classifier::{Classifier, FitRun, TrainingSet};
use super::forest::{ClassForest, ForestKind};
use super::hyper_parameters::{HyperParameters, read_settings};
use super::logistic::LogisticRegression;
use super::network::MultilayerPerceptron;
use super::pipeline_kind::PipelineKind;
use super::solvers::objective::ElasticNetPenalty;
use super::svc::SupportVectorClassifier;

/// The model of a pipeline, as its file holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FittedModel {
    /// Of `lasso`, `ridge` and `enet`.
    Logistic(LogisticRegression),
    /// Of `svc`.
    Svc(SupportVectorClassifier),
    /// Of `xgb`.
    Boosted(BoostedTrees),
    /// Of `rf` and `et`.
    Forest(ClassForest),
    /// Of `nn`.
    Network(MultilayerPerceptron),
}

/// The hyper-parameters of the pipeline `enet`.
#[derive(Deserialize)]
struct ElasticNetSettings {
    #[serde(rename = "C")]
    c: f64,
    l1_ratio: f64,
}

/// The hyper-parameters of the pipelines `lasso` and `ridge`.
#[derive(Deserialize)]
struct OnePenaltySettings {
    #[serde(rename = "C")]
    c: f64,
}

impl FittedModel {
    /// Fits the model of the pipeline `kind` with its effective hyper-parameters.
    pub(super) fn fit(
        kind: PipelineKind,
        parameters: &HyperParameters,
        training: TrainingSet<'_>,
        run: FitRun<'_>,
    ) -> Result<FittedModel> {
        Ok(match kind {
            PipelineKind::Lasso | PipelineKind::Ridge | PipelineKind::ElasticNet => {
                let penalty = logistic_penalty(kind, parameters)?;
                FittedModel::Logistic(LogisticRegression::fit(penalty, training, run.stop)?)
            }
            PipelineKind::SupportVectors => {
                let settings = read_settings(parameters)?;
                FittedModel::Svc(SupportVectorClassifier::fit(settings, training, run)?)
            }
            PipelineKind::BoostedTrees => {
                let settings = read_settings(parameters)?;
                FittedModel::Boosted(boosting::fit_classes(&settings, training, run)?)
            }
            PipelineKind::RandomForest => {
                let settings = read_settings(parameters)?;
                FittedModel::Forest(ClassForest::fit(
                    ForestKind::Random,
                    settings,
                    training,
                    run,
                )?)
            }
            PipelineKind::ExtraTrees => {
                let settings = read_settings(parameters)?;
                FittedModel::Forest(ClassForest::fit(
                    ForestKind::ExtraTrees,
                    settings,
                    training,
                    run,
                )?)
            }
            PipelineKind::Network => {
                let settings = read_settings(parameters)?;
                FittedModel::Network(MultilayerPerceptron::fit_classes(&settings, training, run)?)
            }
        })
    }

    /// The model itself.
    pub(super) fn classifier(&self) -> &dyn Classifier {
        match self {
            FittedModel::Logistic(model) => model,
            FittedModel::Svc(model) => model,
            FittedModel::Boosted(model) => model,
            FittedModel::Forest(model) => model,
            FittedModel::Network(model) => model,
        }
    }
}

/// An L1 penalty alone for `lasso`, an L2 penalty alone for `ridge`, a mixture for `enet`.
fn logistic_penalty(kind: PipelineKind, parameters: &HyperParameters) -> Result<ElasticNetPenalty> {
    if kind == PipelineKind::ElasticNet {
        let ElasticNetSettings { c, l1_ratio } = read_settings(parameters)?;
        return Ok(ElasticNetPenalty { c, l1_ratio });
    }

    let OnePenaltySettings { c } = read_settings(parameters)?;
    let l1_ratio = if kind == PipelineKind::Lasso {
        1.0
    } else {
        0.0
    };
    Ok(ElasticNetPenalty { c, l1_ratio })
}
