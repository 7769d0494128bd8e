//! The files of one log: a global event log and its rotated generations, in the order they were written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::blocks::{Block, SIZES};
use super::header::{GlobalHeader, global_header};
use super::known::Known;
use super::piece::{self, Piece, Told};
use super::reason::ReasonTemplates;
use super::record::Records;
use super::source::{Source, is_read_once};

/// The header stands in the first record, which is padded to a few hundred bytes.
pub(super) const HEAD_BYTES: usize = 1 << 16;

/// `logs`, and beside each global event log among them the rotated generations that were found next to it, ordered by
/// what their headers say and not by name. Logs without such a header stay where they are.
///
/// HTCondor names the generations of `EventLog` `EventLog.old`, or `EventLog.1` (newest) to `EventLog.N`; ours may be
/// compressed, too.
pub fn find_generations(logs: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found: Vec<(PathBuf, Option<GlobalHeader>)> = Vec::new();
    for log in logs {
        // What is looked at of a pipe is gone.
        let header = if is_read_once(log) {
            None
        } else {
            header(log)?
        };
        for sibling in siblings(log).into_iter().filter(|_| header.is_some()) {
            let other = self::header(&sibling).unwrap_or(None);
            if creator(&other) == creator(&header)
                && other.is_some()
                && !found.iter().any(|(path, _)| *path == sibling)
            {
                found.push((sibling, other));
            }
        }
        if !found.iter().any(|(path, _)| path == log) {
            found.push((log.clone(), header));
        }
    }
    let group = |header: &Option<GlobalHeader>, at: usize| {
        let same = |other: &(PathBuf, Option<GlobalHeader>)| {
            other.1.is_some() && creator(&other.1) == creator(header)
        };
        if header.is_some() {
            found.iter().position(same).unwrap_or(at)
        } else {
            at
        }
    };
    let place = |(at, (_, header)): (usize, &(PathBuf, Option<GlobalHeader>))| {
        let order = header
            .as_ref()
            .map_or((0, 0), |header| (header.sequence, header.created_s));
        (group(header, at), order, at)
    };
    let mut order: Vec<_> = found.iter().enumerate().map(place).collect();
    order.sort_unstable();
    Ok(order
        .into_iter()
        .map(|(.., at)| found[at].0.clone())
        .collect())
}

/// The access point of global event logs whose headers do not name it: what the beginnings of `logs` say, if they agree. A
/// generation in which no job was submitted says nothing.
pub fn likely_access_point(logs: &[PathBuf]) -> Result<Option<String>> {
    let mut names = BTreeSet::new();
    for log in logs
        .iter()
        .filter(|log| logs.len() > 1 && !is_read_once(log))
    {
        // Most headers say it, and no more is read.
        if header(log)?.is_some_and(|header| header.creator.is_none()) {
            let text = &beginning(log, SIZES.first_bytes)?;
            let (ads, reasons) = (Known::new(1), ReasonTemplates::default());
            let piece = Piece::parse(
                &Block {
                    text,
                    ends_log: true,
                },
                Told {
                    ads: &ads,
                    reasons: &reasons,
                },
                Vec::new(),
            );
            names.extend(piece::access_point(&[piece]));
        }
    }
    Ok(names.pop_first().filter(|_| names.is_empty()))
}

/// Which generation of a global event log the file `log` is: 1 more with each rotation. `None` for any other log.
pub fn sequence_number(log: &Path) -> Result<Option<u64>> {
    Ok(header(log)?.map(|header| header.sequence))
}

fn creator(header: &Option<GlobalHeader>) -> Option<&str> {
    header.as_ref().and_then(|header| header.creator.as_deref())
}

/// The header that a log begins with, if it does.
fn header(log: &Path) -> Result<Option<GlobalHeader>> {
    Ok(header_in(&beginning(log, HEAD_BYTES)?))
}

/// The first `bytes` of a log, or all of it.
fn beginning(log: &Path, bytes: usize) -> Result<Vec<u8>> {
    let mut head = vec![0; bytes];
    let filled = Source::open(log, |_| {}).and_then(|mut source| source.fill(&mut head));
    head.truncate(filled.with_context(|| format!("cannot read the log `{}`", log.display()))?);
    Ok(head)
}

/// The header in the first bytes of a log.
pub(super) fn header_in(head: &[u8]) -> Option<GlobalHeader> {
    Records::new(head, true)
        .all()
        .first()
        .and_then(global_header)
}

/// Files beside `log` that are named like its rotated generations.
pub(super) fn siblings(log: &Path) -> Vec<PathBuf> {
    let (Some(parent), Some(name)) = (log.parent(), log.file_name().and_then(|name| name.to_str()))
    else {
        return Vec::new();
    };
    let dir = if parent.as_os_str().is_empty() {
        Path::new(".")
    } else {
        parent
    };
    let is_generation = |found: &str| {
        let suffix = found
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('.'))
            .unwrap_or("");
        let suffix = [".gz", ".xz", ".zst"]
            .iter()
            .find_map(|end| suffix.strip_suffix(end))
            .unwrap_or(suffix);
        suffix == "old" || (!suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let names = fs_err::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut found: Vec<PathBuf> = names
        .filter(|found| is_generation(found))
        .map(|found| parent.join(found))
        .collect();
    found.sort();
    found
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
    fn headers_and_not_names_give_the_order() {
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
