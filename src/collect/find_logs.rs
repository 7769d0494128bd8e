//! Finds the files of the logs that a user names: archives, and rotated generations next to a log.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::archive::archived_logs;
use super::log_error::explain_beginning;
use htcondor_eventlog as eventlog;
use poolcast_base::manifest;

/// Like [`eventlog::find_generations`], but an archive that [`super::collect`] writes is replaced by
/// all its generations.
///
/// # Errors
/// Fails if one of `logs` cannot be read, for example if it is a directory but not an archive.
pub fn find_generations(logs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut named: Vec<PathBuf> = Vec::new();
    for log in logs {
        if log.join(manifest::FILE).is_file() {
            named.extend(archived_logs(log)?);
        } else {
            named.push(log.clone());
        }
    }
    eventlog::find_generations(&named).map_err(explain_beginning)
}

/// Returns the elements of `all` that are not in `named`, neither directly nor through their
/// archive. These are the rotated generations found by [`find_generations`].
pub fn found_beside<'a>(
    named: &'a [PathBuf],
    all: &'a [PathBuf],
) -> impl Iterator<Item = &'a PathBuf> {
    let is_named = |log: &Path| {
        let itself_or_archive = [Some(log), log.parent()];
        named
            .iter()
            .any(|named| itself_or_archive.contains(&Some(named)))
    };
    all.iter().filter(move |log| !is_named(log))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect;

    fn log(sequence: u64, creator: &str) -> String {
        format!(
            "008 (-01.-01.-01) 01/28 06:28:38 Global JobLog: ctime={} id=0 sequence={sequence} size=0 creator_name=<{creator}>\n...\n",
            1000 + sequence
        )
    }

    #[test]
    fn archives_expand_to_their_generations() {
        let dir = tempfile::tempdir().expect("a directory");
        let live = dir.path().join("EventLog");
        let archive = dir.path().join("archive");
        for sequence in 1..4 {
            fs_err::write(&live, log(sequence, "a")).expect("written");
            collect(std::slice::from_ref(&live), &archive).expect("collected");
        }
        let named = [archive.clone()];
        let all = find_generations(&named).expect("found");
        let names: Vec<String> = all
            .iter()
            .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
            .collect();
        assert_eq!(
            names,
            ["EventLog.1001.1", "EventLog.1002.2", "EventLog.1003.3"]
        );
        assert_eq!(found_beside(&named, &all).count(), 0);
        assert_eq!(found_beside(&all[..1], &all).count(), 2);
        assert!(find_generations(&[dir.path().to_owned()]).is_err());
    }
}
