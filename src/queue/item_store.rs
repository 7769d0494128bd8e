//! The queue's folder: chunks of trials come in, and change their state by a rename each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::chunk_entry::{ChunkEntry, ChunkState, TrialChunk, WorkItem};
use super::journal::{self, JournalResult, StoredResult};
use crate::files::{StagedDirectory, read_regular, sync_directory};
use crate::manifest;
use crate::shard::ArtefactFormat;
use crate::temporary;

/// Queues.
pub const QUEUE: ArtefactFormat = ArtefactFormat {
    name: "queue",
    version: 2,
    rebuild: "poolcast sweep init CONFIG -o DIR",
};

/// The most chunks in one directory.
const SEGMENT: usize = 1000;

/// As many are in one directory where there are that many.
const SEGMENT_LEAST: usize = 64;

/// The most directories of what is added at once, unless there are more than [`SEGMENT`] chunks for each.
const SEGMENTS: usize = 500;

const SEALED: &str = "sealed.json";

/// The file that says of how many trials files are kept.
const KEPT: &str = "kept.json";

/// The file that says that nobody takes anything.
const PAUSED: &str = "paused";

/// A number, and some blanks.
const SEALED_BYTES: u64 = 1024;

/// The most files that are named because they do not belong into a queue.
const NAMED: usize = 20;

/// What all who share a queue must agree on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QueueSettings {
    /// How often a heart beats.
    pub heartbeat_s: f64,
    /// After so long without a beat a lease is lost. Network file systems show a change up to a minute late.
    pub lease_s: f64,
    /// After so many lost leases a trial is given up.
    pub tries: u32,
}

impl Default for QueueSettings {
    fn default() -> QueueSettings {
        QueueSettings {
            heartbeat_s: 10.0,
            lease_s: 120.0,
            tries: 5,
        }
    }
}

/// Which of several results of one trial counts, the greatest: how many trials of the chunk had ended when the attempt began, the
/// number of the attempt, whether the chunk names its worker.
type Rank = (usize, u32, bool);

/// A queue in a shared folder.
#[derive(Debug, Clone)]
pub struct Queue {
    dir: PathBuf,
    /// What all agree on.
    pub settings: QueueSettings,
    /// What items have at most: others were put there by somebody else.
    most: WorkItem,
    /// What was skipped and named.
    named: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// A file of a chunk: its state, and the directory it stands in.
#[derive(Debug, Clone)]
pub(super) struct ChunkFile {
    pub(super) dir: PathBuf,
    /// The chunk and its state.
    pub(super) entry: ChunkEntry,
}

impl ChunkFile {
    fn rename(&self, to: &ChunkEntry) -> (PathBuf, std::io::Result<()>) {
        let target = self.dir.join(to.file_name());
        let done = std::fs::rename(self.dir.join(self.entry.file_name()), &target);
        (target, done)
    }

    /// Takes a ready chunk for `worker`; `None` if somebody was faster.
    pub(super) fn claim(&self, worker: &str) -> Result<Option<ChunkFile>> {
        self.change_own_state(self.entry.with_state(ChunkState::Leased(worker.to_owned())))
    }

