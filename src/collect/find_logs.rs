//! Finds the files of the logs that a user names: archives, the logs in a directory, and rotated
//! generations next to a log.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::archive::archived_logs;
use super::log_error::explain_beginning;
use htcondor_eventlog as eventlog;
use poolcast_base::error::hinted;
use poolcast_base::{manifest, output};

/// Like [`eventlog::find_generations`], but an archive that [`super::collect`] writes is replaced by
/// all its generations, and any other directory by the event logs in it.
///
/// # Errors
/// Fails if one of `logs` cannot be read, for example if it is a directory without event logs.
pub fn find_generations(logs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut named: Vec<PathBuf> = Vec::new();
    for log in logs {
        if log.join(manifest::FILE).is_file() {
            named.extend(archived_logs(log)?);
        } else if log.is_dir() {
            named.extend(logs_in(log)?);
        } else {
            named.push(log.clone());
        }
    }
    eventlog::find_generations(&named).map_err(explain_beginning)
}

/// Returns true if an event log is among the files of the directory `dir`.
pub fn has_event_logs(dir: &Path) -> bool {
    files_in(dir).is_ok_and(|files| files.iter().any(|file| is_log(file)))
}

/// Returns the event logs among the files of `dir`, sorted by name. Other files are skipped.
fn logs_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut logs = files_in(dir)?;
    logs.retain(|file| is_log(file));
    ensure!(
        !logs.is_empty(),
        hinted(
            format!("there is no event log in `{}`", dir.display()),
            "name the directory with the logs that the submit files name (`log =`)"
        )
    );
    Ok(logs)
}

/// The regular files in `dir`, sorted by name. Nothing is read from pipes and devices.
fn files_in(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(dir)? {
        let path = entry?.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Returns true for an event log in a regular file. A file that cannot be read is none, and nothing
/// is read from pipes and devices.
pub fn is_log(file: &Path) -> bool {
    file.is_file() && eventlog::is_event_log(file).unwrap_or(false)
}

/// Says which files in the directories among `named` are not in `all`, because they are no event
/// logs; `None` if there are none.
pub fn skipped_note(named: &[PathBuf], all: &[PathBuf]) -> Option<String> {
    let is_log_directory = |dir: &&PathBuf| dir.is_dir() && !dir.join(manifest::FILE).is_file();
    let read: HashSet<&PathBuf> = all.iter().collect();
    let files = named
        .iter()
        .filter(is_log_directory)
        .map(|dir| files_in(dir));
    let mut skipped = files
        .flatten()
        .flatten()
        .filter(|file| !read.contains(file));
    let first = skipped.next()?;
    let (count, verb) = match skipped.count() {
        0 => ("`".to_owned(), "it is no event log"),
        more => (
            format!("{} such as `", output::counted(more + 1, "file")),
            "they are no event logs",
        ),
    };
    Some(format!("skipping {count}{}`: {verb}", first.display()))
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
    }

    #[test]
    fn directories_expand_to_the_event_logs_in_them() {
        let dir = tempfile::tempdir().expect("a directory");
        let proj = dir.path().join("proj");
        fs_err::create_dir_all(proj.join("older")).expect("made");
        let named = [proj.clone()];
        assert!(find_generations(&named).is_err());
        assert!(!has_event_logs(&proj));

        let record = "000 (1.0.0) 2026-11-21 01:50:00 Job submitted from host: <10.0.0.1>\n...\n";
        for (name, text) in [
            ("b.log", record),
            ("a.log", record),
            ("job.out", "hello\n"),
            ("empty", ""),
        ] {
            fs_err::write(proj.join(name), text).expect("written");
        }
        let all = find_generations(&named).expect("found");
        assert_eq!(all, ["a.log", "b.log"].map(|name| proj.join(name)));
        assert!(has_event_logs(&proj));
        let note = skipped_note(&named, &all).expect("a note");
        assert!(note.starts_with("skipping 2 files such as `"), "{note}");
        assert_eq!(skipped_note(&all, &all), None);
    }
}
