//! Leases → which of them are lost: those of workers whose heartbeat did not change while this
//! process watched.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::chunk_entry::ChunkState;
use super::heartbeat::parse_heartbeat;
use super::item::WorkItem;
use super::item_store::Queue;
use super::segment::segment_size;
use super::state_counts::ItemStateCounts;
use poolcast_base::process::{Process, ProcessStatus};

/// A lease that was taken from its worker.
#[derive(Debug, Clone)]
pub struct LostLease {
    /// The trial that its worker was at, or one it had ended a moment before.
    pub item: WorkItem,
    /// Which attempt at it failed.
    pub attempt: u32,
    /// The worker that had it.
    pub worker: String,
    /// Whether it was the last attempt: then the trial is given up.
    pub quarantined: bool,
}

/// What a look at all items found.
#[derive(Debug, Default)]
pub(super) struct MonitorReport {
    pub(super) counts: ItemStateCounts,
    pub(super) lost_leases: Vec<LostLease>,
}

/// What this process knows of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerHealth {
    Alive,
    /// Its heartbeat does not change, but not for long enough to call it dead.
    Silent,
    Dead,
}

/// The heartbeat of a worker as this process saw it last.
#[derive(Debug, Default)]
struct SeenHeartbeat {
    /// The bytes of the worker's file.
    beat: Option<Vec<u8>>,
    /// For how long this process has watched without seeing a change.
    unchanged: Duration,
}

/// Watches the leases of a queue.
#[derive(Debug)]
pub(super) struct LeaseMonitor<'a> {
    queue: &'a Queue,
    process: Process,
    /// By worker.
    seen: HashMap<String, SeenHeartbeat>,
    /// The segments in which nothing more will happen, by name.
    closed: HashMap<String, ItemStateCounts>,
    last_look: Option<Instant>,
}

impl<'a> LeaseMonitor<'a> {
    /// Begins to watch `queue`.
    pub(super) fn new(queue: &'a Queue) -> LeaseMonitor<'a> {
        LeaseMonitor {
            queue,
            process: Process::current(),
            seen: HashMap::new(),
            closed: HashMap::new(),
            last_look: None,
        }
    }

    /// Looks at every item that has not ended, and takes the leases of dead workers from them.
    ///
    /// `idle` is the name of a worker that works at nothing. If a lease names it, its claim
    /// succeeded without its knowledge: the lease is given back.
    pub(super) fn check_leases(&mut self, idle: Option<&str>) -> Result<MonitorReport> {
        let watched = self.time_watched();
        let mut report = MonitorReport::default();
        // This is read before the items: whoever seals the queue has added all items before.
        report.counts.sealed = self.queue.sealed_trials()?;

        let mut health = HashMap::new();
        for name in self.queue.segment_names()? {
            let counts = match self.closed.get(&name) {
                Some(counts) => *counts,
                None => self.check_segment(&name, idle, watched, &mut health, &mut report)?,
            };
            report.counts.add(counts);
        }

        self.seen.retain(|worker, _| health.contains_key(worker));
        Ok(report)
    }

    /// Takes the leases of dead workers in the segment `name`, and counts its items. `health` is
    /// what this look found of workers so far.
    fn check_segment(
        &mut self,
        name: &str,
        idle: Option<&str>,
        watched: Duration,
        health: &mut HashMap<String, WorkerHealth>,
        report: &mut MonitorReport,
    ) -> Result<ItemStateCounts> {
        let files = self.queue.chunk_files(name)?;
        for file in &files {
            let ChunkState::Leased(worker) = &file.entry.state else {
                continue;
            };
            if idle == Some(worker) {
                file.give_back()?;
                continue;
            }

            let health = *health
                .entry(worker.clone())
                .or_insert_with(|| self.worker_health(worker, watched));
            if health == WorkerHealth::Dead
                && let Some(next) = file.revoke(self.queue.settings.tries)?
            {
                report.lost_leases.push(LostLease {
                    item: file.entry.next_item(),
                    attempt: file.entry.attempt,
                    worker: worker.clone(),
                    quarantined: next.ended > file.entry.ended,
                });
            }
        }

        let counts = ItemStateCounts::of_entries(files.iter().map(|file| &file.entry));
        let is_over = files.iter().all(|file| file.entry.has_ended());
        if is_over && segment_size(name).is_some_and(|size| files.len() >= size) {
            self.closed.insert(name.to_owned(), counts);
        }
        Ok(counts)
    }

    /// For how long this process has watched since it looked last. It may itself have been stopped
    /// or starved, and what it did not see then counts for little.
    pub(super) fn time_watched(&mut self) -> Duration {
        let longest = Duration::from_secs_f64(self.queue.settings.lease_s / 4.0);
        match self.last_look.replace(Instant::now()) {
            Some(last) => last.elapsed().min(longest),
            None => Duration::ZERO,
        }
    }

    /// What this process knows of `worker`, after it has watched for `watched` more.
    pub(super) fn worker_health(&mut self, worker: &str, watched: Duration) -> WorkerHealth {
        let beat = self.queue.read_heartbeat_file(worker);
        let status = self.process_status(beat.as_deref());

        let is_new = !self.seen.contains_key(worker);
        let seen = self.seen.entry(worker.to_owned()).or_default();
        if status == ProcessStatus::Gone {
            return WorkerHealth::Dead;
        }
        if is_new {
            seen.beat = beat;
            return WorkerHealth::Silent;
        }
        if seen.beat != beat {
            seen.beat = beat;
            seen.unchanged = Duration::ZERO;
            return WorkerHealth::Alive;
        }

        seen.unchanged += watched;
        if seen.unchanged.as_secs_f64() >= self.queue.settings.lease_s {
            WorkerHealth::Dead
        } else {
            WorkerHealth::Silent
        }
    }

    /// Whether `worker` is a process of this host that runs.
    pub(super) fn is_running_here(&self, worker: &str) -> bool {
        let beat = self.queue.read_heartbeat_file(worker);
        self.process_status(beat.as_deref()) == ProcessStatus::Running
    }

    /// What this host knows of the process that wrote a worker's file.
    fn process_status(&self, beat: Option<&[u8]>) -> ProcessStatus {
        match beat.and_then(parse_heartbeat) {
            Some(heartbeat) => heartbeat.process.status_seen_from(&self.process),
            None => ProcessStatus::Unknown,
        }
    }
}
