//! The queue's folder: items come in, and change their state by a rename each.

use std::collections::{BTreeSet, HashMap};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::journal::{self, Key};
use super::token::{Item, State, Token};
use crate::files::{Staging, read_regular, sync_directory};
use crate::manifest;
use crate::shard::Format;
use crate::temporary;

/// Queues.
pub const QUEUE: Format = Format { name: "queue", version: 1, rebuild: "poolcast sweep init CONFIG -o DIR" };

/// The most items in one directory.
const SEGMENT: usize = 256;

const SEALED: &str = "sealed.json";

/// A number, and some blanks.
const SEALED_BYTES: u64 = 1024;

/// The most files that are named because they do not belong into a queue.
const NAMED: usize = 20;

/// What all who share a queue must agree on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    /// How often a heart beats.
    pub heartbeat_s: f64,
    /// After so long without a beat a lease is lost. Network file systems show a change up to a minute late.
    pub lease_s: f64,
    /// After so many lost leases an item is quarantined.
    pub tries: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { heartbeat_s: 10.0, lease_s: 120.0, tries: 5 }
    }
}

/// A queue in a shared folder.
#[derive(Debug, Clone)]
pub struct Queue {
    dir: PathBuf,
    /// What all agree on.
    pub settings: Settings,
    /// What items have at most: others were put there by somebody else.
    most: Item,
    /// What was skipped and named.
    named: Arc<Mutex<BTreeSet<PathBuf>>>,
}

/// A file of an item: its state, and the directory it stands in.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) dir: PathBuf,
    /// The item and its state.
    pub(super) token: Token,
}

impl Standing {
    fn rename(&self, to: &Token) -> (PathBuf, std::io::Result<()>) {
        let target = self.dir.join(to.name());
        let done = std::fs::rename(self.dir.join(self.token.name()), &target);
        (target, done)
    }

    /// Gives the item a state that only this worker gives it; `false` if somebody was faster.
    pub(super) fn claim(&self, state: State) -> Result<Option<Standing>> {
        let token = self.token.with(state);
        let (target, done) = self.rename(&token);
        match done {
            // On NFS a rename can succeed and its answer get lost; then the second try finds nothing to rename.
            Err(_) if target.try_exists().unwrap_or(false) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("cannot rename to `{}`", target.display())),
            Ok(()) => {}
        }
        Ok(Some(Standing { dir: self.dir.clone(), token }))
    }

    /// Gives the item the state `token`, which others might give it, too; `false` if somebody was faster.
    pub(super) fn turn_into(&self, token: &Token) -> Result<bool> {
        match self.rename(token) {
            (_, Ok(())) => Ok(true),
            (_, Err(error)) if error.kind() == ErrorKind::NotFound => Ok(false),
            (target, Err(error)) => Err(error).with_context(|| format!("cannot rename to `{}`", target.display())),
        }
    }

    /// Ends a lease for good, after its result is on disk; `false` if the lease was lost before.
    pub(super) fn acknowledge(&self, failed: bool) -> Result<bool> {
        let State::Leased(worker) = &self.token.state else { return Ok(false) };
        let last = if failed { State::Failed } else { State::Done };
        Ok(self.claim(last(worker.clone()))?.is_some())
    }

    /// Gives a lease back: nobody died, and it is no attempt that counts.
    pub(super) fn give_back(&self) -> Result<bool> {
        self.turn_into(&self.token.with(State::Ready))
    }

    /// Takes a lease from a worker that is dead: the next attempt, or quarantine after `tries`.
    pub(super) fn lose(&self, tries: u32) -> Result<Option<Token>> {
        let Token { item, attempt, state: State::Leased(worker) } = &self.token else { return Ok(None) };
        let next = match *attempt < tries {
            true => Token { item: *item, attempt: attempt + 1, state: State::Ready },
            false => self.token.with(State::Quarantined(worker.clone())),
        };
        Ok(self.turn_into(&next)?.then_some(next))
    }
}

