//! A sender's summary of its work, for people and programs.

use serde::Serialize;

/// A sender's summary of its work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SentSummary {
    /// Address of the runs on the tracker: the server, with the entity and the project, or with the
    /// experiment.
    pub to: String,
    /// Requests, with retries counted.
    pub requests: u64,
    /// Runs with new data.
    pub runs: usize,
    /// Epochs sent.
    pub epochs: usize,
    /// Runs that were sent completely after their end, now or earlier.
    pub ended: usize,
    /// Runs that have not ended.
    pub running: usize,
    /// Files sent with the best run.
    pub files: usize,
    /// Notes for the user, in sentences.
    pub notes: Vec<String>,
}

impl SentSummary {
    /// Adds a note for the user, unless it is there already.
    pub(crate) fn add_note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
