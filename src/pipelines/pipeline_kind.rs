//! The classical pipelines by name, and their hyper-parameters.

use poolcast_config::HyperParameter;
use poolcast_config::parameters::{
    BOOSTED_TREES, ELASTIC_NET, FOREST, LASSO, OF_ALL_PIPELINES, PERCEPTRON, RIDGE, SUPPORT_VECTORS,
};
use poolcast_tables::NumberLoss;

/// Names of the pipelines, in the order of `PipelineKind::ALL`.
pub const PIPELINE_NAMES: [&str; 8] = ["lasso", "ridge", "enet", "svc", "xgb", "rf", "et", "nn"];

/// Kind of model that a pipeline fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PipelineKind {
    /// `lasso`: logistic or linear regression with an L1 penalty.
    Lasso,
    /// `ridge`: logistic or linear regression with an L2 penalty.
    Ridge,
    /// `enet`: logistic or linear regression with an elastic net penalty.
    ElasticNet,
    /// `svc`: a support vector machine.
    SupportVectors,
    /// `xgb`: gradient boosted trees.
    BoostedTrees,
    /// `rf`: a random forest.
    RandomForest,
    /// `et`: extremely randomised trees.
    ExtraTrees,
    /// `nn`: a multilayer perceptron.
    Network,
}

impl PipelineKind {
    /// All pipelines.
    pub(super) const ALL: [PipelineKind; 8] = [
        PipelineKind::Lasso,
        PipelineKind::Ridge,
        PipelineKind::ElasticNet,
        PipelineKind::SupportVectors,
        PipelineKind::BoostedTrees,
        PipelineKind::RandomForest,
        PipelineKind::ExtraTrees,
        PipelineKind::Network,
    ];

    /// Returns the pipeline named `name`, if there is one.
    pub(super) fn from_name(name: &str) -> Option<PipelineKind> {
        let place = PIPELINE_NAMES.iter().position(|known| *known == name)?;
        Some(PipelineKind::ALL[place])
    }

    /// Returns true if it can predict numbers by minimising `loss`, as well as classes.
    pub(super) fn predicts_numbers(self, loss: NumberLoss) -> bool {
        match self {
            PipelineKind::Lasso | PipelineKind::Ridge | PipelineKind::ElasticNet => {
                loss == NumberLoss::Squared
            }
            PipelineKind::SupportVectors => false,
            PipelineKind::BoostedTrees
            | PipelineKind::RandomForest
            | PipelineKind::ExtraTrees
            | PipelineKind::Network => true,
        }
    }

    /// Returns all hyper-parameters of the pipeline: first of its model, then of the steps before it.
    pub(super) fn hyper_parameters(self) -> impl Iterator<Item = &'static HyperParameter> {
        let own = match self {
            PipelineKind::Lasso => LASSO,
            PipelineKind::Ridge => RIDGE,
            PipelineKind::ElasticNet => ELASTIC_NET,
            PipelineKind::SupportVectors => SUPPORT_VECTORS,
            PipelineKind::BoostedTrees => BOOSTED_TREES,
            PipelineKind::RandomForest | PipelineKind::ExtraTrees => FOREST,
            PipelineKind::Network => PERCEPTRON,
        };
        own.iter().chain(OF_ALL_PIPELINES)
    }
}
