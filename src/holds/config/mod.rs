//! The sections of the configuration about held jobs.

mod advice;
mod training;

pub use advice::{AdviceConfig, AdviceCost, EvaluationConfig, ParseConfig};
pub use training::TrainingConfig;
