//! The folder of a queue: its files, and the state of the whole queue.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, ensure};

use super::chunk_entry::ChunkEntry;
use super::chunk_file::create_empty;
use super::item::WorkItem;
use super::settings::{QUEUE, QueueSettings};
use poolcast_base::error::hinted;
use poolcast_base::files::{StagedDirectory, create_new, is_regular, read_regular, sync_directory};
use poolcast_base::manifest;

/// The file with the number of trials, once no more trials will be added.
const SEALED_FILE: &str = "sealed.json";

/// The file with the number of trials whose files are kept.
const KEPT: &str = "kept.json";

/// The file that pauses the queue: while it exists, no worker claims trials.
const PAUSED_FILE: &str = "paused";

/// The largest size of a file that holds one number and some blanks, in bytes.
const MAX_NUMBER_BYTES: u64 = 1024;

/// Maximum number of warnings about files that do not belong to a queue.
const MAX_SKIP_WARNINGS: usize = 20;

/// A queue in a shared folder.
#[derive(Debug, Clone)]
pub struct Queue {
    dir: PathBuf,
    /// The settings that all processes of the queue share.
    pub settings: QueueSettings,
    /// The largest trial and budget of this queue. Items beyond them do not belong to it.
    pub(super) largest_item: WorkItem,
    /// The paths of skipped files that were named in a warning.
    named: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Queue {
    /// Makes an empty queue in the directory `dir`, which must not exist yet.
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
    /// Fails on a folder that is not a queue, or has another version.
    pub fn open(dir: &Path) -> Result<Queue> {
        let settings = manifest::read::<QueueSettings>(dir, QUEUE)?.body;
        Ok(Queue {
            dir: dir.to_owned(),
            settings,
            largest_item: WorkItem {
                trial: usize::MAX,
                budget: usize::MAX,
            },
            named: Arc::default(),
        })
    }

    /// The same queue, but with items up to `largest_item` only. Items beyond it are skipped with a
    /// warning.
    pub fn limited_to(self, largest_item: WorkItem) -> Queue {
        Queue {
            largest_item,
            ..self
        }
    }

    /// Returns true if the queue still exists. It is removed when all trials are done.
    pub fn exists(&self) -> bool {
        self.dir.join(manifest::FILE).is_file()
    }

    /// Removes the queue. If a worker adds a file at the same time, some files remain, but the
    /// folder is no longer a queue.
    pub fn remove(&self) {
        let manifest = fs_err::remove_file(self.dir.join(manifest::FILE));
        let removed = manifest.and_then(|()| fs_err::remove_dir_all(&self.dir));
        removed.unwrap_or_else(|error| tracing::info!("{error}"));
    }

    /// The path of the file or directory `name` in the queue.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Warns once that `path` is skipped, with the reason `why`.
    pub(super) fn warn_skipped(&self, path: &Path, why: &str) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() > MAX_SKIP_WARNINGS || !named.insert(path.to_owned()) {
            return;
        }
        if named.len() <= MAX_SKIP_WARNINGS {
            tracing::warn!("`{}` is skipped: {why}", path.display());
        } else {
            tracing::warn!(
                "more files in `{}` do not belong there, and are skipped",
                self.dir.display()
            );
        }
    }

    /// Seals the queue: no trials will be added to the `count` trials so far. A trial counts once
    /// for each budget.
    pub fn seal(&self, count: usize) -> Result<()> {
        manifest::write_json(&self.path(SEALED_FILE), &count)
    }

    /// The number of trials, once no more will be added.
    pub fn sealed_trials(&self) -> Result<Option<usize>> {
        let path = self.path(SEALED_FILE);
        match read_regular(&path, MAX_NUMBER_BYTES) {
            Ok(text) => {
                let count = serde_json::from_slice(&text)
                    .with_context(|| format!("cannot read `{}`", path.display()))?;
                Ok(Some(count))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns true if the queue is paused, so that no worker claims trials. A link or a pipe in
    /// place of the file counts as missing.
    pub fn is_paused(&self) -> bool {
        is_regular(&self.path(PAUSED_FILE))
    }

    /// Pauses the queue until [`Queue::resume`]; returns false if it was paused before.
    ///
    /// # Errors
    /// Fails if the disk cannot be written, or if something else is in place of the file.
    pub fn pause(&self) -> Result<bool> {
        let path = self.path(PAUSED_FILE);
        match create_new(&path) {
            Ok(file) => file.sync_all()?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                ensure!(
                    self.is_paused(),
                    hinted(
                        format!("`{}` is not a regular file", path.display()),
                        "`poolcast sweep resume DIR` removes it"
                    )
                );
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        sync_directory(&self.dir)?;
        Ok(true)
    }

    /// Undoes [`Queue::pause`]; returns false if the queue was not paused.
    pub fn resume(&self) -> Result<bool> {
        match fs_err::remove_file(self.path(PAUSED_FILE)) {
            Ok(()) => sync_directory(&self.dir).map(|()| true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Sets the number of best trials whose files workers keep.
    pub fn set_kept_trials(&self, keep: usize) -> Result<()> {
        manifest::write_json(&self.path(KEPT), &keep)
    }

    /// The number of best trials whose files workers keep; `None` before a manager has set it.
    pub fn kept_trials(&self) -> Option<usize> {
        let text = read_regular(&self.path(KEPT), MAX_NUMBER_BYTES).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use proptest::prelude::*;

    use super::*;
    use crate::chunk_entry::ChunkState;
    use crate::chunk_file::ChunkFile;
    use crate::item::TrialChunk;
    use crate::journal::ResultJournal;

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
    fn links_and_pipes_do_not_pause_a_queue() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(dir.path(), 1);
        let path = queue.path(PAUSED_FILE);
        let kept = dir.path().join("kept");
        fs_err::write(&kept, "").expect("written");
        std::os::unix::fs::symlink(&kept, &path).expect("linked");
        assert!(!queue.is_paused() && queue.pause().is_err());
        assert!(queue.resume().expect("removed") && kept.exists());
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.expect("it runs").success());
        assert!(!queue.is_paused() && queue.pause().is_err());
        assert!(queue.resume().expect("removed") && queue.pause().expect("paused"));
        assert!(queue.is_paused());
    }

    #[test]
    fn worker_without_lease_cannot_acknowledge() {
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
    fn folders_without_a_queue_are_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        let refused = |dir: &Path| Queue::open(dir).expect_err("refused").to_string();
        assert!(refused(dir.path()).contains("holds no queue"));
        queue(dir.path(), 1);
        let path = dir.path().join("queue/manifest.json");
        let text = fs_err::read_to_string(&path)
            .expect("read")
            .replace("\"format_version\": 3", "\"format_version\": 9");
        fs_err::write(&path, text).expect("written");
        assert!(
            refused(&dir.path().join("queue"))
                .contains("version 9, and this program reads version 3")
        );
        assert!(
            Queue::create(&dir.path().join("queue"), QueueSettings::default()).is_err(),
            "never replaced"
        );
    }

    /// The next action of a worker or a watcher, with the index of a lease among all that were ever
    /// given. `Trial` ends this many more trials of the lease, and writes their results to disk.
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

    /// A lease that a worker holds or believes to hold, with the number of its trials on disk.
    struct Holder {
        lease: ChunkFile,
        written: usize,
        journal: ResultJournal,
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
        /// Leases are kept forever and used at any later time, as by workers that were suspended
        /// and woken.
        #[test]
        fn each_chunk_keeps_one_file_and_each_trial_one_result(acts in acts()) {
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
                        // The holder knows that it has given the lease back.
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
