//! The classical pipelines, by name.

/// The names of the pipelines, in the order of `PipelineKind::ALL`.
pub const PIPELINE_NAMES: [&str; 7] = ["lasso", "ridge", "enet", "svc", "xgb", "rf", "nn"];

/// Which model a pipeline fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PipelineKind {
    /// `lasso`: logistic regression with an L1 penalty.
    Lasso,
    /// `ridge`: logistic regression with an L2 penalty.
    Ridge,
    /// `enet`: logistic regression with an elastic net penalty.
    ElasticNet,
    /// `svc`: a support vector machine.
    SupportVectors,
    /// `xgb`: gradient boosted trees.
    BoostedTrees,
    /// `rf`: a random forest.
    RandomForest,
    /// `nn`: a multilayer perceptron.
    Network,
}

impl PipelineKind {
    /// All pipelines.
    pub(super) const ALL: [PipelineKind; 7] = [
        PipelineKind::Lasso,
        PipelineKind::Ridge,
        PipelineKind::ElasticNet,
        PipelineKind::SupportVectors,
        PipelineKind::BoostedTrees,
        PipelineKind::RandomForest,
        PipelineKind::Network,
    ];

    /// The pipeline called `name`, if there is one.
    pub(super) fn from_name(name: &str) -> Option<PipelineKind> {
        let place = PIPELINE_NAMES.iter().position(|known| *known == name)?;
        Some(PipelineKind::ALL[place])
    }
}
