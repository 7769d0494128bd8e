//! What people ask of a queue from afar, on the page of a tracker: to hand nothing out, or that a
//! trial ends with what it has. Small files in the queue say so; who has a network writes them, and
//! workers look at them.

use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::item_store::Queue;
use poolcast_base::files::{create_new, read_regular, sync_directory};
use poolcast_base::manifest;

/// The file that says what is handed out; without it all is.
const HAND_OUT: &str = "hand-out.json";

/// The directory with a file for each trial that is to end.
const END_REQUESTS: &str = "end-requests";

/// The largest size of the file that says what is handed out.
const MOST_BYTES: u64 = 1024;

/// Whether workers are given trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HandOut {
    /// They are.
    #[default]
    Open,
    /// Not for now. Trials at work go on.
    Paused,
    /// Not any more. Trials at work go on, and with the last of them all is over.
    Stopped,
    /// Not any more, and trials at work end with what they have.
    Cancelled,
}

impl HandOut {
    /// Whether nothing will be handed out any more.
    pub fn is_final(self) -> bool {
        matches!(self, HandOut::Stopped | HandOut::Cancelled)
    }
}

/// What the file says.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedHandOut {
    asked: HandOut,
    /// Whether somebody has said here that it does not count.
    is_lifted: bool,
}

impl Queue {
    /// Whether workers are given trials. A file that says nothing of it counts as none.
    pub fn hand_out(&self) -> HandOut {
        let said = self.asked_hand_out();
        if said.is_lifted {
            return HandOut::Open;
        }
        said.asked
    }

    /// Says what is asked from afar; `false` if that was asked before, also if it was lifted since.
    ///
    /// # Errors
    /// Fails on a disk that takes nothing.
    pub fn ask_hand_out(&self, asked: HandOut) -> Result<bool> {
        if self.asked_hand_out().asked == asked {
            return Ok(false);
        }
        let is_lifted = false;
        manifest::write_json(&self.path(HAND_OUT), &AskedHandOut { asked, is_lifted })?;
        Ok(true)
    }

    /// Says that what was asked from afar does not count, until something else is asked; `false` if
    /// nothing was.
    ///
    /// # Errors
    /// Fails on a disk that takes nothing.
    pub fn lift_hand_out(&self) -> Result<bool> {
        if self.hand_out() == HandOut::Open {
            return Ok(false);
        }
        let lifted = AskedHandOut {
            is_lifted: true,
            ..self.asked_hand_out()
        };
        manifest::write_json(&self.path(HAND_OUT), &lifted)?;
        Ok(true)
    }

    fn asked_hand_out(&self) -> AskedHandOut {
        let path = self.path(HAND_OUT);
        let text = match read_regular(&path, MOST_BYTES) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return AskedHandOut::default(),
            Err(error) => {
                self.warn_skipped(&path, &error.to_string());
                return AskedHandOut::default();
            }
        };
        serde_json::from_slice(&text).unwrap_or_else(|error| {
            self.warn_skipped(&path, &error.to_string());
            AskedHandOut::default()
        })
    }

    /// Says that `trial` is to end with what it has; `false` if that was said before.
    ///
    /// # Errors
    /// Fails on a disk that takes nothing.
    pub fn ask_to_end(&self, trial: usize) -> Result<bool> {
        let path = self.end_request(trial);
        match fs_err::create_dir(self.path(END_REQUESTS)) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        match create_new(&path) {
            Ok(file) => file.sync_all()?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        sync_directory(&self.path(END_REQUESTS))?;
        Ok(true)
    }

    /// Whether `trial` is to end with what it has.
    pub fn is_asked_to_end(&self, trial: usize) -> bool {
        self.end_request(trial).exists() || self.hand_out() == HandOut::Cancelled
    }

    fn end_request(&self, trial: usize) -> PathBuf {
        self.path(END_REQUESTS).join(trial.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::QueueSettings;

    #[test]
    fn what_is_asked_is_found_and_damaged_files_ask_for_nothing() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = dir.path().join("queue");
        let queue = Queue::create(&at, QueueSettings::default()).expect("made");
        assert_eq!(queue.hand_out(), HandOut::Open);
        assert!(!queue.ask_hand_out(HandOut::Open).expect("said"));
        assert!(!queue.lift_hand_out().expect("said"));
        for asked in [HandOut::Paused, HandOut::Stopped] {
            assert!(queue.ask_hand_out(asked).expect("said"));
            assert!(!queue.ask_hand_out(asked).expect("said"));
            assert_eq!(queue.hand_out(), asked);
        }
        assert!(queue.lift_hand_out().expect("said"));
        assert_eq!(queue.hand_out(), HandOut::Open);
        assert!(!queue.ask_hand_out(HandOut::Stopped).expect("said"));
        assert_eq!(queue.hand_out(), HandOut::Open, "it was lifted");
        assert!(queue.ask_hand_out(HandOut::Open).expect("said"));
        assert_eq!(queue.hand_out(), HandOut::Open);

        assert!(!queue.is_asked_to_end(7));
        assert!(queue.ask_to_end(7).expect("asked"));
        assert!(!queue.ask_to_end(7).expect("asked"));
        assert!(queue.is_asked_to_end(7) && !queue.is_asked_to_end(8));
        queue.ask_hand_out(HandOut::Cancelled).expect("said");
        assert!(queue.is_asked_to_end(8));

        let whole = "{\"asked\": \"paused\", \"is_lifted\": false}";
        fs_err::write(at.join(HAND_OUT), whole).expect("written");
        assert_eq!(queue.hand_out(), HandOut::Paused);
        let damaged = [
            String::new(),
            "\"paused\"".to_owned(),
            whole.replace("paused", "pause"),
            whole.replace("}", ", \"more\": 1}"),
            whole[..20].to_owned(),
            " ".repeat(2000) + whole,
        ];
        for damaged in damaged {
            fs_err::write(at.join(HAND_OUT), &damaged).expect("written");
            assert_eq!(queue.hand_out(), HandOut::Open, "{damaged}");
        }
        fs_err::remove_file(at.join(HAND_OUT)).expect("removed");
        fs_err::create_dir(at.join(HAND_OUT)).expect("made");
        assert_eq!(queue.hand_out(), HandOut::Open);
    }
}
