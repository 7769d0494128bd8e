//! Files of one log: a global event log and its rotated generations, in the order in which they
//! were written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::blocks::{BLOCK_SIZES, RecordBlock};
use super::collect::archived_logs;
use super::global_header::{GlobalHeader, parse_global_header};
use super::piece::{EarlierPieces, ParsedPiece, find_access_point};
use super::record_scan::RecordScan;
use super::source::{LogSource, is_read_once};
use poolcast_base::manifest;

/// Number of bytes to read to find the header of a log. The header is the first record and is
/// padded to a few hundred bytes.
pub(super) const HEAD_BYTES: usize = 1 << 16;

/// A file of a log, and its header if it begins with one.
struct LogFile {
    path: PathBuf,
    header: Option<GlobalHeader>,
}

impl LogFile {
    /// Returns true if both files begin with headers of one access point.
    fn is_of_same_log(&self, other: &LogFile) -> bool {
        match (&self.header, &other.header) {
            (Some(header), Some(other)) => header.creator == other.creator,
            _ => false,
        }
    }
}

/// Returns `logs`, with the rotated generations of each global event log among them. Generations
/// are found next to their log, and are ordered by their headers, not by name. Logs without such a
/// header stay at their position. An archive that [`super::collect`] writes is replaced by all its
/// generations.
///
/// HTCondor names the generations of `EventLog` `EventLog.old`, or `EventLog.1` (newest) to
/// `EventLog.N`. This also accepts compressed ones.
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

    let mut found: Vec<LogFile> = Vec::new();
    for log in &named {
        // Bytes that are read from a pipe here would be lost.
        let header = if is_read_once(log) {
            None
        } else {
            read_header(log)?
        };
        let file = LogFile {
            path: log.clone(),
            header,
        };

        if file.header.is_some() {
            add_siblings(&file, &mut found);
        }
        if !found.iter().any(|known| known.path == file.path) {
            found.push(file);
        }
    }
    Ok(order_by_generation(&found))
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

/// Adds the rotated generations next to `log` that have headers of the same access point.
fn add_siblings(log: &LogFile, found: &mut Vec<LogFile>) {
    for path in sibling_paths(&log.path) {
        // The user did not name this file, so it is skipped if it cannot be read.
        let header = read_header(&path).unwrap_or(None);
        let sibling = LogFile { path, header };
        let is_known = found.iter().any(|known| known.path == sibling.path);
        if sibling.is_of_same_log(log) && !is_known {
            found.push(sibling);
        }
    }
}

/// Returns the paths of `files`. Generations of one access point are together, at the position of
/// the first one, ordered by sequence.
fn order_by_generation(files: &[LogFile]) -> Vec<PathBuf> {
    let mut order = Vec::new();
    for (at, file) in files.iter().enumerate() {
        let first_of_log = files.iter().position(|other| other.is_of_same_log(file));
        let sequence = file
            .header
            .as_ref()
            .map_or((0, 0), |header| (header.sequence, header.created_s));
        order.push((first_of_log.unwrap_or(at), sequence, at));
    }
    order.sort_unstable();

    order
        .into_iter()
        .map(|(.., at)| files[at].path.clone())
        .collect()
}

/// Returns the access point of global event logs whose headers do not name it. It is the name at
/// the beginning of `logs`, if all agree. A generation without submitted jobs names none.
///
/// # Errors
/// Fails if one of `logs` cannot be read.
pub fn likely_access_point(logs: &[PathBuf]) -> Result<Option<String>> {
    if logs.len() < 2 {
        return Ok(None);
    }
    let mut names = BTreeSet::new();
    for log in logs.iter().filter(|log| !is_read_once(log)) {
        // Most headers name the access point. Then no more of the log is read.
        if read_header(log)?.is_some_and(|header| header.creator.is_none()) {
            names.extend(read_access_point(log)?);
        }
    }
    Ok(names.pop_first().filter(|_| names.is_empty()))
}

