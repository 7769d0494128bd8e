//! Held jobs, a model and rules → what to do with each, and why. Never acts; prints commands.

mod action;
mod codes;
mod decide;
mod held_jobs;
mod job_advice;
mod judge;
mod remedy;
mod wording;

pub use action::{AnswerFirmness, HoldAction};
pub use codes::{HoldRule, code_meaning, code_rule};
pub use held_jobs::{JobSelection, asking_words};
pub use job_advice::{AdviceGround, JobAdvice, LikeHoldKind, LikeHolds, ModelSkill};
pub use judge::{advise, exit_code};
pub use remedy::Remedy;
pub use wording::advice_text;
