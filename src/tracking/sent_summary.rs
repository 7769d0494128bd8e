//! What a sender has done, as people and programs are told.

use serde::Serialize;

/// What a sender has done.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SentSummary {
    /// Where the runs are.
    pub to: String,
    /// Requests, each try counted.
    pub requests: u64,
    /// Runs of which something was sent.
    pub runs: usize,
    /// Epochs that were sent.
    pub epochs: usize,
    /// Runs that have ended and were sent to their end, now or earlier.
    pub ended: usize,
    /// Runs that go on.
    pub running: usize,
    /// Files that were sent with the best run.
    pub files: usize,
    /// What people should know.
    pub notes: Vec<String>,
}

impl SentSummary {
    /// Adds what people should know, once.
    pub(super) fn add_note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
