//! The actions that advice can recommend for a held job, and how certain a recommendation is.

use htcondor_holdreasons::rules::Action;
use serde::{Deserialize, Serialize};

use crate::config::AdviceConfig;

/// An action for a held job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HoldAction {
    /// Release it as it is.
    Release,
    /// Release one or two of the jobs that are held for its cause, and ask again.
    Probe,
    /// Release it later, because a transient fault makes it fail now.
    Later,
    /// Fix its fault, then release it.
    Fix,
    /// Remove it.
    Remove,
    /// Leave it held: a person holds it on purpose, or HTCondor will release it automatically.
    Leave,
    /// No advice, because the evidence is too weak.
    None,
}

impl From<Action> for HoldAction {
    fn from(action: Action) -> HoldAction {
        match action {
            Action::Fix => HoldAction::Fix,
            Action::Later => HoldAction::Later,
            Action::TryOne => HoldAction::Probe,
            Action::Leave => HoldAction::Leave,
        }
    }
}

impl HoldAction {
    /// All actions, in the order in which summaries list their counts.
    pub const COUNTED: [HoldAction; 7] = [
        HoldAction::Release,
        HoldAction::Probe,
        HoldAction::Fix,
        HoldAction::Remove,
        HoldAction::Later,
        HoldAction::Leave,
        HoldAction::None,
    ];

    /// The action as one word, as in the JSON document.
    pub fn word(self) -> &'static str {
        match self {
            HoldAction::Release => "release",
            HoldAction::Probe => "probe",
            HoldAction::Later => "later",
            HoldAction::Fix => "fix",
            HoldAction::Remove => "remove",
            HoldAction::Leave => "leave",
            HoldAction::None => "none",
        }
    }

    /// The exit code with which `advise` reports this action.
    pub fn exit_code(self) -> u8 {
        match self {
            HoldAction::Release => 0,
            HoldAction::Fix => 10,
            HoldAction::Remove => 20,
            HoldAction::Probe | HoldAction::Later | HoldAction::Leave => 30,
            HoldAction::None => 40,
        }
    }
}

/// The certainty of an answer. Sorts from the most certain one on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AnswerFirmness {
    /// Earlier answers with such a probability reached the precision `advice.precision`.
    Firm,
    /// Earlier answers with such a probability reached the precision `advice.probable_precision`.
    Probable,
    /// Earlier answers with such a probability did not reach a precision.
    Possible,
}

impl AnswerFirmness {
    /// Returns the certainty of answers whose share of right ones is `precision`.
    pub fn earned(precision: f64, settings: &AdviceConfig) -> AnswerFirmness {
        if precision >= settings.precision {
            AnswerFirmness::Firm
        } else if precision >= settings.probable_precision {
            AnswerFirmness::Probable
        } else {
            AnswerFirmness::Possible
        }
    }
}

/// Returns the display rank of an answer. The most urgent action has the lowest rank.
pub fn answer_rank(action: HoldAction, firmness: Option<AnswerFirmness>) -> u8 {
    let step = match action {
        HoldAction::Release => 0,
        HoldAction::Probe => 3,
        HoldAction::Fix => 6,
        HoldAction::Remove => 9,
        HoldAction::Later => 12,
        HoldAction::Leave => 15,
        HoldAction::None => 18,
    };
    let level = match firmness {
        None | Some(AnswerFirmness::Firm) => 0,
        Some(AnswerFirmness::Probable) => 1,
        Some(AnswerFirmness::Possible) => 2,
    };
    step + level
}

/// The answer in capitals, such as `PROBABLY REMOVE`.
pub fn answer_words(action: HoldAction, firmness: Option<AnswerFirmness>) -> String {
    let words = match action {
        HoldAction::Release => "RELEASE AS IT IS",
        HoldAction::Probe => "TRY ONE",
        HoldAction::Later => "RELEASE LATER",
        HoldAction::Fix => "FIX, THEN RELEASE",
        HoldAction::Remove => "REMOVE",
        HoldAction::Leave => "LEAVE IT HELD",
        HoldAction::None => "NO ADVICE",
    };
    match firmness {
        Some(AnswerFirmness::Probable) => format!("PROBABLY {words}"),
        Some(AnswerFirmness::Possible) => format!("POSSIBLY {words}"),
        _ => words.to_owned(),
    }
}
