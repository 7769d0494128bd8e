//! Configuration: merges layers of YAML, the environment and flags into one checked [`Config`],
//! which is saved beside every artefact.

mod configuration;
mod dag;
mod data;
mod defaults;
mod distribution;
mod distribution_form;
mod distribution_schema;
mod layers;
mod metric;
mod nearest;
mod parameter;
mod parameter_range;
pub mod parameters;
mod pipelines;
mod preprocessing;
mod provision;
mod range;
mod sample_words;
mod search_parameters;
mod secrets;
mod states;
mod sweep;
mod threshold;
mod tracker;
mod training;
mod wait_model;
pub mod yaml;

pub use configuration::{
    AdviceConfig, AdviceCost, Config, EvaluationConfig, FILE, MlflowConfig, ParseConfig,
    TrialSource, WandbConfig,
};
pub use dag::{DagConfig, SharedInputs, SubmitCommand, SubmitCommands, SubmitConfig};
pub use data::{CrossValidation, DataConfig, EVALUATE, Folds, PredictionTask, WHOLE};
pub use defaults::DEFAULT;
pub use distribution::Distribution;
pub use metric::{Goal, Metric, MetricName};
pub use nearest::nearest;
pub use parameter::{Parameter, whole};
pub use parameter_range::{ParameterRange, quote_words};
pub use parameters::{
    HyperParameter, NetworkParameters, ParameterFlag, SampleParameters, TrialParameters,
};
pub use pipelines::{MAX_TRIALS, PipelineSpace, PipelineSpaces, TrialOrder};
pub use preprocessing::PreprocessingConfig;
pub use provision::{CostRatio, NodeCount, ProvisionConfig, SchedulerKind};
pub use sample_words::{
    ContextChoice, FeatureGroup, HoldCycles, LabelKind, SplitClusters, SplitMethod, Vocabulary,
    WindowPlace,
};
pub use search_parameters::SearchParameters;
pub use states::{StateEvent, StateEvents};
pub use sweep::{Asha, EarlyTerminate, GivenSweep, Hyperband, Method, SweepConfig};
pub use threshold::Threshold;
pub use tracker::Tracker;
pub use training::{EngineChoice, TrainingConfig};
pub use wait_model::{
    WaitModelConfig, WaitModelName, WaitModelParameters, WaitModelSize, WaitModelTarget,
};
