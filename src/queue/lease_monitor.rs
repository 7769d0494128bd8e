//! Leases → which of them are lost: those of workers whose heart did not beat while this process watched.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::chunk_entry::{ChunkEntry, ChunkState, WorkItem};
use super::heartbeat::parse_heartbeat;
use super::item_store::{Queue, segment_size};
use crate::process::{Process, ProcessStatus};

/// How many trials stand where.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemStateCounts {
    /// Trials that nobody is at.
    pub ready: usize,
    /// Trials of chunks that a worker has: the one it is at, and those it does next.
    pub leased: usize,
    /// Trials whose results are on disk.
    pub done: usize,
    /// Trials that too many workers died of.
    pub quarantined: usize,
    /// How many there are, once no more will come.
    pub sealed: Option<usize>,
}

impl ItemStateCounts {
    /// Counts the trials of `entries`.
    pub fn of_entries<'a>(entries: impl Iterator<Item = &'a ChunkEntry>) -> ItemStateCounts {
        entries.fold(ItemStateCounts::default(), |counts, entry| {
            counts.plus(ItemStateCounts::of_entry(entry))
        })
    }

    fn of_entry(entry: &ChunkEntry) -> ItemStateCounts {
        let quarantined = entry.lost.count_ones() as usize;
        let open = entry.chunk.count - entry.ended;
        let mut counts = ItemStateCounts {
            done: entry.ended - quarantined,
            quarantined,
            ..ItemStateCounts::default()
        };
        match entry.state {
            ChunkState::Ready => counts.ready = open,
            ChunkState::Leased(_) => counts.leased = open,
            ChunkState::Done(_) => {}
        }
        counts
    }

    fn plus(self, other: ItemStateCounts) -> ItemStateCounts {
        ItemStateCounts {
            ready: self.ready + other.ready,
            leased: self.leased + other.leased,
            done: self.done + other.done,
            quarantined: self.quarantined + other.quarantined,
            sealed: self.sealed,
        }
    }

    /// Trials to which nothing more will happen.
    pub fn ended(&self) -> usize {
        self.done + self.quarantined
    }

    /// All trials.
    pub fn total(&self) -> usize {
        self.ready + self.leased + self.ended()
    }

    /// Whether all trials have ended, and no more will come. What others put there may count as ended, too, so that it takes
    /// more than enough of them.
    pub fn is_over(&self) -> bool {
        self.sealed.is_some_and(|sealed| self.ended() >= sealed) && self.ended() == self.total()
    }
}

/// A lease that was taken from its worker.
#[derive(Debug, Clone)]
pub struct LostLease {
    /// The trial that its worker was at, or one it had ended a moment before.
    pub item: WorkItem,
    /// Which attempt at it failed.
    pub attempt: u32,
    /// Who had it.
    pub worker: String,
    /// Whether it was the last attempt.
    pub quarantined: bool,
}

#[derive(Debug, Default)]
struct SeenHeartbeat {
    beat: Option<Vec<u8>>,
    /// For how long this process has watched without seeing a change.
    unchanged: Duration,
}

/// What became of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerHealth {
    Alive,
    /// Nobody can say yet.
    Silent,
    Dead,
}

/// Watches the leases of a queue.
#[derive(Debug)]
pub(super) struct LeaseMonitor<'a> {
    queue: &'a Queue,
    process: Process,
    seen: HashMap<String, SeenHeartbeat>,
    /// Directories in which nothing more will happen.
    closed: HashMap<String, ItemStateCounts>,
    looked: Option<Instant>,
}

