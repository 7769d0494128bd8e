//! The heartbeat of a worker: a small file with a counter. A process that sees the counter grow
//! knows that the worker is alive, independent of clocks.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::chunk_entry::is_worker_name;
use super::hand_out::Dispatch;
use super::item::WorkItem;
use super::item_store::Queue;
use poolcast_base::files::read_regular;
use poolcast_base::process::Process;

/// The size of a worker's file, in bytes. The file is overwritten in place, so that a full disk
/// does not stop the heartbeat.
const FILE_BYTES: usize = 1024;

/// The largest size of a worker's file that is read, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// Minimum time between two heartbeats of a worker that begins many items.
const MIN_BEAT_INTERVAL: Duration = Duration::from_secs(1);

/// Maximum interval between a worker's checks if the queue is paused.
const PAUSE_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// A worker's heartbeat, as stored in its file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkerHeartbeat {
    beat: u64,
    pub(super) process: Process,
    /// The worker's current item.
    pub work: Option<WorkProgress>,
}

impl WorkerHeartbeat {
    /// The host of the worker.
    pub fn host(&self) -> &str {
        &self.process.host
    }
}

/// The progress of a worker with its item.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkProgress {
    /// The item.
    pub item: WorkItem,
    /// Time since the worker began the item, in seconds, by the worker's own clock.
    pub seconds: f64,
    /// Number of finished epochs.
    pub epoch: usize,
    /// The value of the watched metric after the last finished epoch.
    pub value: Option<f64>,
}

/// A worker's heartbeat, with its age when it was read.
#[derive(Debug, Clone)]
pub struct ObservedHeartbeat {
    /// The heartbeat.
    pub heartbeat: WorkerHeartbeat,
    /// The age of the file, by the clocks of its host and of this host. It is only shown to people;
    /// no lease depends on it.
    pub age: Duration,
}

/// The worker's current item.
#[derive(Debug)]
struct CurrentItem {
    item: WorkItem,
    began: Instant,
    /// The maximum duration of the item.
    limit: Duration,
    epoch: usize,
    value: Option<f64>,
}

impl CurrentItem {
    fn progress(&self) -> WorkProgress {
        WorkProgress {
            item: self.item,
            seconds: self.began.elapsed().as_secs_f64(),
            epoch: self.epoch,
            value: self.value,
        }
    }
}

/// The state that the worker passes to the thread of its heartbeat.
#[derive(Debug, Default)]
struct HeartbeatState {
    current: Option<CurrentItem>,
    is_stopped: bool,
}

/// The state that the worker and the thread of its heartbeat share.
#[derive(Debug, Default)]
struct HeartbeatChannel {
    state: Mutex<HeartbeatState>,
    changed: Condvar,
    /// True if the queue was paused at the thread's last check.
    is_paused: AtomicBool,
    /// True if the queue did not hand out trials at the thread's last check.
    is_held_back: AtomicBool,
}

impl HeartbeatChannel {
    fn lock(&self) -> MutexGuard<'_, HeartbeatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The heartbeat of a worker: a thread that writes the worker's file periodically. The thread stops
/// when this is dropped.
#[derive(Debug)]
pub(super) struct Heartbeat {
    /// The worker's name.
    pub(super) worker: String,
    channel: Arc<HeartbeatChannel>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Registers a worker of this process.
    pub(super) fn start(queue: &Queue) -> Result<Heartbeat> {
        let process = Process::current();
        let worker = process.worker_name();
        let path = queue.path("workers").join(&worker);
        let file = fs_err::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;

        let channel = Arc::<HeartbeatChannel>::default();
        let mut writer = HeartbeatWriter {
            file,
            heartbeat: WorkerHeartbeat {
                beat: 0,
                process,
                work: None,
            },
            queue: queue.clone(),
        };
        writer.renew_lease(&channel)?;

        let listening = Arc::clone(&channel);
        let thread = std::thread::Builder::new()
            .name("heartbeat".to_owned())
            .spawn(move || writer.run(&listening, &path))?;
        Ok(Heartbeat {
            worker,
            channel,
            thread: Some(thread),
        })
    }

    /// Sets the item that the worker begins. A worker that does not return for `limit` and one more
    /// lease duration hangs. The heartbeat then stops, and the worker loses its lease.
    pub(super) fn begin_item(&self, item: WorkItem, limit: Duration) {
        self.channel.lock().current = Some(CurrentItem {
            item,
            began: Instant::now(),
            limit,
            epoch: 0,
            value: None,
        });
        self.channel.changed.notify_all();
    }

    /// Sets the worker's progress with its item.
    pub(super) fn report_epoch(&self, epoch: usize, value: Option<f64>) {
        if let Some(current) = &mut self.channel.lock().current {
            current.epoch = epoch;
            current.value = value;
        }
    }

    /// Clears the worker's item once it has ended.
    pub(super) fn end_item(&self) {
        self.channel.lock().current = None;
    }

    /// Returns true if the queue was paused at the thread's last check.
    pub(super) fn is_paused(&self) -> bool {
        self.channel.is_paused.load(Ordering::Relaxed)
    }

