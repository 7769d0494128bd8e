//! Journals of results: one file per worker, with one line per result. Each file has one writer,
//! and a torn last line is ignored.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::chunk_entry::is_worker_name;
use super::item::WorkItem;
use poolcast_base::files::{open_regular, sync_directory};

/// Maximum length of a journal's line, in bytes. Reading stops at a longer line.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// A line of a journal.
#[derive(Serialize, Deserialize)]
struct JournalLine<R> {
    item: WorkItem,
    /// Number of trials of the chunk that had ended before the attempt, according to the lease.
    #[serde(default)]
    ended: usize,
    attempt: u32,
    result: R,
}

/// A result, as read from its line.
pub(super) struct JournalResult<'a, R> {
    pub(super) item: WorkItem,
    /// Number of trials of the chunk that had ended when the attempt began. It never decreases
    /// between attempts.
    pub(super) ended: usize,
    pub(super) attempt: u32,
    pub(super) worker: &'a str,
    result: R,
    path: &'a Arc<Path>,
    offset: u64,
    bytes: usize,
}

impl<R> JournalResult<'_, R> {
    /// Applies `keep` to the result, and stores the location of its line.
    pub(super) fn keep<T>(self, keep: impl Fn(R) -> T) -> StoredResult<T> {
        StoredResult {
            kept: keep(self.result),
            place: JournalPosition {
                path: Arc::clone(self.path),
                offset: self.offset,
                bytes: self.bytes,
            },
        }
    }
}

/// The kept part of a result, with the location of the whole result.
#[derive(Debug, Clone)]
pub struct StoredResult<T> {
    /// The kept part.
    pub kept: T,
    /// The location of the whole result.
    pub place: JournalPosition,
}

/// The location of a journal's line.
#[derive(Debug, Clone)]
pub struct JournalPosition {
    path: Arc<Path>,
    /// The offset of the line's first byte.
    offset: u64,
    /// The length of the line in bytes, with its line feed.
    bytes: usize,
}

/// Reads whole results, one at a time.
#[derive(Debug, Default)]
pub struct ResultReader {
    open: HashMap<Arc<Path>, fs_err::File>,
}

impl ResultReader {
    /// Maximum number of open files.
    const MAX_OPEN_FILES: usize = 100;

    /// Reads the result at `place`.
    ///
    /// # Errors
    /// Fails if its file has changed since.
    pub fn read<R: DeserializeOwned>(&mut self, place: &JournalPosition) -> Result<R> {
        use fs_err::os::unix::fs::FileExt as _;
        if self.open.len() >= Self::MAX_OPEN_FILES && !self.open.contains_key(&place.path) {
            self.open.clear();
        }
        let file = match self.open.entry(Arc::clone(&place.path)) {
            Entry::Occupied(file) => file.into_mut(),
            Entry::Vacant(vacant) => vacant.insert(open_regular(&place.path, u64::MAX)?),
        };
        let mut line = vec![0; place.bytes];
        file.read_exact_at(&mut line, place.offset)?;
        let line = serde_json::from_slice::<JournalLine<R>>(&line);
        Ok(line
            .with_context(|| format!("cannot read `{}`", place.path.display()))?
            .result)
    }
}

/// The journal of one worker, open for writing.
#[derive(Debug)]
pub(super) struct ResultJournal {
    path: PathBuf,
    file: Option<fs_err::File>,
    /// The offset of the end of the last whole line.
    end_bytes: u64,
    /// True if the file may have a part of a line after `end_bytes`.
    is_torn: bool,
    /// Lines that are not written yet.
    waiting: Vec<u8>,
}

impl ResultJournal {
    /// The journal of `worker` in the directory `dir`. Its file is created with the first result.
    pub(super) fn new(dir: &Path, worker: &str) -> ResultJournal {
        ResultJournal {
            path: dir.join(format!("{worker}.jsonl")),
            file: None,
            end_bytes: 0,
            is_torn: false,
            waiting: Vec::new(),
        }
    }

    /// Adds a result of the trial `item`, from an attempt that began when `ended` trials of the
    /// chunk had ended. [`ResultJournal::sync`] writes it.
    pub(super) fn add(
        &mut self,
        item: WorkItem,
        ended: usize,
        attempt: u32,
        result: &impl Serialize,
    ) -> Result<()> {
        serde_json::to_writer(
            &mut self.waiting,
            &JournalLine {
                item,
                ended,
                attempt,
                result,
            },
        )?;
        self.waiting.push(b'\n');
        Ok(())
    }

