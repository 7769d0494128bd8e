//! The sections of the configuration about held jobs.

mod advice;
mod preprocessing;
mod training;

pub use advice::{AdviceConfig, AdviceCost, EvaluationConfig, ParseConfig};
pub use preprocessing::PreprocessingConfig;
pub use training::TrainingConfig;
