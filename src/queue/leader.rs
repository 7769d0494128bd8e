//! The election of a leader among the managers of a queue. The seat is an item that is never done,
//! and is leased like other items. Only the manager that holds its lease works.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use super::backoff::Backoff;
use super::chunk_entry::{ChunkEntry, ChunkState};
use super::chunk_file::{ChunkFile, list_chunk_files};
use super::heartbeat::Heartbeat;
use super::item_store::Queue;
use super::lease_monitor::{LeaseMonitor, WorkerHealth};

/// The outcome of an election.
#[derive(Debug)]
pub(super) enum LeaderElection {
    /// This process leads.
    Won {
        leadership: Leadership,
        /// The dead leader whose lease was revoked.
        dead_leader: Option<String>,
    },
    /// Another manager leads, and is alive.
    OtherLeader(String),
    /// This process was asked to stop before the election was decided.
    Stopped,
}

/// The lease of the seat. It is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Leadership {
    lease: ChunkFile,
    _heartbeat: Heartbeat,
}

impl Leadership {
    /// Claims the seat, also from a leader whose heartbeat does not change while this process
    /// watches.
    pub(super) fn take(queue: &Queue, stop: &AtomicBool) -> Result<LeaderElection> {
        let heartbeat = Heartbeat::start(queue)?;
        let mut monitor = LeaseMonitor::new(queue);
        let mut backoff = Backoff::new(queue.settings.heartbeat_s / 4.0);

        while !stop.load(Ordering::Relaxed) {
            let watched = monitor.time_watched();
            for seat in list_chunk_files(&seat_dir(queue))? {
                let ChunkState::Leased(leader) = &seat.entry.state else {
                    if let Some(lease) = seat.claim(&heartbeat.worker)? {
                        return Ok(LeaderElection::Won {
                            leadership: Leadership {
                                lease,
                                _heartbeat: heartbeat,
                            },
                            dead_leader: None,
                        });
                    }
                    continue;
                };

                match monitor.worker_health(leader, watched) {
                    WorkerHealth::Alive => {
                        return Ok(LeaderElection::OtherLeader(leader.clone()));
                    }
                    WorkerHealth::Silent if monitor.is_running_here(leader) => {
                        return Ok(LeaderElection::OtherLeader(leader.clone()));
                    }
                    WorkerHealth::Silent => {}
                    WorkerHealth::Dead => {
                        monitor.give_back_leases(leader)?;
                        if let Some(lease) = claim_from_dead(&seat, &heartbeat.worker)? {
                            return Ok(LeaderElection::Won {
                                leadership: Leadership {
                                    lease,
                                    _heartbeat: heartbeat,
                                },
                                dead_leader: Some(leader.clone()),
                            });
                        }
                    }
                }
            }
            backoff.wait(stop);
        }
        Ok(LeaderElection::Stopped)
    }

    /// Returns true if this manager still has the seat. Another manager may have claimed it while
    /// this process was suspended.
    pub(super) fn is_ours(&self) -> bool {
        self.lease.dir.join(self.lease.entry.file_name()).exists()
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        let _ = self.lease.give_back();
    }
}

/// Claims the seat of a dead leader for `worker`; `None` if another manager was faster.
fn claim_from_dead(seat: &ChunkFile, worker: &str) -> Result<Option<ChunkFile>> {
    let next = ChunkEntry {
        attempt: seat.entry.attempt.saturating_add(1),
        ..seat.entry.with_state(ChunkState::Ready)
    };
    if !seat.change_state(&next)? {
        return Ok(None);
    }
    let free_seat = ChunkFile {
        entry: next,
        ..seat.clone()
    };
    free_seat.claim(worker)
}

fn seat_dir(queue: &Queue) -> PathBuf {
    queue.path("seat")
}

