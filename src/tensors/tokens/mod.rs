//! Outcome tokens: the last things that happened to jobs that share something with a held job, as
//! known at any prediction time. A model reads them as a sequence.

mod keys;
mod outcome_state;
mod reason_words;
mod token_choice;
mod token_history;
mod token_rows;

pub use token_history::TokenHistory;
pub(crate) use token_rows::QUESTION_BYTES;
pub use token_rows::{StoredTokens, TokenRows};
