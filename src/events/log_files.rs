//! The files of the logs of a store, by which a later call knows without reading them that they are
//! unchanged. This file beside the manifest is in no digest: copies of a log are other files.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::format::EVENTS_FORMAT;
use super::store_summary::{SourceLog, StoreSummary};
use htcondor_eventlog as eventlog;
use poolcast_base::files::FileIdentity;
use poolcast_base::manifest;

/// Name of the file in the directory of a store.
const FILE: &str = "log-files.json";

const VERSION: u32 = 1;

/// Minimum age, in s, of the last change of a log when its identity is recorded. A file system may
/// give the next change the same time.
const MIN_AGE_S: i64 = 2;

/// The identities of logs, in the order of a store. They were taken before the logs were read.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct LogFiles {
    version: u32,
    files: Vec<FileIdentity>,
}

impl LogFiles {
    /// The files of `logs` as they are now; `None` if one of them can be read only once.
    pub(super) fn of(logs: &[PathBuf]) -> Option<LogFiles> {
        let identity = |log: &PathBuf| {
            let found = fs_err::metadata(log).ok()?;
            let is_file = !eventlog::is_read_once(log);
            is_file.then(|| FileIdentity::new(&found))
        };
        Some(LogFiles {
            version: VERSION,
            files: logs.iter().map(identity).collect::<Option<_>>()?,
        })
    }

    /// Writes them to the directory of a store.
    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        manifest::write_json(&dir.join(FILE), self)
    }
}

/// The logs of the store in a directory.
#[derive(Debug, Default)]
pub(super) struct StoredLogs {
    pub(super) sources: Vec<SourceLog>,
    files: LogFiles,
    /// When `files` were recorded, epoch s by the clock of the file system.
    recorded_s: i64,
}

impl StoredLogs {
    /// The logs of the store in `dir`; none if there is no finished store.
    pub(super) fn in_store(dir: &Path) -> StoredLogs {
        match manifest::read::<StoreSummary>(dir, EVENTS_FORMAT) {
            Ok(store) => StoredLogs::new(dir, store.body.sources),
            Err(_) => StoredLogs::default(),
        }
    }

    /// The logs `sources` of the store in `dir`.
    pub(super) fn new(dir: &Path, sources: Vec<SourceLog>) -> StoredLogs {
        let path = dir.join(FILE);
        let recorded = fs_err::metadata(&path).ok();
        let files: Option<LogFiles> = manifest::read_json(&path).ok();
        StoredLogs {
            sources,
            files: files
                .filter(|files| files.version == VERSION)
                .unwrap_or_default(),
            recorded_s: recorded.map_or(i64::MIN, |found| found.mtime()),
        }
    }

    /// Returns log `at` of the store if the file `log` is still the one that was read. Its name may
    /// be another one.
    pub(super) fn unchanged(&self, at: usize, log: &Path) -> Option<&SourceLog> {
        let (source, recorded) = (self.sources.get(at)?, self.files.files.get(at)?);
        let is_recorded = recorded.bytes == source.bytes
            && recorded.changed_s.saturating_add(MIN_AGE_S) <= self.recorded_s;
        if !is_recorded || eventlog::is_read_once(log) {
            return None;
        }
        let found = FileIdentity::new(&fs_err::metadata(log).ok()?);
        (found == *recorded).then_some(source)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn same_files_are_recognised_once_they_are_old_enough() {
        let dir = tempfile::tempdir().expect("a directory");
        let logs = ["a", "b"].map(|name| dir.path().join(name));
        for log in &logs {
            fs_err::write(log, "text").expect("written");
        }
        let source = SourceLog {
            bytes: 4,
            ..SourceLog::default()
        };
        LogFiles::of(&logs)
            .expect("files")
            .write(dir.path())
            .expect("written");
        let stored = || StoredLogs::new(dir.path(), vec![source.clone(), source.clone()]);
        let unchanged = |log: &PathBuf| stored().unchanged(0, log).is_some();
        assert!(!unchanged(&logs[0]), "written a moment ago");

        let recorded = fs_err::File::options()
            .write(true)
            .open(dir.path().join(FILE));
        let later = SystemTime::now() + Duration::from_secs(60);
        (recorded.expect("opened").file().set_modified(later)).expect("set");
        assert!(unchanged(&logs[0]));
        assert!(!unchanged(&logs[1]), "another file of the same size");
        assert!(stored().unchanged(1, &logs[1]).is_some());
        assert!(stored().unchanged(2, &logs[1]).is_none());

        fs_err::rename(&logs[1], &logs[0]).expect("renamed");
        assert!(!unchanged(&logs[0]), "another file of the same name");
        assert_eq!(LogFiles::of(&["-".into()]), None);
    }
}
