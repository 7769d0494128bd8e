//! Results ⇄ one file a worker, one line a result: each file has one writer, and a torn last line is none.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::token::{Item, is_worker};
use crate::files::{open_regular, sync_directory};

/// The longest line of a journal; what follows a longer one is not read.
const LINE_BYTES: u64 = 64 << 20;

/// A line of a journal.
#[derive(Serialize, Deserialize)]
struct Line<R> {
    item: Item,
    attempt: u32,
    result: R,
}

/// Which attempt a result is of: the item, the number of the attempt, the worker.
pub(super) type Key = (Item, u32, String);

/// The journal of one worker, open to be written.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: Option<fs_err::File>,
    /// Where the last whole line ends.
    end_bytes: u64,
}

impl Journal {
    /// The journal of `worker` in the directory `dir`; its file is made with the first result.
    pub(super) fn new(dir: &Path, worker: &str) -> Journal {
        Journal { path: dir.join(format!("{worker}.jsonl")), file: None, end_bytes: 0 }
    }

    /// Adds a result; it is on disk when this returns.
    ///
    /// # Errors
    /// Fails on a full disk, for instance, and leaves the journal as it was.
    pub(super) fn append(&mut self, item: Item, attempt: u32, result: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(&Line { item, attempt, result })?;
        line.push(b'\n');
        self.open()?;
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Err(error) = file.write_all(&line).and_then(|()| file.sync_data()) {
            // Should this fail too, the rest of a line stands before the next one, and neither counts.
            file.set_len(self.end_bytes)?;
            return Err(error.into());
        }
        self.end_bytes += line.len() as u64;
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        if self.file.is_none() {
            self.file = Some(fs_err::OpenOptions::new().append(true).create_new(true).open(&self.path)?);
            self.path.parent().map_or(Ok(()), sync_directory)?;
        }
        Ok(())
    }
}

/// Every result in the directory `dir`, acknowledged or not. Of several for one attempt the last counts. `skip` hears of
/// files that are no journals, whatever their names say.
pub(super) fn read<R: DeserializeOwned>(dir: &Path, skip: impl Fn(&Path, &str)) -> Result<HashMap<Key, R>> {
    let mut found = HashMap::new();
    for entry in fs_err::read_dir(dir)? {
        let path = entry?.path();
        let worker = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".jsonl"));
        let Some(worker) = worker.filter(|name| is_worker(name)) else { continue };
        let mut file = match open_regular(&path, u64::MAX) {
            Ok(file) => BufReader::new(file),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::PermissionDenied) => {
                skip(&path, &error.to_string());
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let mut line = Vec::new();
        while file.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)? > 0 {
            if !line.ends_with(b"\n") {
                if line.len() as u64 == LINE_BYTES {
                    skip(&path, "it has a line that is too long");
                }
                break;
            }
            if let Ok(Line { item, attempt, result }) = serde_json::from_slice::<Line<R>>(&line) {
                found.insert((item, attempt, worker.to_owned()), result);
            }
            line.clear();
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: Item = Item { trial: 3, budget: 5 };

    #[test]
    fn whole_lines_count_and_torn_ones_do_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::new(dir.path(), "w");
        journal.append(ITEM, 1, &"first").expect("written");
        journal.append(ITEM, 2, &"second").expect("written");
        journal.append(ITEM, 2, &"again").expect("written");
        let path = dir.path().join("w.jsonl");
        let whole = fs_err::read(&path).expect("read");
        let torn = &whole[..whole.len() - 1];
        fs_err::write(dir.path().join("torn.jsonl"), torn).expect("written");
        fs_err::write(dir.path().join("junk.jsonl"), b"\xff\x00{}\n\n{\"item\":3}\n").expect("written");
        fs_err::write(dir.path().join("..jsonl"), &whole).expect("written");
        let results = read::<String>(dir.path(), |path, _| panic!("{path:?} is a journal")).expect("read");
        let of = |attempt, worker: &str| results.get(&(ITEM, attempt, worker.to_owned())).map(String::as_str);
        assert_eq!(
            (of(1, "w"), of(2, "w"), of(1, "torn"), of(2, "torn")),
            (Some("first"), Some("again"), Some("first"), Some("second"))
        );
        assert_eq!(results.len(), 4);
    }

    #[test]
    fn what_is_no_journal_is_skipped() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        Journal::new(dir.path(), "w").append(ITEM, 1, &"first").expect("written");
        assert!(std::process::Command::new("mkfifo").arg(at("pipe.jsonl")).status().expect("mkfifo runs").success());
        std::os::unix::fs::symlink("/dev/zero", at("zero.jsonl")).expect("linked");
        fs_err::create_dir(at("directory.jsonl")).expect("made");
        fs_err::File::create(at("hole.jsonl")).expect("made").set_len(1 << 40).expect("sparse");
        let skipped = std::cell::RefCell::new(Vec::new());
        let results = read::<String>(dir.path(), |path, _| {
            skipped.borrow_mut().push(path.file_name().expect("a name").to_string_lossy().into_owned());
        });
        assert_eq!(results.expect("read").len(), 1);
        let mut skipped = skipped.into_inner();
        skipped.sort();
        assert_eq!(skipped, ["directory.jsonl", "hole.jsonl", "pipe.jsonl", "zero.jsonl"]);
    }

    #[test]
    fn what_a_full_disk_cut_off_is_taken_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::new(dir.path(), "w");
        journal.append(ITEM, 1, &1).expect("written");
        let before = fs_err::read(dir.path().join("w.jsonl")).expect("read");
        let full = fs_err::OpenOptions::new().write(true).open("/dev/full").expect("opened");
        let real = journal.file.replace(full);
        assert!(journal.append(ITEM, 2, &2).is_err());
        journal.file = real;
        journal.append(ITEM, 3, &3).expect("written");
        let after = fs_err::read(dir.path().join("w.jsonl")).expect("read");
        assert!(
            after.starts_with(&before)
                && after.ends_with(b"\n")
                && read::<u8>(dir.path(), |_, _| ()).expect("read").len() == 2
        );
    }
}