impl Queue {
    /// Makes an empty queue in the directory `dir`, which must not be one yet.
    pub fn create(dir: &Path, settings: Settings) -> Result<Queue> {
        let staging = Staging::new(dir, false)?;
        for name in ["items", "workers", "results", "running", "seat"] {
            fs_err::create_dir(staging.path().join(name))?;
        }
        let seat = Token::new(Item { trial: 0, budget: 0 });
        create_empty(&staging.path().join("seat").join(seat.name()))?;
        manifest::write(staging.path(), QUEUE, "", &settings)?;
        staging.commit()?;
        Queue::open(dir)
    }

    /// Opens the queue in `dir`.
    ///
    /// # Errors
    /// Fails on a folder that is no queue, or one of another version.
    pub fn open(dir: &Path) -> Result<Queue> {
        let settings = manifest::read::<Settings>(dir, QUEUE)?.body;
        let most = Item { trial: usize::MAX, budget: usize::MAX };
        Ok(Queue { dir: dir.to_owned(), settings, most, named: Arc::default() })
    }

    /// The same queue, of items up to `most` alone: any others are skipped and named.
    pub fn up_to(self, most: Item) -> Queue {
        Queue { most, ..self }
    }

    /// Says once that what stands at `path` is skipped, and why.
    fn skip(&self, path: &Path, why: &str) {
        let mut named = self.named.lock().unwrap_or_else(PoisonError::into_inner);
        if named.len() <= NAMED && named.insert(path.to_owned()) {
            match named.len() {
                0..=NAMED => tracing::warn!("`{}` is skipped: {why}", path.display()),
                _ => tracing::warn!("more in `{}` does not belong there, and is skipped", self.dir.display()),
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

    /// Adds `items`, with one priority: greater ones are taken first. Equal calls add once, whoever makes them and however
    /// often they were killed: `batch` names the call.
    pub fn add(&self, batch: usize, priority: u8, items: &[Item]) -> Result<()> {
        for (number, items) in items.chunks(SEGMENT).enumerate() {
            let count = items.len();
            self.add_segment(&format!("p{priority:03}.b{batch:06}.s{number:05}.n{count}"), items)?;
        }
        Ok(())
    }

    /// A directory of items appears whole or not at all, and once: none is ever empty again, so no rename replaces it.
    fn add_segment(&self, name: &str, items: &[Item]) -> Result<()> {
        let target = self.path("items").join(name);
        if target.exists() {
            return Ok(());
        }
        temporary::remove_leftovers(&self.path("items"));
        let (temporary, ()) = temporary::make_beside(&target, "tmp", |path| fs_err::create_dir(path))?;
        let made = items.iter().try_for_each(|item| create_empty(&temporary.join(Token::new(*item).name())));
        let made = made.and_then(|()| sync_directory(&temporary));
        if let Err(error) = made.and_then(|()| Ok(fs_err::rename(&temporary, &target)?)) {
            let _ = fs_err::remove_dir_all(&temporary);
            return if target.exists() { Ok(()) } else { Err(error) };
        }
        sync_directory(&self.path("items"))
    }

    /// Says that no more than the `count` items added so far will come.
    pub fn seal(&self, count: usize) -> Result<()> {
        manifest::write_json(&self.path(SEALED), &count)
    }

    /// How many items there are, once no more will come.
    pub fn sealed(&self) -> Result<Option<usize>> {
        let path = self.path(SEALED);
        match read_regular(&path, SEALED_BYTES) {
            Ok(text) => {
                let count = serde_json::from_slice(&text);
                count.map(Some).with_context(|| format!("cannot read `{}`", path.display()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The names of the directories of items; those of the greatest priority come first.
    pub(super) fn segments(&self) -> Result<Vec<String>> {
        let entries = fs_err::read_dir(self.path("items"))?.filter_map(|entry| entry.ok());
        let mut names = Vec::new();
        for entry in entries {
            let Some(name) = entry.file_name().into_string().ok().filter(|name| size(name).is_some()) else { continue };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => names.push(name),
                _ => self.skip(&entry.path(), "it is no directory of items"),
            }
        }
        names.sort_by(|a, b| priority(b).cmp(priority(a)).then_with(|| a.cmp(b)));
        Ok(names)
    }

    /// What stands in one of [`Queue::segments`].
    pub(super) fn segment(&self, name: &str) -> Result<Vec<Standing>> {
        let mut found = standings(&self.path("items").join(name))?;
        found.retain(|Standing { dir, token }| {
            let Item { trial, budget } = token.item;
            let is_known = (1..=self.most.trial).contains(&trial) && budget <= self.most.budget;
            if !is_known {
                self.skip(&dir.join(token.name()), "the sweep has no such item");
            }
            is_known
        });
        Ok(found)
    }

    /// Every item of the queue.
    pub fn items(&self) -> Result<Vec<Token>> {
        let segments = self.segments()?.into_iter().map(|name| self.segment(&name));
        Ok(segments.collect::<Result<Vec<_>>>()?.into_iter().flatten().map(|standing| standing.token).collect())
    }

    /// Where the worker of `token` works on it: a directory of this attempt alone.
    pub fn work_dir(&self, token: &Token) -> PathBuf {
        self.path("running").join(attempt_name(token))
    }

    /// Where other attempts at the trial of `token` worked, whatever their budgets, the latest first.
    pub fn other_dirs(&self, token: &Token) -> Result<Vec<PathBuf>> {
        let own = self.work_dir(token);
        let entries = fs_err::read_dir(self.path("running"))?.filter_map(|entry| entry.ok());
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut found: Vec<(Item, u32, String)> = names
            .filter_map(|name| {
                let mut parts = name.split('.');
                let item = Item::parse(parts.next()?)?;
                let attempt = parts.next()?.strip_prefix('a')?.parse().ok()?;
                (item.trial == token.item.trial).then_some((item, attempt, name))
            })
            .collect();
        found.sort_by(|a, b| b.cmp(a));
        Ok(found.into_iter().map(|(_, _, name)| self.path("running").join(name)).filter(|dir| *dir != own).collect())
    }

    /// How many items were added so far.
    pub fn added(&self) -> Result<usize> {
        Ok(self.segments()?.iter().filter_map(|name| size(name)).sum())
    }

    /// The results of all items that have one: of every attempt that was acknowledged, and of no other.
    ///
    /// # Errors
    /// Fails when an acknowledged result cannot be read: its disk has lost it.
    pub fn results<R: DeserializeOwned>(&self, tokens: &[Token]) -> Result<HashMap<Item, R>> {
        let mut results: HashMap<Key, R> = journal::read(&self.path("results"), |path, why| self.skip(path, why))?;
        let mut files: HashMap<Item, usize> = HashMap::new();
        tokens.iter().for_each(|token| *files.entry(token.item).or_default() += 1);
        let mut found = HashMap::new();
        for token in tokens {
            let (State::Done(worker) | State::Failed(worker)) = &token.state else { continue };
            let result = results.remove(&(token.item, token.attempt, worker.clone()));
            if result.is_none() && files[&token.item] > 1 {
                self.skip(Path::new(&token.name()), "its item has another file, and this one no result");
                continue;
            }
            let result = result.with_context(|| {
                let place = self.path("results").join(format!("{worker}.jsonl"));
                format!("`{}` has lost the result of trial {}", place.display(), token.item.trial)
            })?;
            found.insert(token.item, result);
        }
        Ok(found)
    }

    /// Removes the queue. What is left where a worker adds a file at this moment is no queue any more.
    pub fn remove(&self) {
        let manifest = fs_err::remove_file(self.dir.join(manifest::FILE));
        let removed = manifest.and_then(|()| fs_err::remove_dir_all(&self.dir));
        removed.unwrap_or_else(|error| tracing::info!("{error}"));
    }
}

/// What stands in the directory `dir`.
pub(super) fn standings(dir: &Path) -> Result<Vec<Standing>> {
    let files = fs_err::read_dir(dir)?.filter_map(|entry| entry.ok());
    let files = files.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let tokens = files.filter_map(|entry| Token::parse(entry.file_name().to_str()?));
    Ok(tokens.map(|token| Standing { dir: dir.to_owned(), token }).collect())
}

/// The part of a directory's name that says its priority.
pub(super) fn priority(segment: &str) -> &str {
    segment.split('.').next().unwrap_or("")
}

/// How many items a directory of items has. A listing made while files are renamed may show more or fewer.
pub(super) fn size(segment: &str) -> Option<usize> {
    let parts: Vec<&str> = segment.split('.').collect();
    let [priority, batch, number, count] = parts[..] else { return None };
    let is_number = |part: &str, letter| part.strip_prefix(letter).is_some_and(|rest| rest.parse::<usize>().is_ok());
    let known = is_number(priority, 'p') && is_number(batch, 'b') && is_number(number, 's');
    let count = known.then(|| count.strip_prefix('n')?.parse().ok()).flatten();
    count.filter(|count| *count <= SEGMENT)
}

/// The name of an attempt by its worker, whatever came of it.
fn attempt_name(token: &Token) -> String {
    format!("{}.a{}.{}", token.item, token.attempt, token.state.worker().unwrap_or("nobody"))
}

fn create_empty(path: &Path) -> Result<()> {
    Ok(fs_err::OpenOptions::new().write(true).create_new(true).open(path).map(drop)?)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::sweep::queue::journal::Journal;

    fn items(count: usize) -> Vec<Item> {
        (1..=count).map(|trial| Item { trial, budget: 5 }).collect()
    }

    fn queue(dir: &Path, count: usize) -> Queue {
        let queue = Queue::create(&dir.join("queue"), Settings { tries: 3, ..Settings::default() }).expect("made");
        queue.add(0, 100, &items(count)).expect("added");
        queue
    }

    fn all(queue: &Queue) -> Vec<Standing> {
        queue.segments().expect("listed").iter().flat_map(|name| queue.segment(name).expect("listed")).collect()
    }

    fn leased(worker: &str) -> State {
        State::Leased(worker.to_owned())
    }

    #[test]
    fn items_are_added_once_and_in_small_directories() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(dir.path(), 700);
        let leftover = queue.path("items").join(".host-1-00000000");
        fs_err::create_dir(leftover).expect("what a killed manager leaves");
        all(&queue)[0].claim(leased("w")).expect("claimed").expect("ready");
        queue.add(0, 100, &items(700)).expect("nothing to add");
        assert_eq!((queue.segments().expect("listed").len(), all(&queue).len()), (3, 700));
        queue.add(1, 200, &items(1)).expect("added");
        assert!(queue.segments().expect("listed")[0].starts_with("p200."), "the greater priority comes first");
        assert_eq!(queue.sealed().expect("read"), None);
        queue.seal(701).expect("sealed");
        assert_eq!(queue.sealed().expect("read"), Some(701));
    }

    #[test]
    fn who_lost_a_lease_cannot_acknowledge_and_the_first_result_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(dir.path(), 1);
        let sleeper = all(&queue)[0].claim(leased("sleeper")).expect("claimed").expect("ready");
        assert!(all(&queue)[0].lose(3).expect("lost").is_some());
        assert!(!sleeper.acknowledge(false).expect("asked"), "it woke before anybody took the item");
        let next = all(&queue)[0].claim(leased("next")).expect("claimed").expect("ready");
        assert!(!sleeper.acknowledge(false).expect("asked") && !sleeper.give_back().expect("asked"));
        let write = |worker: &str, attempt, result: &str| {
            Journal::new(&queue.path("results"), worker).append(items(1)[0], attempt, &result).expect("written");
        };
        write("sleeper", 1, "late");
        write("next", 2, "in time");
        assert!(next.acknowledge(false).expect("acknowledged"));
        assert!(!sleeper.acknowledge(false).expect("asked") && sleeper.lose(3).expect("asked").is_none());
        let results: HashMap<Item, String> = queue.results(&queue.items().expect("listed")).expect("read");
        assert_eq!(results[&items(1)[0]], "in time");
        fs_err::remove_file(queue.path("results").join("next.jsonl")).expect("removed");
        let lost = queue.results::<String>(&queue.items().expect("listed")).expect_err("it is gone").to_string();
        assert!(lost.contains("next.jsonl") && lost.contains("trial 1"), "{lost}");
    }

    #[test]
    fn an_item_that_kills_its_workers_is_quarantined() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue(dir.path(), 1);
        for attempt in 1..=3 {
            let lease = all(&queue)[0].claim(leased("w")).expect("claimed").expect("ready");
            assert_eq!(lease.token.attempt, attempt);
            lease.lose(3).expect("lost").expect("it was leased");
        }
        assert_eq!(all(&queue)[0].token.state, State::Quarantined("w".to_owned()));
    }

    #[test]
    fn other_folders_are_refused_by_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let refused = |dir: &Path| Queue::open(dir).expect_err("refused").to_string();
        assert!(refused(dir.path()).contains("holds no queue"));
        queue(dir.path(), 1);
        let path = dir.path().join("queue/manifest.json");
        let text =
            fs_err::read_to_string(&path).expect("read").replace("\"format_version\": 1", "\"format_version\": 9");
        fs_err::write(&path, text).expect("written");
        assert!(refused(&dir.path().join("queue")).contains("version 9, and this program reads version 1"));
        assert!(Queue::create(&dir.path().join("queue"), Settings::default()).is_err(), "never replaced");
    }

    /// What a worker or a watcher does next, with the lease at that place among those ever given.
    #[derive(Debug, Clone)]
    enum Act {
        Claim(usize),
        Acknowledge(usize),
        GiveBack(usize),
        Lose(usize),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act = (0..4_u8, 0..1000_usize).prop_map(|(kind, at)| match kind {
            0 => Act::Claim(at),
            1 => Act::Acknowledge(at),
            2 => Act::GiveBack(at),
            _ => Act::Lose(at),
        });
        proptest::collection::vec(act, 0..60)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
        /// Leases are kept for ever and used at any later time, as by workers that were stopped and woken.
        #[test]
        fn one_file_an_item_and_one_end_whatever_happens(acts in acts()) {
            let dir = tempfile::tempdir().expect("a directory");
            let queue = queue(dir.path(), 4);
            let (mut leases, mut ends) = (Vec::<Standing>::new(), BTreeMap::new());
            for (number, act) in acts.into_iter().enumerate() {
                match act {
                    Act::Claim(at) => {
                        let ready: Vec<Standing> = all(&queue).into_iter().filter(|s| s.token.state == State::Ready).collect();
                        if !ready.is_empty() {
                            leases.extend(ready[at % ready.len()].claim(leased(&format!("w{number}"))).expect("claimed"));
                        }
                    }
                    _ if leases.is_empty() => {}
                    Act::Acknowledge(at) => {
                        let lease = &leases[at % leases.len()];
                        // A second acknowledgement by the same worker says that the first one counted.
                        if lease.acknowledge(number % 5 == 0).expect("asked") {
                            let before = ends.insert(lease.token.item, lease.token.clone());
                            prop_assert!(before.is_none_or(|before| before == lease.token));
                        }
                    }
                    Act::GiveBack(at) => drop(leases[at % leases.len()].give_back().expect("asked")),
                    Act::Lose(at) => drop(leases[at % leases.len()].lose(3).expect("asked")),
                }
            }
            let tokens = queue.items().expect("listed");
            let mut found: Vec<Item> = tokens.iter().map(|token| token.item).collect();
            found.sort();
            prop_assert_eq!(found, items(4));
            for token in &tokens {
                if let State::Done(worker) | State::Failed(worker) = &token.state {
                    prop_assert_eq!(&ends[&token.item], &token.with(leased(worker)));
                } else {
                    prop_assert!(!ends.contains_key(&token.item), "an acknowledged item never comes back");
                }
            }
        }
    }
}