    /// Returns true if the worker must not start another trial: the queue is paused, or does not
    /// hand out trials.
    pub(super) fn is_held_back(&self) -> bool {
        self.is_paused() || self.channel.is_held_back.load(Ordering::Relaxed)
    }

    /// Records that the queue hands out trials, before the thread's next check.
    pub(super) fn resume(&self) {
        self.channel.is_paused.store(false, Ordering::Relaxed);
        self.channel.is_held_back.store(false, Ordering::Relaxed);
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.channel.lock().is_stopped = true;
        self.channel.changed.notify_all();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Writes a worker's file, on its own thread.
struct HeartbeatWriter {
    file: fs_err::File,
    heartbeat: WorkerHeartbeat,
    queue: Queue,
}

impl HeartbeatWriter {
    /// Writes heartbeats until the worker stops, and then removes the file.
    fn run(&mut self, channel: &HeartbeatChannel, path: &Path) {
        let interval = Duration::from_secs_f64(self.queue.settings.heartbeat_s);
        let mut last_beat = Instant::now();

        let mut state = channel.lock();
        while !state.is_stopped {
            let (woken, wait) = channel
                .changed
                .wait_timeout(state, interval.min(PAUSE_CHECK_INTERVAL))
                .unwrap_or_else(PoisonError::into_inner);
            // The worker must not wait for the disk.
            drop(woken);

            if wait.timed_out() {
                let is_held_back = self.queue.hand_out() != Dispatch::Open;
                channel.is_held_back.store(is_held_back, Ordering::Relaxed);
                channel
                    .is_paused
                    .store(self.queue.is_paused(), Ordering::Relaxed);
            }

            // A new item is written at once, unless the worker begins many items in a short time.
            let least = if wait.timed_out() {
                interval
            } else {
                MIN_BEAT_INTERVAL
            };
            if last_beat.elapsed() >= least {
                // A heartbeat that cannot be written is skipped. After enough of them the lease is
                // lost, which is right: other hosts cannot see that this worker is alive.
                let _ = self.renew_lease(channel);
                last_beat = Instant::now();
            }
            state = channel.lock();
        }
        let _ = fs_err::remove_file(path);
    }

    /// Writes and fsyncs the next heartbeat, unless the worker hangs.
    fn renew_lease(&mut self, channel: &HeartbeatChannel) -> Result<()> {
        let lease = Duration::from_secs_f64(self.queue.settings.lease_s);
        let mut progress = None;
        if let Some(current) = &channel.lock().current {
            if current.began.elapsed() > current.limit.saturating_add(lease) {
                return Ok(());
            }
            progress = Some(current.progress());
        }

        self.heartbeat.beat += 1;
        self.heartbeat.work = progress;
        let mut text = serde_json::to_vec(&self.heartbeat)?;
        text.resize(FILE_BYTES.max(text.len() + 1), b' ');
        self.file.file().write_all_at(&text, 0)?;
        // Without an fsync, a network file system could keep the bytes on this host.
        Ok(self.file.sync_data()?)
    }
}

impl Queue {
    /// Starts the heartbeats of `count` workers, which last until this process ends. For tests of other
    /// crates.
    #[doc(hidden)]
    pub fn add_test_workers(&self, count: usize) {
        for _ in 0..count {
            std::mem::forget(Heartbeat::start(self).expect("it starts"));
        }
    }
}

impl Queue {
    /// The bytes of the worker's file; `None` for a worker that has left.
    pub(super) fn read_heartbeat_file(&self, worker: &str) -> Option<Vec<u8>> {
        if !is_worker_name(worker) {
            return None;
        }
        // The file is opened each time, because network file systems check for changes when a file
        // is opened.
        read_regular(&self.path("workers").join(worker), MAX_FILE_BYTES).ok()
    }

    /// Counts the workers with a recent heartbeat, by the clocks of their hosts and of this host.
    /// The manager does not count.
    pub fn workers_at_work(&self) -> usize {
        let leader = self.leader_name();
        let Ok(entries) = fs_err::read_dir(self.path("workers")) else {
            return 0;
        };
        let mut count = 0;
        for entry in entries.filter_map(|entry| entry.ok()) {
            let name = entry.file_name();
            let Some(worker) = name
                .to_str()
                .filter(|name| Some(*name) != leader.as_deref())
            else {
                continue;
            };
            let seen = self.heartbeat(worker);
            let is_heard = |seen: ObservedHeartbeat| seen.age.as_secs_f64() < self.settings.lease_s;
            count += usize::from(seen.is_some_and(is_heard));
        }
        count
    }

    /// The worker's last heartbeat; `None` for a worker that has left.
    pub fn heartbeat(&self, worker: &str) -> Option<ObservedHeartbeat> {
        let heartbeat = parse_heartbeat(&self.read_heartbeat_file(worker)?)?;
        let written = fs_err::metadata(self.path("workers").join(worker))
            .ok()?
            .modified()
            .ok()?;
        Some(ObservedHeartbeat {
            heartbeat,
            age: written.elapsed().unwrap_or_default(),
        })
    }
}

/// Parses the bytes of a worker's file; `None` if they are not a heartbeat.
pub(super) fn parse_heartbeat(bytes: &[u8]) -> Option<WorkerHeartbeat> {
    serde_json::from_slice(bytes).ok()
}