    /// Gives the chunk a state that only this worker gives it; `None` if somebody was faster.
    fn change_own_state(&self, entry: ChunkEntry) -> Result<Option<ChunkFile>> {
        let (target, done) = self.rename(&entry);
        match done {
            // On NFS a rename can succeed and its answer get lost; then the second try finds nothing to rename.
            Err(_) if target.try_exists().unwrap_or(false) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("cannot rename to `{}`", target.display()));
            }
            Ok(()) => {}
        }
        Ok(Some(ChunkFile {
            dir: self.dir.clone(),
            entry,
        }))
    }

    /// Gives the chunk the state `entry`, which others might give it, too; `false` if somebody was faster.
    pub(super) fn change_state(&self, entry: &ChunkEntry) -> Result<bool> {
        match self.rename(entry) {
            (_, Ok(())) => Ok(true),
            (_, Err(error)) if error.kind() == ErrorKind::NotFound => Ok(false),
            (target, Err(error)) => {
                Err(error).with_context(|| format!("cannot rename to `{}`", target.display()))
            }
        }
    }

    /// Says that the first `ended` trials of a lease have ended, after their results are on disk: the lease as it is then, or
    /// the chunk's last state; `None` if the lease was lost before.
    pub(super) fn acknowledge(&self, ended: usize) -> Result<Option<ChunkFile>> {
        let ChunkState::Leased(worker) = &self.entry.state else {
            return Ok(None);
        };
        self.change_own_state(self.entry.with_ended(ended, worker))
    }

    /// Gives a lease back: nobody died, and it is no attempt that counts.
    pub(super) fn give_back(&self) -> Result<bool> {
        self.change_state(&self.entry.with_state(ChunkState::Ready))
    }

    /// Takes a lease from a worker that is dead: the next attempt at the trial it was at, which is given up after `tries`.
    pub(super) fn revoke(&self, tries: u32) -> Result<Option<ChunkEntry>> {
        let ChunkState::Leased(worker) = &self.entry.state else {
            return Ok(None);
        };
        let next = match self.entry.attempt < tries {
            true => ChunkEntry {
                attempt: self.entry.attempt + 1,
                ..self.entry.with_state(ChunkState::Ready)
            },
            false => self.entry.with_lost(worker),
        };
        Ok(self.change_state(&next)?.then_some(next))
    }
}

impl Queue {
    /// Makes an empty queue in the directory `dir`, which must not be one yet.
    pub fn create(dir: &Path, settings: QueueSettings) -> Result<Queue> {
        let staging = StagedDirectory::new(dir, false)?;
        for name in ["items", "workers", "results", "running", "seat"] {
            fs_err::create_dir(staging.path().join(name))?;
        }
        let seat = ChunkEntry::new(WorkItem {
            trial: 0,
            budget: 0,
        });
        create_empty(&staging.path().join("seat").join(seat.file_name()))?;
        manifest::write(staging.path(), QUEUE, "", &settings)?;
        staging.commit()?;
        Queue::open(dir)
    }

    /// Opens the queue in `dir`.
    ///
    /// # Errors
    /// Fails on a folder that is no queue, or one of another version.
    pub fn open(dir: &Path) -> Result<Queue> {
        let settings = manifest::read::<QueueSettings>(dir, QUEUE)?.body;
        let most = WorkItem {
            trial: usize::MAX,
            budget: usize::MAX,
        };
        Ok(Queue {
            dir: dir.to_owned(),
            settings,
            most,
            named: Arc::default(),
        })
    }

    /// The same queue, of items up to `most` alone: any others are skipped and named.
    pub fn limited_to(self, most: WorkItem) -> Queue {
        Queue { most, ..self }
    }

