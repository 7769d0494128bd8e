//! Directories in which files of several owners were missing at about the same time. A wrong path is the
//! fault of one owner, so the directory itself was missing: a file system failed, or is not mounted.

use std::collections::{HashMap, HashSet};

use super::codes::reason_names_file;
use crate::answers::{CauseKind, HoldHistory, PastHold};
use poolcast_tensors::NO_KEY;

/// Owners from which on a directory counts as missing.
const MIN_OWNERS: usize = 3;
/// Files from which on it does.
const MIN_FILES: usize = 2;
/// `ENOENT`: no such file or directory.
const NO_SUCH_FILE: i32 = 2;

/// A hold because of a missing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct MissingFile {
    hold_ms: i64,
    owner: u64,
    file: u64,
}

/// The holds because of missing files that were known at one moment, by the keys of their origins.
#[derive(Debug)]
pub(super) struct MissingDirectories {
    missing_files: HashMap<u64, Vec<MissingFile>>,
    /// Maximum time between two holds of one fault, in ms: a typical hold length.
    within_ms: i64,
}

impl MissingDirectories {
    /// Collects the holds that began up to `asked_ms`.
    pub(super) fn new(history: &HoldHistory<'_>, asked_ms: i64) -> MissingDirectories {
        let mut missing_files: HashMap<u64, Vec<MissingFile>> = HashMap::new();
        for hold in &history.holds {
            if is_of_missing_file(hold) && hold.owner != 0 && hold.hold_ms <= asked_ms {
                let of_origin = missing_files
                    .entry(hold.causes.get(CauseKind::Origin))
                    .or_default();
                of_origin.push(MissingFile {
                    hold_ms: hold.hold_ms,
                    owner: hold.owner,
                    file: hold.causes.get(CauseKind::File),
                });
            }
        }
        for of_origin in missing_files.values_mut() {
            of_origin.sort_unstable();
        }
        MissingDirectories {
            missing_files,
            within_ms: history.unit_ms(asked_ms) as i64,
        }
    }

    /// Returns true if the file of `hold` was missing because its directory was.
    pub(super) fn include(&self, hold: &PastHold) -> bool {
        let origin = hold.causes.get(CauseKind::Origin);
        let Some(all) = self
            .missing_files
            .get(&origin)
            .filter(|_| is_of_missing_file(hold))
        else {
            return false;
        };
        let begin = all.partition_point(|other| other.hold_ms < hold.hold_ms - self.within_ms);
        let near = all[begin..]
            .iter()
            .take_while(|other| other.hold_ms <= hold.hold_ms + self.within_ms);
        let (mut owners, mut files) = (HashSet::new(), HashSet::new());
        for other in near {
            owners.insert(other.owner);
            files.insert(other.file);
            if owners.len() >= MIN_OWNERS && files.len() >= MIN_FILES {
                return true;
            }
        }
        false
    }
}

fn is_of_missing_file(hold: &PastHold) -> bool {
    hold.subcode == NO_SUCH_FILE
        && reason_names_file(hold.code)
        && hold.causes.get(CauseKind::Origin) != NO_KEY
}