impl Queue {
    /// The name of the leader, dead or alive.
    pub fn leader_name(&self) -> Option<String> {
        let seats = list_chunk_files(&seat_dir(self)).ok()?;
        seats.into_iter().find_map(|seat| match seat.entry.state {
            ChunkState::Leased(worker) => Some(worker),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{QueueSettings, TrialChunk, WorkItem};
    use poolcast_base::process::Process;

    #[test]
    fn one_manager_leads_and_a_dead_leader_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = QueueSettings {
            heartbeat_s: 0.02,
            lease_s: 0.2,
            tries: 3,
        };
        let queue = Queue::create(&dir.path().join("queue"), settings).expect("made");
        let stop = AtomicBool::new(false);
        let take = || Leadership::take(&queue, &stop).expect("asked");
        let LeaderElection::Won {
            leadership: first,
            dead_leader: None,
        } = take()
        else {
            panic!("the seat was free")
        };
        let LeaderElection::OtherLeader(name) = take() else {
            panic!("the seat was taken")
        };
        assert_eq!(
            (name.as_str(), queue.leader_name().as_deref()),
            (
                first._heartbeat.worker.as_str(),
                Some(first._heartbeat.worker.as_str())
            )
        );
        // The file does not change and names no process, like on a host that has lost its power.
        let file = queue.path("workers").join(first._heartbeat.worker.as_str());
        let lost = first.lease.clone();
        drop(first);
        assert!(!file.exists() && queue.leader_name().is_none());
        let again = list_chunk_files(&seat_dir(&queue)).expect("listed")[0]
            .claim(lost.entry.state.worker().expect("leased"))
            .expect("claimed");
        let old = Leadership {
            lease: again.expect("ready"),
            _heartbeat: Heartbeat::start(&queue).expect("a heart"),
        };
        let LeaderElection::Won {
            leadership: second,
            dead_leader: Some(dead),
        } = take()
        else {
            panic!("the seat is free again")
        };
        assert!(ChunkState::Leased(dead) == lost.entry.state && second.is_ours() && !old.is_ours());
        drop(old);
        assert!(second.is_ours(), "who lost the seat cannot give it away");
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(take(), LeaderElection::Stopped));
    }

    /// A queue whose two items are leased by `w1` and `w2`, and whose leader is `m1`. All are dead, and
    /// `w1` was in the process of the leader.
    fn queue_of_dead_workers(dir: &tempfile::TempDir) -> Queue {
        let path = dir.path().join("queue");
        let queue = Queue::create(&path, QueueSettings::default()).expect("made");
        let chunks = [1, 2].map(|trial| TrialChunk::from(WorkItem { trial, budget: 1 }));
        queue.add_chunks(0, 100, &chunks).expect("added");

        let name = queue.segment_names().expect("listed").remove(0);
        for file in queue.chunk_files(&name).expect("listed") {
            let worker = format!("w{}", file.entry.next_item().trial);
            file.claim(&worker).expect("claimed").expect("ready");
        }
        let seats = list_chunk_files(&seat_dir(&queue)).expect("listed");
        seats[0].claim("m1").expect("claimed").expect("free");
        let dead = |start: &str| {
            let mut process = serde_json::json!(Process::current());
            process["start"] = start.into();
            process
        };
        for (worker, process) in [("w1", dead("1")), ("w2", dead("2")), ("m1", dead("1"))] {
            let heartbeat = serde_json::json!({"beat": 1, "process": process, "work": null});
            let file = queue.path("workers").join(worker);
            fs_err::write(file, heartbeat.to_string()).expect("written");
        }
        queue
    }

    fn attempts(queue: &Queue) -> Vec<(u32, bool)> {
        let mut entries = queue.chunk_entries().expect("listed");
        entries.sort_by_key(|entry| entry.chunk);
        let attempt = |entry: &ChunkEntry| (entry.attempt, entry.state == ChunkState::Ready);
        entries.iter().map(attempt).collect()
    }

    #[test]
    fn death_of_a_whole_process_is_no_attempt() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue_of_dead_workers(&dir);
        let report = LeaseMonitor::new(&queue)
            .check_leases(None)
            .expect("checked");
        assert_eq!(report.lost_leases.len(), 2);
        assert_eq!(attempts(&queue), [(1, true), (2, true)]);
    }

    #[test]
    fn next_leader_gives_back_the_leases_of_the_process() {
        let dir = tempfile::tempdir().expect("a directory");
        let queue = queue_of_dead_workers(&dir);
        let won = Leadership::take(&queue, &AtomicBool::new(false)).expect("asked");
        assert!(matches!(won, LeaderElection::Won { .. }));
        assert_eq!(attempts(&queue), [(1, true), (1, false)]);
        LeaseMonitor::new(&queue)
            .check_leases(None)
            .expect("checked");
        assert_eq!(attempts(&queue), [(1, true), (2, true)]);
    }
}
