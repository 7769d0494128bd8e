//! Remote requests to a queue from a tracker's page: to stop handing out trials, or to end a trial
//! early with its current model. Small files in the queue store the requests. A process with
//! network access writes them, and workers read them.

use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::item_store::Queue;
use poolcast_base::files::{create_new, is_regular, read_regular, sync_directory};
use poolcast_base::manifest;

/// The file with the requested hand-out. Without it the hand-out is open.
const HAND_OUT_FILE: &str = "hand-out.json";

/// The directory with a file for each trial that must end early.
const END_REQUESTS_DIR: &str = "end-requests";

/// The largest size of the hand-out file, in bytes.
const MAX_BYTES: u64 = 1024;

/// The state of handing out trials to workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dispatch {
    /// Trials are handed out.
    #[default]
    Open,
    /// No trials are handed out for now. Running trials continue.
    Paused,
    /// No more trials are handed out. Running trials continue, and the sweep is over when they have
    /// ended.
    Stopped,
    /// No more trials are handed out, and running trials end early with their current model.
    Cancelled,
}

impl Dispatch {
    /// Returns true if no more trials will be handed out.
    pub fn is_final(self) -> bool {
        matches!(self, Dispatch::Stopped | Dispatch::Cancelled)
    }
}

/// The contents of the hand-out file.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DispatchRequest {
    asked: Dispatch,
    /// True if a user has overridden the request on this machine.
    is_lifted: bool,
}

impl Queue {
    /// The state of handing out trials. An invalid file counts as missing.
    pub fn hand_out(&self) -> Dispatch {
        let request = self.read_dispatch_request();
        if request.is_lifted {
            return Dispatch::Open;
        }
        request.asked
    }

    /// Stores a remote request. Returns false if it was requested before, even if it was lifted
    /// since.
    ///
    /// # Errors
    /// Fails if the disk cannot be written.
    pub fn request_dispatch(&self, asked: Dispatch) -> Result<bool> {
        if self.read_dispatch_request().asked == asked {
            return Ok(false);
        }
        let is_lifted = false;
        manifest::write_json(
            &self.path(HAND_OUT_FILE),
            &DispatchRequest { asked, is_lifted },
        )?;
        Ok(true)
    }

    /// Lifts the remote request until another one follows. Returns false if there was none.
    ///
    /// # Errors
    /// Fails if the disk cannot be written.
    pub fn lift_dispatch(&self) -> Result<bool> {
        if self.hand_out() == Dispatch::Open {
            return Ok(false);
        }
        let lifted = DispatchRequest {
            is_lifted: true,
            ..self.read_dispatch_request()
        };
        manifest::write_json(&self.path(HAND_OUT_FILE), &lifted)?;
        Ok(true)
    }

    fn read_dispatch_request(&self) -> DispatchRequest {
        let path = self.path(HAND_OUT_FILE);
        let text = match read_regular(&path, MAX_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return DispatchRequest::default(),
            Err(error) => {
                self.warn_skipped(&path, &error.to_string());
                return DispatchRequest::default();
            }
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            self.warn_skipped(&path, &error.to_string());
            DispatchRequest::default()
        })
    }

    /// Requests that `trial` ends early with its current model. Returns false if this was requested
    /// before.
    ///
    /// # Errors
    /// Fails if the disk cannot be written.
    pub fn ask_to_end(&self, trial: usize) -> Result<bool> {
        let path = self.end_request(trial);
        match fs_err::create_dir(self.path(END_REQUESTS_DIR)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        match create_new(&path) {
            Ok(file) => file.sync_all()?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        sync_directory(&self.path(END_REQUESTS_DIR))?;
        Ok(true)
    }

    /// Returns true if `trial` must end early with its current model.
    pub fn is_asked_to_end(&self, trial: usize) -> bool {
        is_regular(&self.end_request(trial)) || self.hand_out() == Dispatch::Cancelled
    }

    fn end_request(&self, trial: usize) -> PathBuf {
        self.path(END_REQUESTS_DIR).join(trial.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueSettings;

    #[test]
    fn requests_round_trip_and_damaged_files_count_as_missing() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = dir.path().join("queue");
        let queue = Queue::create(&at, QueueSettings::default()).expect("made");
        assert_eq!(queue.hand_out(), Dispatch::Open);
        assert!(!queue.request_dispatch(Dispatch::Open).expect("written"));
        assert!(!queue.lift_dispatch().expect("written"));
        for asked in [Dispatch::Paused, Dispatch::Stopped] {
            assert!(queue.request_dispatch(asked).expect("written"));
            assert!(!queue.request_dispatch(asked).expect("written"));
            assert_eq!(queue.hand_out(), asked);
        }
        assert!(queue.lift_dispatch().expect("written"));
        assert_eq!(queue.hand_out(), Dispatch::Open);
        assert!(!queue.request_dispatch(Dispatch::Stopped).expect("written"));
        assert_eq!(queue.hand_out(), Dispatch::Open, "it was lifted");
        assert!(queue.request_dispatch(Dispatch::Open).expect("written"));
        assert_eq!(queue.hand_out(), Dispatch::Open);

        assert!(!queue.is_asked_to_end(7));
        assert!(queue.ask_to_end(7).expect("asked"));
        assert!(!queue.ask_to_end(7).expect("asked"));
        assert!(queue.is_asked_to_end(7) && !queue.is_asked_to_end(8));
        queue
            .request_dispatch(Dispatch::Cancelled)
            .expect("written");
        assert!(queue.is_asked_to_end(8));

        let whole = "{\"asked\": \"paused\", \"is_lifted\": false}";
        fs_err::write(at.join(HAND_OUT_FILE), whole).expect("written");
        assert_eq!(queue.hand_out(), Dispatch::Paused);
        let damaged = [
            String::new(),
            "\"paused\"".to_owned(),
            whole.replace("paused", "pause"),
            whole.replace("}", ", \"more\": 1}"),
            whole[..20].to_owned(),
            " ".repeat(2000) + whole,
        ];
        for damaged in damaged {
            fs_err::write(at.join(HAND_OUT_FILE), &damaged).expect("written");
            assert_eq!(queue.hand_out(), Dispatch::Open, "{damaged}");
        }
        fs_err::remove_file(at.join(HAND_OUT_FILE)).expect("removed");
        fs_err::create_dir(at.join(HAND_OUT_FILE)).expect("made");
        assert_eq!(queue.hand_out(), Dispatch::Open);
    }
}
