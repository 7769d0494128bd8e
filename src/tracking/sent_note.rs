//! What was sent → a small file beside the runs, so that a later call asks the server for less. It is
//! a help only: without it the server is asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::sent_summary::SentSummary;
use poolcast_config::Tracker;
use poolcast_base::{files, manifest};

/// The version of the file.
const VERSION: u32 = 2;

/// So many runs are sent to their end between two writings of the notes.
const RUNS_PER_NOTE: usize = 50;

/// The largest one that is read.
const MOST_BYTES: u64 = 256 << 20;

/// What a file of notes says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct NoteBody {
    format_version: u32,
    /// The server and the project.
    to: String,
    /// The sweep's id there, by what tells it from others; none where a tracker has no sweeps.
    sweeps: BTreeMap<String, String>,
    /// The runs that have ended and were sent to their end: their trials by their ids; 0 for what is
    /// no trial.
    ended: BTreeMap<String, usize>,
    /// The digests of the files that were sent with runs, by the ids of those.
    files: BTreeMap<String, String>,
}

/// The notes of one directory on one project of a tracker's server, `tracked-TRACKER.json`.
#[derive(Debug)]
pub(super) struct SentNote {
    path: PathBuf,
    body: NoteBody,
    is_changed: bool,
    /// So many runs have ended since it was written.
    unwritten: usize,
    has_failed: bool,
}

impl SentNote {
    /// What is noted in `dir` of the project `to` of `tracker`. What cannot be read says nothing.
    pub(super) fn read(dir: &Path, tracker: Tracker, to: &str) -> SentNote {
        let path = dir.join(format!("tracked-{}.json", tracker.word()));
        let text = files::read_regular(&path, MOST_BYTES).unwrap_or_default();
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

    /// The id of the sweep with this `mark`.
    pub(super) fn sweep(&self, mark: &str) -> Option<&str> {
        self.body.sweeps.get(mark).map(String::as_str)
    }

    /// Takes note of the id of the sweep with this `mark`.
    pub(super) fn set_sweep(&mut self, mark: &str, id: &str) {
        self.body.sweeps.insert(mark.to_owned(), id.to_owned());
        self.is_changed = true;
    }

    /// Whether the run of this id was sent to its end.
    pub(super) fn has_ended(&self, run_id: &str) -> bool {
        self.body.ended.contains_key(run_id)
    }

    /// The trials that were sent to their end.
    pub(super) fn ended_trials(&self) -> impl Iterator<Item = usize> {
        self.body.ended.values().copied()
    }

    /// Takes note that a run was sent to its end.
    pub(super) fn add_ended(&mut self, run_id: &str, trial: usize) {
        self.body.ended.insert(run_id.to_owned(), trial);
        self.is_changed = true;
        self.unwritten += 1;
    }

    /// Whether the files of this digest were sent with the run of this id.
    pub(super) fn has_files(&self, run_id: &str, digest: &str) -> bool {
        self.body
            .files
            .get(run_id)
            .is_some_and(|known| known == digest)
    }

    /// Takes note that they were.
    pub(super) fn set_files(&mut self, run_id: &str, digest: String) {
        self.body.files.insert(run_id.to_owned(), digest);
        self.is_changed = true;
    }

    /// Whether so much is noted that it is time to write it.
    pub(super) fn is_due(&self) -> bool {
        self.unwritten >= RUNS_PER_NOTE
    }

    /// Writes the notes if they have changed; what hinders it first is noted in `summary`.
    pub(super) fn write(&mut self, summary: &mut SentSummary) {
        if let Err(error) = self.try_write() {
            // Later messages name other temporary files.
            if !self.has_failed {
                summary.add_note(format!("what was sent could not be noted: {error:#}"));
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