    /// Writes and fsyncs the added results.
    ///
    /// # Errors
    /// Fails for example on a full disk. The journal's file is then rolled back, now or before the
    /// next results, and the added results are dropped.
    pub(super) fn sync(&mut self) -> Result<()> {
        let lines = std::mem::take(&mut self.waiting);
        self.open()?;
        let Some(file) = &mut self.file else {
            return Ok(());
        };
        // After a failed rollback, a line must not follow a part of another one: readers would
        // ignore both.
        if self.is_torn {
            file.set_len(self.end_bytes)?;
        }
        self.is_torn = true;
        if let Err(error) = file.write_all(&lines).and_then(|()| file.sync_data()) {
            self.is_torn = file.set_len(self.end_bytes).is_err();
            return Err(error.into());
        }
        self.is_torn = false;
        self.end_bytes += lines.len() as u64;
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        if self.file.is_none() {
            self.file = Some(
                fs_err::OpenOptions::new()
                    .append(true)
                    .create_new(true)
                    .open(&self.path)?,
            );
            self.path.parent().map_or(Ok(()), sync_directory)?;
        }
        Ok(())
    }
}

/// Calls `each` with every result in the directory `dir`, acknowledged or not. The results of one
/// journal are in the order in which they were written. Calls `skip` for files that have the name
/// of a journal but are not one.
pub(super) fn read_results<R: DeserializeOwned>(
    dir: &Path,
    skip: impl Fn(&Path, &str),
    mut each: impl FnMut(JournalResult<'_, R>),
) -> Result<()> {
    for entry in fs_err::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(worker) = name.and_then(|name| name.strip_suffix(".jsonl")) else {
            continue;
        };
        if !is_worker_name(worker) {
            continue;
        }

        match open_regular(&path, u64::MAX) {
            Ok(file) => read_journal(file, worker, &path, &skip, &mut each)?,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::InvalidData | ErrorKind::PermissionDenied
                ) =>
            {
                skip(&path, &error.to_string());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Calls `each` with the results of one journal, up to a line that is torn or too long.
fn read_journal<R: DeserializeOwned>(
    file: fs_err::File,
    worker: &str,
    path: &Path,
    skip: &impl Fn(&Path, &str),
    each: &mut impl FnMut(JournalResult<'_, R>),
) -> Result<()> {
    let mut file = BufReader::with_capacity(1 << 16, file);
    let shared: Arc<Path> = Arc::from(path);
    let mut line = Vec::new();
    let mut offset = 0;
    loop {
        line.clear();
        let read = file
            .by_ref()
            .take(MAX_LINE_BYTES)
            .read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        if !line.ends_with(b"\n") {
            if line.len() as u64 == MAX_LINE_BYTES {
                skip(path, "it has a line that is too long");
            }
            // Otherwise the worker was killed while it wrote the line, or is still writing it.
            return Ok(());
        }

        // Lines that do not parse as a result are ignored.
        if let Ok(parsed) = serde_json::from_slice::<JournalLine<R>>(&line) {
            each(JournalResult {
                item: parsed.item,
                ended: parsed.ended,
                attempt: parsed.attempt,
                worker,
                result: parsed.result,
                path: &shared,
                offset,
                bytes: line.len(),
            });
        }
        offset += line.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ITEM: WorkItem = WorkItem {
        trial: 3,
        budget: 5,
    };

    fn append(journal: &mut ResultJournal, attempt: u32, result: &str) {
        journal.add(ITEM, 0, attempt, &result).expect("added");
        journal.sync().expect("written");
    }

    /// The results found, by attempt and worker.
    fn found(dir: &Path, skip: impl Fn(&Path, &str)) -> HashMap<(u32, String), String> {
        let mut found = HashMap::new();
        let each = |written: JournalResult<'_, String>| {
            let key = (written.attempt, written.worker.to_owned());
            let kept = written.keep(|result| result);
            assert_eq!(
                ResultReader::default()
                    .read::<String>(&kept.place)
                    .expect("read again"),
                kept.kept
            );
            found.insert(key, kept.kept);
        };
        read_results(dir, skip, each).expect("read");
        found
    }

    #[test]
    fn torn_journal_lines_are_ignored() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = ResultJournal::new(dir.path(), "w");
        append(&mut journal, 1, "first");
        journal.add(ITEM, 0, 2, &"second").expect("added");
        assert_eq!(
            found(dir.path(), |_, _| ()).len(),
            1,
            "not written before it is synced"
        );
        append(&mut journal, 2, "again");
        let path = dir.path().join("w.jsonl");
        let whole = fs_err::read(&path).expect("read");
        let torn = &whole[..whole.len() - 1];
        fs_err::write(dir.path().join("torn.jsonl"), torn).expect("written");
        fs_err::write(
            dir.path().join("junk.jsonl"),
            b"\xff\x00{}\n\n{\"item\":3}\n",
        )
        .expect("written");
        fs_err::write(dir.path().join("..jsonl"), &whole).expect("written");
        let results = found(dir.path(), |path, _| panic!("{path:?} is a journal"));
        let of = |attempt, worker: &str| {
            results
                .get(&(attempt, worker.to_owned()))
                .map(String::as_str)
        };
        assert_eq!(
            (of(1, "w"), of(2, "w"), of(1, "torn"), of(2, "torn")),
            (Some("first"), Some("again"), Some("first"), Some("second"))
        );
        assert_eq!(results.len(), 4);
    }

    #[test]
    fn files_that_are_not_journals_are_skipped() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name);
        append(&mut ResultJournal::new(dir.path(), "w"), 1, "first");
        assert!(
            std::process::Command::new("mkfifo")
                .arg(at("pipe.jsonl"))
                .status()
                .expect("mkfifo runs")
                .success()
        );
        std::os::unix::fs::symlink("/dev/zero", at("zero.jsonl")).expect("linked");
        fs_err::create_dir(at("directory.jsonl")).expect("made");
        fs_err::File::create(at("hole.jsonl"))
            .expect("made")
            .set_len(1 << 40)
            .expect("sparse");
        let skipped = std::cell::RefCell::new(Vec::new());
        let results = found(dir.path(), |path, _| {
            skipped.borrow_mut().push(
                path.file_name()
                    .expect("a name")
                    .to_string_lossy()
                    .into_owned(),
            );
        });
        assert_eq!(results.len(), 1);
        let mut skipped = skipped.into_inner();
        skipped.sort();
        assert_eq!(
            skipped,
            ["directory.jsonl", "hole.jsonl", "pipe.jsonl", "zero.jsonl"]
        );
    }

    /// A file that can be neither written nor truncated stands for a disk that fails for a while.
    #[test]
    fn part_of_a_line_that_could_not_be_rolled_back_is_removed_later() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("w.jsonl");
        let mut journal = ResultJournal::new(dir.path(), "w");
        append(&mut journal, 1, "1");
        let read_only = fs_err::File::open(&path).expect("opened");
        let mut real = journal.file.replace(read_only).expect("opened");
        journal.add(ITEM, 0, 2, &"2").expect("added");
        assert!(journal.sync().is_err());
        real.write_all(b"{\"item\":").expect("a part of the line");
        journal.add(ITEM, 0, 3, &"3").expect("added");
        assert!(journal.sync().is_err(), "it still cannot be rolled back");

        journal.file = Some(real);
        append(&mut journal, 4, "4");
        let results = found(dir.path(), |_, _| ());
        let attempts = [1, 2, 3, 4].map(|attempt| results.contains_key(&(attempt, "w".to_owned())));
        assert_eq!(attempts, [true, false, false, true]);
    }

    #[test]
    fn partial_line_on_a_full_disk_is_rolled_back() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = ResultJournal::new(dir.path(), "w");
        append(&mut journal, 1, "1");
        let before = fs_err::read(dir.path().join("w.jsonl")).expect("read");
        let full = fs_err::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("opened");
        let real = journal.file.replace(full);
        journal.add(ITEM, 0, 2, &"2").expect("added");
        assert!(journal.sync().is_err());
        journal.file = real;
        append(&mut journal, 3, "3");
        let after = fs_err::read(dir.path().join("w.jsonl")).expect("read");
        assert!(
            after.starts_with(&before)
                && after.ends_with(b"\n")
                && found(dir.path(), |_, _| ()).len() == 2
        );
    }
}
