//! Decides what to recommend for each job that is held at one moment: by its hold code, by what was
//! learned, and by the outcomes of other jobs with the same cause.

mod action;
mod answer_rules;
mod asked_answers;
mod asked_causes;
mod code_answer;
mod codes;
mod failure_rules;
mod held_answer;
mod held_evidence;
mod release_rules;
#[cfg(test)]
mod test_evidence;

pub use action::{AnswerFirmness, HoldAction, answer_rank, answer_words};
pub use answer_rules::CODE_RULE;
pub(crate) use answer_rules::held_answer;
pub use asked_answers::AskedAnswers;
pub(crate) use asked_causes::hold_cause;
pub use asked_causes::{ProbeCause, probe_count};
pub use codes::{HoldRule, Remedy, code_meaning, code_rule, rule_without_odds};
pub use held_answer::HeldAnswer;
pub(crate) use held_evidence::held_evidence;
pub use held_evidence::{
    CauseEvidence, HeldEvidence, HoldEvidence, LearnedEvidence, OriginEvidence,
};
