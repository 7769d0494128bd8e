//! The model of a pipeline that predicts classes: one variant per kind of model.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::boosting::{self, BoostedTrees};
use super::classifier::{Classifier, FitRun, TrainingSet};
use super::forest::{ClassForest, ForestKind};
use super::hyper_parameters::{HyperParameters, read_settings};
use super::logistic::LogisticRegression;
use super::network::MultilayerPerceptron;
use super::penalty::linear_penalty;
use super::pipeline_kind::PipelineKind;
use super::svc::SupportVectorClassifier;

/// A fitted classification model, as stored in the pipeline's file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum FittedModel {
    /// Model of `lasso`, `ridge` and `enet`.
    Logistic(LogisticRegression),
    /// Model of `svc`.
    Svc(SupportVectorClassifier),
    /// Model of `xgb`.
    Boosted(BoostedTrees),
    /// Model of `rf` and `et`.
    Forest(ClassForest),
    /// Model of `nn`.
    Network(MultilayerPerceptron),
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
                let penalty = linear_penalty(kind, parameters)?;
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

    /// Returns the model as a trait object.
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