/// Finds the access point in the beginning of `log`.
fn read_access_point(log: &Path) -> Result<Option<String>> {
    let text = read_beginning(log, BLOCK_SIZES.first_bytes)?;
    let block = RecordBlock {
        text: &text,
        is_at_log_end: true,
    };
    let piece = ParsedPiece::parse(&block, &EarlierPieces::new(1, false), Vec::new());
    Ok(find_access_point(&[piece]))
}

/// Returns the sequence number of a generation of a global event log; it grows by 1 with each
/// rotation. Returns `None` for any other log.
///
/// # Errors
/// Fails if the log cannot be read.
pub fn sequence_number(log: &Path) -> Result<Option<u64>> {
    Ok(read_header(log)?.map(|header| header.sequence))
}

/// Reads the header at the beginning of a log, if there is one.
fn read_header(log: &Path) -> Result<Option<GlobalHeader>> {
    Ok(parse_first_header(&read_beginning(log, HEAD_BYTES)?))
}

/// Reads the first `bytes` bytes of a log, or all of it.
fn read_beginning(log: &Path, bytes: usize) -> Result<Vec<u8>> {
    let mut head = vec![0; bytes];
    let filled = LogSource::open(log, |_| {}).and_then(|mut source| source.fill(&mut head));
    head.truncate(filled.with_context(|| format!("cannot read the log `{}`", log.display()))?);
    Ok(head)
}

/// Parses the header in the first bytes of a log.
pub(super) fn parse_first_header(head: &[u8]) -> Option<GlobalHeader> {
    RecordScan::new(head, true)
        .collect_records()
        .first()
        .and_then(parse_global_header)
}

/// Returns the files next to `log` that are named like its rotated generations.
pub(super) fn sibling_paths(log: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (log.parent(), log.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    let dir = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };

    let entries = fs_err::read_dir(dir).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|found| is_generation_of(name, found))
        .map(|found| parent.join(found))
        .collect();
    found.sort();
    found
}

/// Returns true if `found` is `name` plus `.old` or a number, and perhaps the suffix of a
/// compressed file.
fn is_generation_of(name: &str, found: &str) -> bool {
    let Some(suffix) = found
        .strip_prefix(name)
        .and_then(|rest| rest.strip_prefix('.'))
    else {
        return false;
    };
    let suffix = [".gz", ".xz", ".zst"]
        .iter()
        .find_map(|end| suffix.strip_suffix(end))
        .unwrap_or(suffix);
    suffix == "old" || (!suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

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
            super::super::collect(std::slice::from_ref(&live), &archive).expect("collected");
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

    #[test]
    fn generations_are_ordered_by_header_not_by_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let write =
            |name: &str, text: &str| fs_err::write(dir.path().join(name), text).expect("written");
        write("EventLog", &log(9, "a"));
        write("EventLog.1", &log(7, "a"));
        write("EventLog.2", &log(8, "a"));
        write("EventLog.old", &log(3, "somebody else"));
        write(
            "EventLog.3",
            "000 (1.0.0) 01/28 06:28:38 Job submitted\n...\n",
        );
        write("EventLog.notes", &log(1, "a"));
        write(
            "user.log",
            "000 (1.0.0) 01/28 06:28:38 Job submitted\n...\n",
        );
        let names = |logs: &[&str]| {
            let paths: Vec<PathBuf> = logs.iter().map(|name| dir.path().join(name)).collect();
            let found = find_generations(&paths).expect("found");
            found
                .iter()
                .map(|path| {
                    path.file_name()
                        .expect("a name")
                        .to_string_lossy()
                        .into_owned()
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(&["EventLog"]),
            ["EventLog.1", "EventLog.2", "EventLog"]
        );
        assert_eq!(
            names(&["user.log", "EventLog", "EventLog.2"]),
            ["user.log", "EventLog.1", "EventLog.2", "EventLog"]
        );
        assert_eq!(
            names(&["EventLog.2"]),
            ["EventLog.2"],
            "a generation that was named stands for itself"
        );
    }
}
