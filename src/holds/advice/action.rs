//! What to do with a held job.

use serde::{Deserialize, Serialize};

/// What to do with a held job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldAction {
    /// Release it as it is.
    Release,
    /// Release it later: a fault that passes made it fail.
    Later,
    /// Fix its fault, then release it.
    Fix,
    /// Remove it.
    Remove,
    /// Leave it held: somebody holds it on purpose, or it will be released by itself.
    Leave,
    /// Nothing that would be honest to say.
    None,
}

impl HoldAction {
    /// All of them, in the order in which people are told how many jobs get each.
    pub const COUNTED: [HoldAction; 6] = [
        HoldAction::Release,
        HoldAction::Fix,
        HoldAction::Remove,
        HoldAction::Later,
        HoldAction::Leave,
        HoldAction::None,
    ];

    /// The exit code of `advise` that stands for this action.
    pub fn exit_code(self) -> u8 {
        match self {
            HoldAction::Release => 0,
            HoldAction::Fix => 10,
            HoldAction::Remove => 20,
            HoldAction::Later | HoldAction::Leave => 30,
            HoldAction::None => 40,
        }
    }
}

/// How sure an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerFirmness {
    /// Such answers were right as often as `advice.precision` asks for.
    Firm,
    /// They were right as often as `advice.probable_precision` asks for.
    Probable,
}
