//! Directories in which files of several owners are missing at the same time. A wrong path is the fault of
//! one owner, so the directory itself is missing: a file system failed, or it is not mounted.

use std::collections::{HashMap, HashSet};

use super::codes::reason_names_file;
use crate::answers::{CauseKind, HoldHistory, PastHold, is_plugin_transfer};
use poolcast_tensors::NO_KEY;

/// Owners and files from which on a directory counts as missing.
const MIN_OWNERS: usize = 3;
const MIN_FILES: usize = 2;
/// `ENOENT`: no such file or directory.
const NO_SUCH_FILE: i32 = 2;

/// The directories that are missing at one moment, by the keys of their origins.
#[derive(Debug)]
pub(super) struct MissingDirectories(HashSet<u64>);

impl MissingDirectories {
    /// Finds the directories in which files of several owners are missing at `asked_ms`.
    pub(super) fn new(history: &HoldHistory<'_>, asked_ms: i64) -> MissingDirectories {
        let mut found: HashMap<u64, (HashSet<u64>, HashSet<u64>)> = HashMap::new();
        for hold in &history.holds {
            if is_of_missing_file(hold) && hold.owner != 0 && hold.lasts_at(asked_ms) {
                let (owners, files) = found.entry(hold.causes.get(CauseKind::Origin)).or_default();
                owners.insert(hold.owner);
                files.insert(hold.causes.get(CauseKind::File));
            }
        }
        found.retain(|_, (owners, files)| owners.len() >= MIN_OWNERS && files.len() >= MIN_FILES);
        MissingDirectories(found.into_keys().collect())
    }

    /// Returns true if the file of `hold` is missing because its directory is.
    pub(super) fn include(&self, hold: &PastHold) -> bool {
        is_of_missing_file(hold) && self.0.contains(&hold.causes.get(CauseKind::Origin))
    }
}

fn is_of_missing_file(hold: &PastHold) -> bool {
    hold.subcode == NO_SUCH_FILE
        && reason_names_file(hold.code)
        && !is_plugin_transfer(hold.code, hold.subcode)
        && hold.causes.get(CauseKind::Origin) != NO_KEY
}
