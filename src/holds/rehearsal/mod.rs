//! Rehearsal: replays a log as if the program had been used. At moments through the log, it learns
//! from what was known, asks about every job that is held, and settles each answer by what
//! happened, as of the second of the question.

mod hold_truth;
mod rehearse;
mod settled;
mod tally;

pub use hold_truth::HoldTruth;
pub use rehearse::{Rehearsal, RehearsalSettings, RehearsedAnswer, rehearse};
pub use settled::{AnswerRow, RehearsedHold, SettledAnswers};
pub use tally::{KindTally, Proportion, RehearsalTally, StrategyTally};
