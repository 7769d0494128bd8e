//! Detects lost leases: the leases of workers whose heartbeat did not change while this process
//! watched.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::chunk_entry::{ChunkEntry, ChunkState};
use super::chunk_file::ChunkFile;
use super::heartbeat::parse_heartbeat;
use super::item::WorkItem;
use super::item_store::Queue;
use super::segment::segment_size;
use super::state_counts::ItemStateCounts;
use poolcast_base::process::{Process, ProcessStatus};

/// A lease that was revoked from its worker.
#[derive(Debug, Clone)]
pub struct LostLease {
    /// The trial that its worker was running, or one that it had ended a moment before.
    pub item: WorkItem,
    /// The number of the failed attempt.
    pub attempt: u32,
    /// The worker that had the lease.
    pub worker: String,
    /// True if it was the last attempt, so that the trial is given up.
    pub quarantined: bool,
}

/// The result of a check of all items.
#[derive(Debug, Default)]
pub(super) struct MonitorReport {
    pub(super) counts: ItemStateCounts,
    pub(super) lost_leases: Vec<LostLease>,
}

/// The health of a worker, as this process observes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerHealth {
    Alive,
    /// Its heartbeat does not change, but not for long enough to count as dead.
    Silent,
    Dead,
}

/// The last heartbeat of a worker that this process has seen.
#[derive(Debug, Default)]
struct SeenHeartbeat {
    /// The bytes of the worker's file.
    beat: Option<Vec<u8>>,
    /// Time that this process has watched without seeing a change.
    unchanged: Duration,
}

/// Monitors the leases of a queue.
#[derive(Debug)]
pub(super) struct LeaseMonitor<'a> {
    queue: &'a Queue,
    process: Process,
    /// The last heartbeats, by worker.
    seen: HashMap<String, SeenHeartbeat>,
    /// The segments whose items have all ended, by name.
    closed: HashMap<String, ItemStateCounts>,
    last_look: Option<Instant>,
}

impl<'a> LeaseMonitor<'a> {
    /// Begins to monitor `queue`.
    pub(super) fn new(queue: &'a Queue) -> LeaseMonitor<'a> {
        LeaseMonitor {
            queue,
            process: Process::current(),
            seen: HashMap::new(),
            closed: HashMap::new(),
            last_look: None,
        }
    }

    /// Checks all items that have not ended, and revokes the leases of dead workers.
    ///
    /// `idle` is the name of a worker without work. If a lease names it, the worker's claim
    /// succeeded without its knowledge, and the lease is given back.
    pub(super) fn check_leases(&mut self, idle: Option<&str>) -> Result<MonitorReport> {
        let watched = self.time_watched();
        let mut report = MonitorReport::default();
        // This is read before the items, because all items are added before the queue is sealed.
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

    /// Revokes the leases of dead workers in the segment `name`, and counts its items. `health` has
    /// the health of the workers seen so far in this check.
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
                && let Some(next) = self.revoke(file, worker)?
            {
                report.lost_leases.push(LostLease {
                    item: file.entry.next_item(),
                    attempt: file.entry.attempt,
                    worker: worker.clone(),
                    quarantined: next.ended > file.entry.ended,
                });
            }
        }

        let counts = ItemStateCounts::from_entries(files.iter().map(|file| &file.entry));
        let is_over = files.iter().all(|file| file.entry.has_ended());
        if is_over && segment_size(name).is_some_and(|size| files.len() >= size) {
            self.closed.insert(name.to_owned(), counts);
        }
        Ok(counts)
    }

    /// Revokes the lease of the dead `worker`. If the leader died in the same process, somebody killed
    /// that process or its host, and the trial is not to blame: the lease is given back then, so that
    /// this attempt does not count.
    fn revoke(&self, file: &ChunkFile, worker: &str) -> Result<Option<ChunkEntry>> {
        let leader = self.queue.leader_name();
        if leader.is_some_and(|leader| self.are_one_process(&leader, worker)) {
            let is_ready = file.give_back()?;
            return Ok(is_ready.then(|| file.entry.with_state(ChunkState::Ready)));
        }
        file.revoke(self.queue.settings.tries)
    }

    /// Gives back the leases of all workers in the process of the dead `leader`. The seat must still
    /// name it, because other processes revoke these leases once it does not.
    pub(super) fn give_back_leases(&self, leader: &str) -> Result<()> {
        for name in self.queue.segment_names()? {
            for file in self.queue.chunk_files(&name)? {
                if let ChunkState::Leased(worker) = &file.entry.state
                    && self.are_one_process(leader, worker)
                {
                    file.give_back()?;
                }
            }
        }
        Ok(())
    }

    /// Returns true if both workers are known to belong to one process.
    fn are_one_process(&self, a: &str, b: &str) -> bool {
        let process = |worker| {
            let heartbeat = parse_heartbeat(&self.queue.read_heartbeat_file(worker)?)?;
            Some(heartbeat.process)
        };
        process(a).is_some_and(|a| Some(a) == process(b))
    }

    /// Time that this process has watched since its last check, limited to a quarter of a lease.
    /// This process may itself have been suspended, and cannot count a longer time as watched.
    pub(super) fn time_watched(&mut self) -> Duration {
        let longest = Duration::from_secs_f64(self.queue.settings.lease_s / 4.0);
        match self.last_look.replace(Instant::now()) {
            Some(last) => last.elapsed().min(longest),
            None => Duration::ZERO,
        }
    }

    /// The health of `worker`, after this process has watched it for `watched` more.
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

    /// Returns true if `worker` is a running process of this host.
    pub(super) fn is_running_here(&self, worker: &str) -> bool {
        let beat = self.queue.read_heartbeat_file(worker);
        self.process_status(beat.as_deref()) == ProcessStatus::Running
    }

    /// The status of the process that wrote a worker's file, as known on this host.
    fn process_status(&self, beat: Option<&[u8]>) -> ProcessStatus {
        match beat.and_then(parse_heartbeat) {
            Some(heartbeat) => heartbeat.process.status_seen_from(&self.process),
            None => ProcessStatus::Unknown,
        }
    }
}