impl<'a> LeaseMonitor<'a> {
    /// Begins to watch.
    pub(super) fn new(queue: &'a Queue) -> LeaseMonitor<'a> {
        let (seen, closed) = (HashMap::new(), HashMap::new());
        LeaseMonitor {
            queue,
            process: Process::current(),
            seen,
            closed,
            looked: None,
        }
    }

    /// Looks at every item that has not ended, and takes the leases of the dead from them. `idle` is the name of a worker
    /// that works at nothing: a lease of its own is one whose granting it never heard of, and is given back.
    pub(super) fn look(&mut self, idle: Option<&str>) -> Result<(ItemStateCounts, Vec<LostLease>)> {
        let watched = self.watched();
        // Before the items: whoever seals has added all items before.
        let mut all = ItemStateCounts {
            sealed: self.queue.sealed_trials()?,
            ..ItemStateCounts::default()
        };
        let (mut lost, mut verdicts) = (Vec::new(), HashMap::new());
        for name in self.queue.segment_names()? {
            all = all.plus(match self.closed.get(&name) {
                Some(counts) => *counts,
                None => self.look_into(&name, idle, watched, &mut verdicts, &mut lost)?,
            });
        }
        self.seen.retain(|worker, _| verdicts.contains_key(worker));
        Ok((all, lost))
    }

    fn look_into(
        &mut self,
        name: &str,
        idle: Option<&str>,
        watched: Duration,
        verdicts: &mut HashMap<String, WorkerHealth>,
        lost: &mut Vec<LostLease>,
    ) -> Result<ItemStateCounts> {
        let found = self.queue.chunk_files(name)?;
        for file in &found {
            let ChunkState::Leased(worker) = &file.entry.state else {
                continue;
            };
            if idle == Some(worker) {
                file.give_back()?;
                continue;
            }
            let verdict = *verdicts
                .entry(worker.clone())
                .or_insert_with(|| self.judge(worker, watched));
            if verdict == WorkerHealth::Dead
                && let Some(next) = file.revoke(self.queue.settings.tries)?
            {
                let (item, attempt, worker) =
                    (file.entry.next_item(), file.entry.attempt, worker.clone());
                lost.push(LostLease {
                    item,
                    attempt,
                    worker,
                    quarantined: next.ended > file.entry.ended,
                });
            }
        }
        let counts = ItemStateCounts::of_entries(found.iter().map(|file| &file.entry));
        let is_over = found.iter().all(|file| file.entry.has_ended());
        if is_over && segment_size(name).is_some_and(|size| found.len() >= size) {
            self.closed.insert(name.to_owned(), counts);
        }
        Ok(counts)
    }

    /// For how long this process has watched since it looked last. It may itself have been stopped or starved, and what it
    /// did not see then counts for little.
    pub(super) fn watched(&mut self) -> Duration {
        let most = Duration::from_secs_f64(self.queue.settings.lease_s / 4.0);
        self.looked
            .replace(Instant::now())
            .map_or(Duration::ZERO, |looked| looked.elapsed().min(most))
    }

    /// What became of `worker`, after `watched` more.
    pub(super) fn judge(&mut self, worker: &str, watched: Duration) -> WorkerHealth {
        let beat = self.queue.read_heartbeat_file(worker);
        let fate = beat
            .as_deref()
            .and_then(parse_heartbeat)
            .map_or(ProcessStatus::Unknown, |beat| {
                beat.process.status_seen_from(&self.process)
            });
        let is_new = !self.seen.contains_key(worker);
        let seen = self.seen.entry(worker.to_owned()).or_default();
        if fate == ProcessStatus::Gone {
            return WorkerHealth::Dead;
        }
        if is_new || seen.beat != beat {
            *seen = SeenHeartbeat {
                beat,
                unchanged: Duration::ZERO,
            };
            return if is_new {
                WorkerHealth::Silent
            } else {
                WorkerHealth::Alive
            };
        }
        seen.unchanged += watched;
        let is_over = seen.unchanged.as_secs_f64() >= self.queue.settings.lease_s;
        if is_over {
            WorkerHealth::Dead
        } else {
            WorkerHealth::Silent
        }
    }

    /// Whether `worker` is of this host, and at work.
    pub(super) fn is_running_here(&self, worker: &str) -> bool {
        let beat = self
            .queue
            .read_heartbeat_file(worker)
            .as_deref()
            .and_then(parse_heartbeat);
        beat.is_some_and(|beat| {
            beat.process.status_seen_from(&self.process) == ProcessStatus::Running
        })
    }
}
