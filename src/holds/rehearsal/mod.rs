//! Rehearsal: replays a log as if the program had been used. At moments through the log, it learns
//! from what was known, asks about every job that is held, and settles each answer by what
//! happened, as of the second of the question.

mod after_probes;
mod answer_scores;
mod known_outcome;
mod member_tally;
mod rehearsal_dir;
mod rehearse;
mod rehearsed_answer;
mod schedule;
mod settled;
mod tally;
mod tally_file;

pub use after_probes::score_after_probes;
pub use answer_scores::{AnswerScores, ScoredMoments, score_answers};
pub use known_outcome::KnownOutcome;
pub use member_tally::{LossChange, MemberTally, QuestionScores};
pub use rehearsal_dir::RehearsalDir;
pub use rehearse::{Rehearsal, rehearse};
pub use rehearsed_answer::RehearsedAnswer;
pub use schedule::{RehearsalSettings, RehearsalTimes};
pub use settled::{AnswerRow, RehearsedHold, SettledAnswers};
pub use tally::{KindTally, Proportion, RehearsalTally, StrategyTally};
pub use tally_file::{REHEARSAL_FILE, REHEARSAL_SCHEMA_VERSION};
