//! The manager's seat: one item that is never done, leased as items are, so that of several managers one works.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Result;

use super::backoff::Backoff;
use super::chunk_entry::{ChunkEntry, ChunkState};
use super::heartbeat::Heartbeat;
use super::item_store::{ChunkFile, Queue, list_chunk_files};
use super::lease_monitor::{LeaseMonitor, WorkerHealth};

/// Who has the seat.
#[derive(Debug)]
pub(super) enum LeaderElection {
    /// This process; `Some` names the dead manager that it was taken from.
    Here(Leadership, Option<String>),
    /// Another manager, which lives.
    Elsewhere(String),
    /// Nobody that we waited for: we were told to stop.
    Stopped,
}

/// The manager's seat. It is given back when it is dropped.
#[derive(Debug)]
pub(super) struct Leadership {
    lease: ChunkFile,
    _pulse: Heartbeat,
}

impl Leadership {
    /// Takes the seat, if need be from a manager whose heart does not beat while we watch.
    pub(super) fn take(queue: &Queue, stop: &AtomicBool) -> Result<LeaderElection> {
        let heartbeat = Heartbeat::start(queue)?;
        let mut watch = LeaseMonitor::new(queue);
        let mut pace = Backoff::new(queue.settings.heartbeat_s / 4.0);
        while !stop.load(Ordering::Relaxed) {
            let watched = watch.watched();
            for seat in list_chunk_files(&dir(queue))? {
                let ChunkState::Leased(other) = &seat.entry.state else {
                    if let Some(lease) = seat.claim(&heartbeat.worker)? {
                        return Ok(LeaderElection::Here(
                            Leadership {
                                lease,
                                _pulse: heartbeat,
                            },
                            None,
                        ));
                    }
                    continue;
                };
                match watch.judge(other, watched) {
                    WorkerHealth::Alive => return Ok(LeaderElection::Elsewhere(other.clone())),
                    WorkerHealth::Silent if watch.is_running_here(other) => {
                        return Ok(LeaderElection::Elsewhere(other.clone()));
                    }
                    WorkerHealth::Silent => {}
                    WorkerHealth::Dead => {
                        let next = ChunkEntry {
                            attempt: seat.entry.attempt.saturating_add(1),
                            ..seat.entry.with_state(ChunkState::Ready)
                        };
                        if seat.change_state(&next)?
                            && let Some(lease) = (ChunkFile {
                                entry: next,
                                ..seat.clone()
                            })
                            .claim(&heartbeat.worker)?
                        {
                            return Ok(LeaderElection::Here(
                                Leadership {
                                    lease,
                                    _pulse: heartbeat,
                                },
                                Some(other.clone()),
                            ));
                        }
                    }
                }
            }
            pace.wait(stop);
        }
        Ok(LeaderElection::Stopped)
    }

    /// Whether it is still ours: another manager may have taken it while this process was stopped.
    pub(super) fn is_ours(&self) -> bool {
        self.lease.dir.join(self.lease.entry.file_name()).exists()
    }
}

impl Drop for Leadership {
    fn drop(&mut self) {
        let _ = self.lease.give_back();
    }
}

fn dir(queue: &Queue) -> PathBuf {
    queue.path("seat")
}

impl Queue {
    /// The manager in the seat, dead or alive.
    pub fn leader_name(&self) -> Option<String> {
        list_chunk_files(&dir(self))
            .ok()?
            .into_iter()
            .find_map(|seat| match seat.entry.state {
                ChunkState::Leased(worker) => Some(worker),
                _ => None,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::QueueSettings;

    #[test]
    fn one_manager_sits_and_a_dead_one_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let settings = QueueSettings {
            heartbeat_s: 0.02,
            lease_s: 0.2,
            tries: 3,
        };
        let queue = Queue::create(&dir.path().join("queue"), settings).expect("made");
        let stop = AtomicBool::new(false);
        let take = || Leadership::take(&queue, &stop).expect("asked");
        let LeaderElection::Here(first, None) = take() else {
            panic!("the seat was free")
        };
        let LeaderElection::Elsewhere(name) = take() else {
            panic!("the seat was taken")
        };
        assert_eq!(
            (name.as_str(), queue.leader_name().as_deref()),
            (
                first._pulse.worker.as_str(),
                Some(first._pulse.worker.as_str())
            )
        );
        // Its file stands still and says nothing of its process, as with a host that has lost its power.
        let file = queue.path("workers").join(first._pulse.worker.as_str());
        let lost = first.lease.clone();
        drop(first);
        assert!(!file.exists() && queue.leader_name().is_none());
        let again = list_chunk_files(&super::dir(&queue)).expect("listed")[0]
            .claim(lost.entry.state.worker().expect("leased"))
            .expect("claimed");
        let old = Leadership {
            lease: again.expect("ready"),
            _pulse: Heartbeat::start(&queue).expect("a heart"),
        };
        let LeaderElection::Here(second, Some(dead)) = take() else {
            panic!("the seat is free again")
        };
        assert!(ChunkState::Leased(dead) == lost.entry.state && second.is_ours() && !old.is_ours());
        drop(old);
        assert!(second.is_ours(), "who lost the seat cannot give it away");
        stop.store(true, Ordering::Relaxed);
        assert!(matches!(take(), LeaderElection::Stopped));
    }
}
