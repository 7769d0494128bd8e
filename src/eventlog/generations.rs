//! Files of one log: a global event log and its rotated generations, in the order in which they
//! were written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::blocks::{BLOCK_SIZES, RecordBlock};
use super::global_header::{GlobalHeader, HEADER_BYTES};
use super::piece::{EarlierPieces, ParsedPiece, find_access_point};
use super::read_error::ReadError;
use super::source::{LogSource, is_read_once};

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
/// header stay at their position.
///
/// HTCondor names the generations of `EventLog` `EventLog.old`, or `EventLog.1` (newest) to
/// `EventLog.N`. This also accepts compressed ones.
///
/// # Errors
/// Fails if one of `logs` cannot be read.
pub fn find_generations(logs: &[PathBuf]) -> Result<Vec<PathBuf>, ReadError> {
    let mut found: Vec<LogFile> = Vec::new();
    for log in logs {
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

/// Adds the rotated generations next to `log` that have headers of the same access point.
fn add_siblings(log: &LogFile, found: &mut Vec<LogFile>) {
    for path in rotated_paths(&log.path) {
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
pub fn likely_access_point(logs: &[PathBuf]) -> Result<Option<String>, ReadError> {
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

/// Returns true if a record of an event log is in the beginning of the file `log`.
///
/// # Errors
/// Fails if the file is empty or cannot be read.
pub fn is_event_log(log: &Path) -> Result<bool, ReadError> {
    Ok(!parse_beginning(log)?.records_by_number.is_empty())
}

/// Finds the access point in the beginning of `log`.
fn read_access_point(log: &Path) -> Result<Option<String>, ReadError> {
    Ok(find_access_point(&[parse_beginning(log)?]))
}

fn parse_beginning(log: &Path) -> Result<ParsedPiece, ReadError> {
    let text = read_beginning(log, BLOCK_SIZES.first_bytes)?;
    let block = RecordBlock {
        text: &text,
        is_at_log_end: true,
    };
    Ok(ParsedPiece::parse(
        &block,
        &EarlierPieces::new(1, false),
        Vec::new(),
    ))
}

/// Returns the sequence number of a generation of a global event log; it grows by 1 with each
/// rotation. Returns `None` for any other log.
///
/// # Errors
/// Fails if the log cannot be read.
pub fn sequence_number(log: &Path) -> Result<Option<u64>, ReadError> {
    Ok(read_header(log)?.map(|header| header.sequence))
}

/// Reads the header at the beginning of a log, if there is one.
fn read_header(log: &Path) -> Result<Option<GlobalHeader>, ReadError> {
    Ok(GlobalHeader::find(&read_beginning(log, HEADER_BYTES)?))
}

/// Reads the first `bytes` bytes of a log, or all of it.
fn read_beginning(log: &Path, bytes: usize) -> Result<Vec<u8>, ReadError> {
    let mut head = vec![0; bytes];
    let filled = LogSource::open(log, |_| {})?.fill(&mut head)?;
    head.truncate(filled);
    Ok(head)
}

/// Returns the files next to `log` that are named like its rotated generations, sorted by name. Their
/// contents may be anything.
pub fn rotated_paths(log: &Path) -> Vec<PathBuf> {
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
