//! The state of a sender (its server, run counts and errors) in a small file beside the runs, for
//! progress displays.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use poolcast_base::moment::parse_time_ms;
use poolcast_base::output::cut;
use poolcast_base::{files, manifest};
use poolcast_sweep::config::Tracker;

/// Version of the file format.
const VERSION: u32 = 1;

/// Size limit of a state file that is read, in bytes.
const MAX_BYTES: u64 = 16 << 10;

/// Interval at which the file is rewritten if only the time of the last answer has changed.
const REWRITE_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum length of a stored error, in characters.
const MAX_WHY_CHARACTERS: usize = 200;

/// The state of the sender to one tracker.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrackerState {
    /// `wandb` or `mlflow`.
    pub tracker: String,
    /// The server's host.
    pub server: String,
    /// Runs that have ended and were sent completely.
    pub ended: usize,
    /// Runs that had not ended when the sender last read them.
    pub running: usize,
    /// Time of the server's last answer, in UTC, accurate to a minute; `None` before the first one.
    pub answered: Option<String>,
    /// Time of the first failed try since the last answer, in UTC; `None` while the server answers.
    pub silent_since: Option<String>,
    /// The last error since `silent_since`.
    pub why: Option<String>,
}

/// The content of the state file.
#[derive(Serialize, Deserialize)]
struct StateBody {
    format_version: u32,
    #[serde(flatten)]
    state: TrackerState,
}

/// Reads the states of the senders of the runs in `dir`, as last written. Files that cannot be read
/// are skipped.
pub fn tracker_states(dir: &Path) -> Vec<TrackerState> {
    let all = [Tracker::Wandb, Tracker::Mlflow];
    let known = all
        .into_iter()
        .filter_map(|tracker| read_state(dir, tracker));
    known.collect()
}

fn state_file(dir: &Path, tracker: Tracker) -> PathBuf {
    dir.join(format!("tracker-{}.json", tracker.word()))
}

fn read_state(dir: &Path, tracker: Tracker) -> Option<TrackerState> {
    let text = files::read_regular(&state_file(dir, tracker), MAX_BYTES).ok()?;
    let body: StateBody = serde_json::from_slice(&text).ok()?;
    let moments = [&body.state.answered, &body.state.silent_since];
    let are_moments = moments
        .into_iter()
        .flatten()
        .all(|text| parse_time_ms(text).is_some());
    let is_known = body.format_version == VERSION && body.state.tracker == tracker.word();
    (is_known && are_moments).then_some(body.state)
}

/// Writes the state file of one sender. The file only informs people, so a failed write is logged
/// and ignored.
#[derive(Debug)]
pub(super) struct StateKeeper {
    path: PathBuf,
    state: TrackerState,
    written: Option<(TrackerState, Instant)>,
}

impl StateKeeper {
    /// Makes the keeper for the sender of the runs in `dir` to the `tracker` on `server`.
    pub(super) fn new(dir: &Path, tracker: Tracker, server: &str) -> StateKeeper {
        StateKeeper {
            path: state_file(dir, tracker),
            state: TrackerState {
                tracker: tracker.word().to_owned(),
                server: server.to_owned(),
                ..TrackerState::default()
            },
            written: None,
        }
    }

    /// Records that the server gave a usable answer.
    pub(super) fn record_answer(&mut self) {
        self.state.answered = Some(now());
        (self.state.silent_since, self.state.why) = (None, None);
        self.write();
    }

    /// Records that the server gave no usable answer, and the error `why`.
    pub(super) fn record_failure(&mut self, why: &str) {
        if self.state.silent_since.is_none() {
            self.state.silent_since = Some(now());
        }
        self.state.why = Some(cut(why, MAX_WHY_CHARACTERS));
        self.write();
    }

    /// Records the numbers of runs that were sent completely and of runs that go on.
    pub(super) fn count_runs(&mut self, ended: usize, running: usize) {
        (self.state.ended, self.state.running) = (ended, running);
        self.write();
    }

    fn write(&mut self) {
        if let Some((written, at)) = &self.written {
            let is_same = self.state
                == TrackerState {
                    answered: self.state.answered.clone(),
                    ..written.clone()
                };
            if is_same && at.elapsed() < REWRITE_INTERVAL {
                return;
            }
        }
        let body = StateBody {
            format_version: VERSION,
            state: self.state.clone(),
        };
        if let Err(error) = manifest::write_json(&self.path, &body) {
            tracing::info!("{error:#}");
        }
        self.written = Some((self.state.clone(), Instant::now()));
    }
}

fn now() -> String {
    let now = jiff::Timestamp::now();
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silent_since_is_kept_until_the_server_answers() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(tracker_states(dir.path()).is_empty());
        let mut keeper = StateKeeper::new(dir.path(), Tracker::Wandb, "api.wandb.ai");
        keeper.record_answer();
        keeper.count_runs(3, 1);
        let state = tracker_states(dir.path()).pop().expect("a state");
        assert_eq!((state.ended, state.running), (3, 1));
        assert!(state.answered.is_some() && state.silent_since.is_none());

        keeper.record_failure("connection refused");
        let silent = tracker_states(dir.path()).pop().expect("a state");
        keeper.state.silent_since = Some("2026-11-23T00:00:00Z".to_owned());
        keeper.record_failure(&"x".repeat(5000));
        let longer = tracker_states(dir.path()).pop().expect("a state");
        assert_eq!(silent.why.as_deref(), Some("connection refused"));
        assert_eq!(longer.silent_since.as_deref(), Some("2026-11-23T00:00:00Z"));
        assert!(longer.why.is_some_and(|why| why.len() < 300));
        keeper.record_answer();
        let state = tracker_states(dir.path()).pop().expect("a state");
        assert_eq!((state.silent_since, state.why), (None, None));

        let path = state_file(dir.path(), Tracker::Wandb);
        for damaged in ["{}", "[]", "{\"format_version\": 1}", &" ".repeat(99_999)] {
            fs_err::write(&path, damaged).expect("written");
            assert!(tracker_states(dir.path()).is_empty(), "{damaged}");
        }
    }
}
