//! A cache of what was sent, in a small file beside the runs. With it, later calls need fewer
//! requests; without it, the sender asks the server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::sent_summary::SentSummary;
use poolcast_base::{files, manifest};
use poolcast_sweep::config::Tracker;

/// Version of the file format.
const VERSION: u32 = 2;

/// Runs sent completely between two writes of the file.
const RUNS_PER_NOTE: usize = 50;

/// Size limit of a file that is read, in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// The content of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct NoteBody {
    format_version: u32,
    /// The server and the project.
    to: String,
    /// The sweep's id on the server, by its mark; empty for a tracker without sweeps.
    sweeps: BTreeMap<String, String>,
    /// Runs that were sent completely after their end: trial numbers by run id. The number is 0 for
    /// a single run.
    ended: BTreeMap<String, usize>,
    /// Digests of the files that were sent with runs, by run id.
    files: BTreeMap<String, String>,
}

/// The cache of one directory for one project of a tracker's server, in `tracked-TRACKER.json`.
#[derive(Debug)]
pub(crate) struct SentNote {
    path: PathBuf,
    body: NoteBody,
    is_changed: bool,
    /// Runs added to `ended` since the last write.
    unwritten: usize,
    has_failed: bool,
}

impl SentNote {
    /// Reads the file in `dir` for the project `to` of `tracker`. A file that cannot be read counts
    /// as empty.
    pub(crate) fn read(dir: &Path, tracker: Tracker, to: &str) -> SentNote {
        let path = dir.join(format!("tracked-{}.json", tracker.word()));
        let text = files::read_regular(&path, MAX_BYTES).unwrap_or_default();
        let known: Option<NoteBody> = serde_json::from_slice(&text).ok();
        let known = known.filter(|body| body.format_version == VERSION && body.to == to);
        let new = || NoteBody {
            format_version: VERSION,
            to: to.to_owned(),
            sweeps: BTreeMap::new(),
            ended: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        SentNote {
            path,
            body: known.unwrap_or_else(new),
            is_changed: false,
            unwritten: 0,
            has_failed: false,
        }
    }

    /// Returns the id of the sweep with this `mark`.
    pub(crate) fn sweep(&self, mark: &str) -> Option<&str> {
        self.body.sweeps.get(mark).map(String::as_str)
    }

    /// Records the id of the sweep with this `mark`.
    pub(crate) fn set_sweep(&mut self, mark: &str, id: &str) {
        self.body.sweeps.insert(mark.to_owned(), id.to_owned());
        self.is_changed = true;
    }

    /// Returns true if the run of this id was sent completely after its end.
    pub(crate) fn has_ended(&self, run_id: &str) -> bool {
        self.body.ended.contains_key(run_id)
    }

    /// The trials that were sent completely after their end.
    pub(crate) fn ended_trials(&self) -> impl Iterator<Item = usize> {
        self.body.ended.values().copied()
    }

    /// Records that a run was sent completely after its end.
    pub(crate) fn add_ended(&mut self, run_id: &str, trial: usize) {
        self.body.ended.insert(run_id.to_owned(), trial);
        self.is_changed = true;
        self.unwritten += 1;
    }

    /// Returns true if files with this digest were sent with the run of this id.
    pub(crate) fn has_files(&self, run_id: &str, digest: &str) -> bool {
        self.body
            .files
            .get(run_id)
            .is_some_and(|known| known == digest)
    }

    /// Records that files with this digest were sent with the run of this id.
    pub(crate) fn set_files(&mut self, run_id: &str, digest: String) {
        self.body.files.insert(run_id.to_owned(), digest);
        self.is_changed = true;
    }

    /// Returns true if enough runs were added to write the file.
    pub(crate) fn is_due(&self) -> bool {
        self.unwritten >= RUNS_PER_NOTE
    }

    /// Writes the file if it has changed. The first failure becomes a note in `summary`.
    pub(crate) fn write(&mut self, summary: &mut SentSummary) {
        if let Err(error) = self.try_write() {
            // Report only the first failure: each message names another temporary file.
            if !self.has_failed {
                summary.add_note(format!("cannot record what was sent: {error:#}"));
            }
            self.has_failed = true;
        }
    }

    fn try_write(&mut self) -> Result<()> {
        self.unwritten = 0;
        if self.is_changed {
            manifest::write_json(&self.path, &self.body)?;
            self.is_changed = false;
        }
        Ok(())
    }
}
