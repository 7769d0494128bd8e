//! The sections of the configuration about held jobs.

mod advice;
mod answer_member;
mod network_settings;
mod training;
mod training_settings;

pub use advice::{AdviceConfig, AdviceCost, EvaluationConfig, ParseConfig};
pub use answer_member::{AnswerMember, default_members};
pub use network_settings::NetworkSettings;
pub use training::TrainingConfig;
pub use training_settings::TrainingSettings;
