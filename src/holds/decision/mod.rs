//! Decides what to recommend for each job that is held at one moment: by its hold code, by what was
//! learned, and by the outcomes of other jobs with the same cause.

mod action;
mod asked_answers;
mod cause_evidence;
mod codes;
mod held_answer;
mod held_evidence;

pub use action::{AnswerFirmness, HoldAction, answer_rank, answer_words};
pub use asked_answers::AskedAnswers;
pub(crate) use cause_evidence::hold_cause;
pub use cause_evidence::{ProbeCause, probe_count};
pub use codes::{
    HoldRule, Remedy, code_meaning, code_rule, reason_names_file, reason_names_host,
    rule_without_odds,
};
pub use held_answer::HeldAnswer;
pub(crate) use held_answer::held_answer;
pub use held_evidence::HeldEvidence;
pub(crate) use held_evidence::held_evidence;
