//! What to do with a held job.

use serde::Serialize;

/// What to do with a held job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldAction {
    /// Release it as it is.
    Release,
    /// Fix its fault, then release it.
    Fix,
    /// Remove it.
    Remove,
    /// Wait: it will be released, or its owner holds it on purpose.
    Wait,
    /// Nothing that would be honest to say.
    None,
}

impl HoldAction {
    /// The exit code of `advise` that stands for this action.
    pub fn exit_code(self) -> u8 {
        match self {
            HoldAction::Release => 0,
            HoldAction::Fix => 10,
            HoldAction::Remove => 20,
            HoldAction::Wait => 30,
            HoldAction::None => 40,
        }
    }
}
