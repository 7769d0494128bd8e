//! One line of an examination of a machine.

use serde::Serialize;

/// State of one thing that was examined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FindingState {
    /// Nothing is to be done.
    Good,
    /// Something is to be done.
    Bad,
    /// A fact that is neither good nor bad.
    Fact,
}

/// The state of one thing that was examined, and what to do if it is bad.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Name of the thing.
    pub check: &'static str,
    /// Its state.
    pub state: FindingState,
    /// A description of what was found. It may contain any text that a log or a program has.
    pub words: String,
    /// A command to type, or a setting for a configuration; absent if nothing is to be done.
    pub todo: Option<String>,
}

impl Finding {
    /// Nothing is to be done.
    pub fn good(check: &'static str, words: impl Into<String>) -> Finding {
        Finding {
            check,
            state: FindingState::Good,
            words: words.into(),
            todo: None,
        }
    }

    /// Something is to be done: `todo`.
    pub fn bad(check: &'static str, words: impl Into<String>, todo: impl Into<String>) -> Finding {
        Finding {
            check,
            state: FindingState::Bad,
            words: words.into(),
            todo: Some(todo.into()),
        }
    }

    /// A fact that is neither good nor bad.
    pub fn fact(check: &'static str, words: impl Into<String>) -> Finding {
        Finding {
            state: FindingState::Fact,
            ..Finding::good(check, words)
        }
    }
}