    /// Says once that what stands at `path` is skipped, and why.
    fn warn_skipped(&self, path: &Path, why: &str) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() <= NAMED && named.insert(path.to_owned()) {
            match named.len() {
                0..=NAMED => tracing::warn!("`{}` is skipped: {why}", path.display()),
                _ => tracing::warn!(
                    "more in `{}` does not belong there, and is skipped",
                    self.dir.display()
                ),
            }
        }
    }

    /// Whether the queue is still there: it is removed when all is done.
    pub fn exists(&self) -> bool {
        self.dir.join(manifest::FILE).is_file()
    }

    /// The directory called `name` in the queue.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Adds `chunks`, with one priority: greater ones are taken first. Equal calls add once, whoever makes them and however
    /// often they were killed: `batch` names the call.
    pub fn add_chunks(&self, batch: usize, priority: u8, chunks: &[TrialChunk]) -> Result<()> {
        // Directory after directory is taken from: small ones, so that the order counts, but not too many of them.
        let size = chunks
            .len()
            .div_ceil(SEGMENTS)
            .clamp(SEGMENT_LEAST, SEGMENT);
        for (number, chunks) in chunks.chunks(size).enumerate() {
            let count = chunks.len();
            self.add_segment(
                &format!("p{priority:03}.b{batch:06}.s{number:05}.n{count}"),
                chunks,
            )?;
        }
        Ok(())
    }

    /// A directory of chunks appears whole or not at all, and once: none is ever empty again, so no rename replaces it.
    fn add_segment(&self, name: &str, chunks: &[TrialChunk]) -> Result<()> {
        let target = self.path("items").join(name);
        if target.exists() {
            return Ok(());
        }
        temporary::remove_leftovers(&self.path("items"));
        let (temporary, ()) =
            temporary::make_beside(&target, "tmp", |path| fs_err::create_dir(path))?;
        let made = chunks.iter().try_for_each(|chunk| {
            create_empty(&temporary.join(ChunkEntry::new(*chunk).file_name()))
        });
        let made = made.and_then(|()| sync_directory(&temporary));
        if let Err(error) = made.and_then(|()| Ok(fs_err::rename(&temporary, &target)?)) {
            let _ = fs_err::remove_dir_all(&temporary);
            return if target.exists() { Ok(()) } else { Err(error) };
        }
        sync_directory(&self.path("items"))
    }

    /// Says that no more than the `count` trials added so far will come, those of each budget counted.
    pub fn seal(&self, count: usize) -> Result<()> {
        manifest::write_json(&self.path(SEALED), &count)
    }

    /// How many trials there are, once no more will come.
    pub fn sealed_trials(&self) -> Result<Option<usize>> {
        let path = self.path(SEALED);
        match read_regular(&path, SEALED_BYTES) {
            Ok(text) => {
                let count = serde_json::from_slice(&text);
                count
                    .map(Some)
                    .with_context(|| format!("cannot read `{}`", path.display()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether nobody takes anything.
    pub fn is_paused(&self) -> bool {
        self.path(PAUSED).exists()
    }

    /// Says that nobody takes anything until [`Queue::resume`]; `false` if that was said before.
    pub fn pause(&self) -> Result<bool> {
        let made = fs_err::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(self.path(PAUSED));
        match made {
            Ok(file) => file.sync_all()?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        sync_directory(&self.dir)?;
        Ok(true)
    }

    /// Takes back what [`Queue::pause`] said; `false` if it had not been said.
    pub fn resume(&self) -> Result<bool> {
        match fs_err::remove_file(self.path(PAUSED)) {
            Ok(()) => sync_directory(&self.dir).map(|()| true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// The names of the directories of items; those of the greatest priority come first.
    pub(super) fn segment_names(&self) -> Result<Vec<String>> {
        let entries = fs_err::read_dir(self.path("items"))?.filter_map(|entry| entry.ok());
        let mut names = Vec::new();
        for entry in entries {
            let Some(name) = entry
                .file_name()
                .into_string()
                .ok()
                .filter(|name| segment_size(name).is_some())
            else {
                continue;
            };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => names.push(name),
                _ => self.warn_skipped(&entry.path(), "it is no directory of items"),
            }
        }
        names.sort_by(|a, b| {
            segment_priority(b)
                .cmp(segment_priority(a))
                .then_with(|| a.cmp(b))
        });
        Ok(names)
    }

    /// What stands in one of [`Queue::segment_names`].
    pub(super) fn chunk_files(&self, name: &str) -> Result<Vec<ChunkFile>> {
        let mut found = list_chunk_files(&self.path("items").join(name))?;
        found.retain(|ChunkFile { dir, entry }| {
            let WorkItem { trial, budget } = entry.chunk.first;
            let last = trial.saturating_add(entry.chunk.count - 1);
            let is_known = trial >= 1 && last <= self.most.trial && budget <= self.most.budget;
            if !is_known {
                self.warn_skipped(&dir.join(entry.file_name()), "the sweep has no such item");
            }
            is_known
        });
        Ok(found)
    }

    /// Every chunk of the queue.
    pub fn chunk_entries(&self) -> Result<Vec<ChunkEntry>> {
        let segments = self
            .segment_names()?
            .into_iter()
            .map(|name| self.chunk_files(&name));
        Ok(segments
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .map(|file| file.entry)
            .collect())
    }

    /// Where the worker of `entry` works on it: a directory of this attempt alone.
    pub fn work_dir(&self, entry: &ChunkEntry) -> PathBuf {
        self.path("running").join(attempt_name(entry))
    }

    /// Where other attempts at the trial of `entry` worked, whatever their budgets, the latest first.
    pub fn other_attempt_dirs(&self, entry: &ChunkEntry) -> Result<Vec<PathBuf>> {
        let (own, trial) = (self.work_dir(entry), entry.chunk.first.trial);
        let entries = fs_err::read_dir(self.path("running"))?.filter_map(|entry| entry.ok());
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut found: Vec<(WorkItem, u32, String)> = names
            .filter_map(|name| {
                let mut parts = name.split('.');
                let item = WorkItem::parse(parts.next()?)?;
                let attempt = parts.next()?.strip_prefix('a')?.parse().ok()?;
                (item.trial == trial).then_some((item, attempt, name))
            })
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        Ok(found
            .into_iter()
            .map(|(_, _, name)| self.path("running").join(name))
            .filter(|dir| *dir != own)
            .collect())
    }

    /// The trials that somebody began and whose files are still here.
    pub fn begun_trials(&self) -> Result<BTreeSet<usize>> {
        let entries = fs_err::read_dir(self.path("running"))?.filter_map(|entry| entry.ok());
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        Ok(names
            .filter_map(|name| Some(WorkItem::parse(name.split('.').next()?)?.trial))
            .collect())
    }

    /// Says of how many of the best trials workers keep the files.
    pub fn set_kept_trials(&self, keep: usize) -> Result<()> {
        manifest::write_json(&self.path(KEPT), &keep)
    }

    /// Of how many of the best trials workers keep the files; `None` before a manager has said it.
    pub fn kept_trials(&self) -> Option<usize> {
        serde_json::from_slice(&read_regular(&self.path(KEPT), SEALED_BYTES).ok()?).ok()
    }

    /// How many chunks were added so far.
    pub fn added_chunks(&self) -> Result<usize> {
        Ok(self
            .segment_names()?
            .iter()
            .filter_map(|name| segment_size(name))
            .sum())
    }

    /// The results of all trials that have one: of every attempt that was acknowledged, and of no other.
    ///
    /// # Errors
    /// Fails when an acknowledged result cannot be read: its disk has lost it.
    pub fn results<R: DeserializeOwned>(
        &self,
        entries: &[ChunkEntry],
    ) -> Result<HashMap<WorkItem, R>> {
        let found = self.find_results(entries, |result: R| result)?;
        Ok(found
            .into_iter()
            .map(|(item, found)| (item, found.kept))
            .collect())
    }

    /// As [`Queue::results`], in order; of each result `keep` says what is kept of it, and [`super::ResultReader`] reads it whole.
    pub fn find_results<R: DeserializeOwned, T>(
        &self,
        entries: &[ChunkEntry],
        keep: impl Fn(R) -> T,
    ) -> Result<BTreeMap<WorkItem, StoredResult<T>>> {
        let mut by_first: BTreeMap<(usize, usize), Vec<&ChunkEntry>> = BTreeMap::new();
        for entry in entries {
            by_first
                .entry((entry.chunk.first.budget, entry.chunk.first.trial))
                .or_default()
                .push(entry);
        }
        // The chunks of a sweep do not overlap, but for what others put there.
        let holder = |written: &JournalResult<'_, R>| {
            let WorkItem { trial, budget } = written.item;
            // Of a trial alone its file says who has ended it.
            let is_named = |entry: &ChunkEntry| {
                entry.state.worker() == Some(written.worker) && entry.attempt == written.attempt
                    || entry.chunk.count > 1
                    || !entry.has_ended()
            };
            let before = by_first.range(..=(budget, trial)).next_back();
            let mut entries = before.into_iter().flat_map(|(_, entries)| entries);
            entries
                .find(|entry| entry.has_result(written.item) && is_named(entry))
                .copied()
        };
        let mut best: BTreeMap<WorkItem, (Rank, StoredResult<T>)> = BTreeMap::new();
        journal::read(
            &self.path("results"),
            |path, why| self.warn_skipped(path, why),
            |written: JournalResult<'_, R>| {
                let Some(entry) = holder(&written) else {
                    return;
                };
                // Attempts follow each other, and those after the acknowledged one began behind it. Equal ones came to the same.
                let rank = (
                    written.ended,
                    written.attempt,
                    entry.state.worker() == Some(written.worker),
                );
                match best.get(&written.item) {
                    Some((known, _)) if *known > rank => {}
                    _ => drop(best.insert(written.item, (rank, written.keep(&keep)))),
                }
            },
        )?;
        for entry in entries {
            let Some(item) = entry
                .items_with_results()
                .find(|item| !best.contains_key(item))
            else {
                continue;
            };
            if by_first[&(entry.chunk.first.budget, entry.chunk.first.trial)].len() > 1 {
                self.warn_skipped(
                    Path::new(&entry.file_name()),
                    "its trials have another file, and this one no result",
                );
                continue;
            }
            let worker = entry.state.worker().unwrap_or("of a worker");
            let place = self.path("results").join(format!("{worker}.jsonl"));
            bail!(
                "`{}` has lost the result of trial {}",
                place.display(),
                item.trial
            );
        }
        Ok(best
            .into_iter()
            .map(|(item, (_, found))| (item, found))
            .collect())
    }

    /// Removes the queue. What is left where a worker adds a file at this moment is no queue any more.
    pub fn remove(&self) {
        let manifest = fs_err::remove_file(self.dir.join(manifest::FILE));
        let removed = manifest.and_then(|()| fs_err::remove_dir_all(&self.dir));
        removed.unwrap_or_else(|error| tracing::info!("{error}"));
    }
}

/// What stands in the directory `dir`.
pub(super) fn list_chunk_files(dir: &Path) -> Result<Vec<ChunkFile>> {
    let files = fs_err::read_dir(dir)?.filter_map(|entry| entry.ok());
    let files = files.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let entries = files.filter_map(|entry| ChunkEntry::parse(entry.file_name().to_str()?));
    Ok(entries
        .map(|entry| ChunkFile {
            dir: dir.to_owned(),
            entry,
        })
        .collect())
}

/// The part of a directory's name that says its priority.
pub(super) fn segment_priority(segment: &str) -> &str {
    segment.split('.').next().unwrap_or("")
}

/// How many items a directory of items has. A listing made while files are renamed may show more or fewer.
pub(super) fn segment_size(segment: &str) -> Option<usize> {
    let parts: Vec<&str> = segment.split('.').collect();
    let [priority, batch, number, count] = parts[..] else {
        return None;
    };
    let is_number = |part: &str, letter| {
        part.strip_prefix(letter)
            .is_some_and(|rest| rest.parse::<usize>().is_ok())
    };
    let known = is_number(priority, 'p') && is_number(batch, 'b') && is_number(number, 's');
    let count = known
        .then(|| count.strip_prefix('n')?.parse().ok())
        .flatten();
    count.filter(|count| *count <= SEGMENT)
}

/// The name of an attempt by its worker, whatever came of it.
fn attempt_name(entry: &ChunkEntry) -> String {
    format!(
        "{}.a{}.{}",
        entry.chunk.first,
        entry.attempt,
        entry.state.worker().unwrap_or("nobody")
    )
}

fn create_empty(path: &Path) -> Result<()> {
    Ok(fs_err::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map(drop)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::queue::journal::ResultJournal;

    fn items(count: usize) -> Vec<WorkItem> {
        (1..=count)
            .map(|trial| WorkItem { trial, budget: 5 })
            .collect()
    }

    fn chunks(count: usize) -> Vec<TrialChunk> {
        items(count).into_iter().map(TrialChunk::from).collect()
    }

    fn queue(dir: &Path, count: usize) -> Queue {
        let queue = Queue::create(
            &dir.join("queue"),
            QueueSettings {
                tries: 3,
                ..QueueSettings::default()
            },
        )
        .expect("made");
        queue.add_chunks(0, 100, &chunks(count)).expect("added");
        queue
    }

    fn all(queue: &Queue) -> Vec<ChunkFile> {
        queue
            .segment_names()
            .expect("listed")
            .iter()
            .flat_map(|name| queue.chunk_files(name).expect("listed"))
            .collect()
    }

    fn append(journal: &mut ResultJournal, entry: &ChunkEntry, result: &str) {
        journal
            .add(entry.next_item(), entry.ended, entry.attempt, &result)
            .expect("added");
        journal.sync().expect("written");
    }

    #[test]
    fn items_are_added_once_and_in_small_directories() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(dir.path(), 700);
        let leftover = queue.path("items").join(".host-1-00000000");
        fs_err::create_dir(leftover).expect("what a killed manager leaves");
        all(&queue)[0].claim("w").expect("claimed").expect("ready");
        queue
            .add_chunks(0, 100, &chunks(700))
            .expect("nothing to add");
        assert_eq!(
            (
                queue.segment_names().expect("listed").len(),
                all(&queue).len()
            ),
            (11, 700)
        );
        queue.add_chunks(1, 200, &chunks(1)).expect("added");
        assert!(
            queue.segment_names().expect("listed")[0].starts_with("p200."),
            "the greater priority comes first"
        );
        assert_eq!(queue.sealed_trials().expect("read"), None);
        queue.seal(701).expect("sealed");
        assert_eq!(queue.sealed_trials().expect("read"), Some(701));
    }

    #[test]
    fn who_lost_a_lease_cannot_acknowledge_and_the_first_result_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(dir.path(), 1);
        let sleeper = all(&queue)[0]
            .claim("sleeper")
            .expect("claimed")
            .expect("ready");
        assert!(all(&queue)[0].revoke(3).expect("lost").is_some());
        assert!(
            sleeper.acknowledge(1).expect("asked").is_none(),
            "it woke before anybody took the item"
        );
        let next = all(&queue)[0]
            .claim("next")
            .expect("claimed")
            .expect("ready");
        assert!(
            sleeper.acknowledge(1).expect("asked").is_none()
                && !sleeper.give_back().expect("asked")
        );
        let write = |worker: &str, entry: &ChunkEntry, result: &str| {
            append(
                &mut ResultJournal::new(&queue.path("results"), worker),
                entry,
                result,
            );
        };
        write("sleeper", &sleeper.entry, "late");
        write("next", &next.entry, "in time");
        assert!(next.acknowledge(1).expect("acknowledged").is_some());
        assert!(
            sleeper.acknowledge(1).expect("asked").is_none()
                && sleeper.revoke(3).expect("asked").is_none()
        );
        let results: HashMap<WorkItem, String> = queue
            .results(&queue.chunk_entries().expect("listed"))
            .expect("read");
        assert_eq!(results[&items(1)[0]], "in time");
        fs_err::remove_file(queue.path("results").join("next.jsonl")).expect("removed");
        let lost = queue
            .results::<String>(&queue.chunk_entries().expect("listed"))
            .expect_err("it is gone")
            .to_string();
        assert!(
            lost.contains("next.jsonl") && lost.contains("trial 1"),
            "{lost}"
        );
    }

    #[test]
    fn an_item_that_kills_its_workers_is_quarantined() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(dir.path(), 1);
        for attempt in 1..=3 {
            let lease = all(&queue)[0].claim("w").expect("claimed").expect("ready");
            assert_eq!(lease.entry.attempt, attempt);
            lease.revoke(3).expect("lost").expect("it was leased");
        }
        let entry = &all(&queue)[0].entry;
        assert_eq!(
            (&entry.state, entry.given_up_items().next()),
            (&ChunkState::Done("w".to_owned()), Some(items(1)[0]))
        );
        assert_eq!(
            queue
                .results::<String>(std::slice::from_ref(entry))
                .expect("read")
                .len(),
            0,
            "and it has no result"
        );
    }

    #[test]
    fn other_folders_are_refused_by_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let refused = |dir: &Path| Queue::open(dir).expect_err("refused").to_string();
        assert!(refused(dir.path()).contains("holds no queue"));
        queue(dir.path(), 1);
        let path = dir.path().join("queue/manifest.json");
        let text = fs_err::read_to_string(&path)
            .expect("read")
            .replace("\"format_version\": 2", "\"format_version\": 9");
        fs_err::write(&path, text).expect("written");
        assert!(
            refused(&dir.path().join("queue"))
                .contains("version 9, and this program reads version 2")
        );
        assert!(
            Queue::create(&dir.path().join("queue"), QueueSettings::default()).is_err(),
            "never replaced"
        );
    }

    /// What a worker or a watcher does next, with the lease at that place among those ever given; `Trial` ends so many more of
    /// its trials, and writes them to disk.
    #[derive(Debug, Clone)]
    enum Act {
        Claim(usize),
        Trial(usize, usize),
        Acknowledge(usize),
        GiveBack(usize),
        Lose(usize),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = (0..7_u8, 0..1000_usize, 1..4_usize).prop_map(|(kind, at, count)| match kind {
            0 | 1 => Act::Claim(at),
            2 | 3 => Act::Trial(at, count),
            4 => Act::Acknowledge(at),
            5 => Act::GiveBack(at),
            _ => Act::Lose(at),
        });
        proptest::collection::vec(act, 0..80)
    }

    /// A lease that somebody holds or thinks to hold, and how many of its trials are on disk.
    struct Holder {
        lease: ChunkFile,
        written: usize,
        journal: ResultJournal,
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
        /// Leases are kept for ever and used at any later time, as by workers that were stopped and woken.
        #[test]
        fn one_file_a_chunk_and_one_result_a_trial_whatever_happens(acts in acts()) {
            let dir = tempfile::tempdir().expect("a directory");
            let queue = Queue::create(&dir.path().join("queue"), QueueSettings { tries: 3, ..QueueSettings::default() }).expect("made");
            let of = |first: usize, count| TrialChunk { first: WorkItem { trial: first, budget: 5 }, count };
            queue.add_chunks(0, 100, &[of(1, 1), of(2, 5), of(7, 2)]).expect("added");
            let (mut holders, mut ends) = (Vec::<Holder>::new(), BTreeMap::<WorkItem, String>::new());
            for (number, act) in acts.into_iter().enumerate() {
                let at = match &act {
                    Act::Claim(at) | Act::Trial(at, _) | Act::Acknowledge(at) | Act::GiveBack(at) | Act::Lose(at) => *at,
                };
                if matches!(act, Act::Claim(_)) {
                    let ready: Vec<ChunkFile> = all(&queue).into_iter().filter(|s| s.entry.state == ChunkState::Ready).collect();
                    let worker = format!("w{number}");
                    let lease = if ready.is_empty() { None } else { ready[at % ready.len()].claim(&worker).expect("claimed") };
                    let journal = ResultJournal::new(&queue.path("results"), &worker);
                    holders.extend(lease.map(|lease| Holder { lease, written: 0, journal }));
                    continue;
                }
                let count = holders.len();
                let Some(holder) = holders.get_mut(at % count.max(1)) else { continue };
                let entry = holder.lease.entry.clone();
                let worker = entry.state.worker().expect("leased").to_owned();
                match act {
                    Act::Claim(_) => {}
                    Act::Trial(_, count) => for _ in 0..count.min(entry.open_items().count().saturating_sub(holder.written)) {
                        let item = entry.chunk.item_at(entry.ended + holder.written);
                        holder.journal.add(item, entry.ended, entry.attempt, &format!("{worker} {number}")).expect("added");
                        holder.journal.sync().expect("written");
                        holder.written += 1;
                    },
                    Act::Acknowledge(_) if holder.written == 0 => {}
                    Act::Acknowledge(_) => {
                        let ended = entry.ended + holder.written;
                        if let Some(next) = holder.lease.acknowledge(ended).expect("asked") {
                            let results = queue.results::<String>(std::slice::from_ref(&next.entry)).expect("read");
                            for item in entry.open_items().take(holder.written) {
                                prop_assert!(results[&item].starts_with(&format!("{worker} ")), "the result of who acknowledged it");
                                prop_assert!(ends.insert(item, results[&item].clone()).is_none(), "a trial ends once");
                            }
                            (holder.lease, holder.written) = (next, 0);
                        }
                    }
                    Act::GiveBack(_) if holder.written > 0 => {}
                    Act::GiveBack(_) => {
                        holder.lease.give_back().expect("asked");
                        // Who has given back knows it.
                        holders.remove(at % count);
                        continue;
                    }
                    Act::Lose(_) => drop(holder.lease.revoke(3).expect("asked")),
                }
                if holder.lease.entry.has_ended() {
                    holders.remove(at % count);
                }
            }
            let entries = queue.chunk_entries().expect("listed");
            let mut found: Vec<WorkItem> = entries.iter().flat_map(|entry| entry.chunk.items()).collect();
            found.sort();
            prop_assert_eq!(found, items(8));
            prop_assert_eq!(queue.results::<String>(&entries).expect("read").into_iter().collect::<BTreeMap<_, _>>(), ends.clone());
            for entry in &entries {
                let quarantined = entry.given_up_items().all(|item| !ends.contains_key(&item));
                prop_assert!(quarantined && entry.open_items().all(|item| !ends.contains_key(&item)), "nothing that ended comes back");
            }
        }
    }
}
