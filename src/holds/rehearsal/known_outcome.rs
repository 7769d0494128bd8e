//! The truth about a hold at the second of a question, and the answers that it makes right.

use serde::Serialize;

use crate::answers::{HoldHistory, PastHold, label_later, settled_outcome};
use crate::decision::HoldAction;

/// What is known about one hold at the second of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct KnownOutcome {
    /// True if the job would have succeeded, released at that second; `None` if nobody knows.
    pub succeeds_now: Option<bool>,
    /// True if the fault passes without a repair; `None` if nobody knows.
    pub is_passing: Option<bool>,
    /// True if only jobs that a person released show that the fault passes: that person may have repaired each
    /// of them before.
    #[serde(skip)]
    pub is_perhaps_repaired: bool,
}

impl KnownOutcome {
    /// Returns what the log shows at `known_ms` about a question asked at `asked_ms`: the outcome
    /// of the job's own release if that followed soon, or else of another job with the same cause
    /// at about that time, never of a release that came much later.
    pub(crate) fn known_at(
        history: &HoldHistory<'_>,
        hold: &PastHold,
        asked_ms: i64,
        known_ms: i64,
    ) -> KnownOutcome {
        let later = label_later(history, hold, known_ms);
        KnownOutcome {
            succeeds_now: settled_outcome(history, hold, asked_ms, known_ms),
            is_passing: later.map(|label| label.is_success),
            is_perhaps_repaired: later.is_some_and(|label| label.is_success && label.is_by_hand()),
        }
    }

    /// Returns true if `action` was right; `None` if that is unknown. `release` and `probe` are
    /// right if the job would have succeeded at that second, `later` if the fault passes, and `fix`
    /// and `remove` if it does not. A success after what may be the repair that `fix` asks for is not known to
    /// refute it.
    pub(crate) fn is_right(self, action: HoldAction) -> Option<bool> {
        match action {
            HoldAction::Release | HoldAction::Probe => self.succeeds_now,
            HoldAction::Later => self.is_passing,
            HoldAction::Fix if self.is_perhaps_repaired => None,
            HoldAction::Fix | HoldAction::Remove => {
                let passes = self.is_passing.or(self.succeeds_now);
                passes.map(|passes| !passes)
            }
            HoldAction::Leave | HoldAction::None => None,
        }
    }
}
