//! The sections of the configuration about held jobs.

mod advice;
mod answer_member;
mod training;

pub use advice::{AdviceConfig, AdviceCost, EvaluationConfig, ParseConfig};
pub use answer_member::{AnswerMember, default_members};
pub use training::TrainingConfig;
