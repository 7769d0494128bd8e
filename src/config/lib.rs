//! The mechanism of the configuration: merges layers of YAML, the environment and flags, checks
//! ranges, and has the hyper-parameters and the distributions that a sweep draws from. Each section
//! of the configuration is a type of the crate that uses it.

mod condition;
mod defaults;
mod distribution;
mod distribution_form;
mod distribution_schema;
pub mod layers;
mod metric;
mod nearest;
mod parameter;
mod parameter_range;
pub mod parameters;
mod range;
mod resolved;
mod sample_words;
mod search_parameters;
mod secrets;
mod states;
mod sweep_metrics;
mod threshold;
mod training_keys;
mod wait_model_words;
pub mod yaml;

pub use condition::Condition;
pub use defaults::DEFAULT;
pub use distribution::Distribution;
pub use metric::{Goal, Metric, MetricName, PredictionTask};
pub use nearest::nearest;
pub use parameter::Parameter;
pub use parameter_range::{ParameterRange, quote_words};
pub use parameters::{
    HyperParameter, NetworkParameters, ParameterFlag, SampleParameters, TrialParameters,
    WaitModelParameters,
};
pub use range::check_range;
pub use resolved::{FILE, ResolvedConfig};
pub use sample_words::{
    ContextChoice, FeatureGroup, HoldCycles, LabelKind, SplitClusters, SplitMethod, Vocabulary,
    WindowPosition,
};
pub use search_parameters::SearchParameters;
pub use states::{StateEvent, StateEvents};
pub use sweep_metrics::SweepMetrics;
pub use threshold::Threshold;
pub use training_keys::TrainingKeys;
pub use wait_model_words::{WaitModelName, WaitModelSize, WaitModelTarget};
