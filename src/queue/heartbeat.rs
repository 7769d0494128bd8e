//! The heartbeat of a worker ⇄ a small file with a number that grows. A process that sees the
//! number grow knows that the worker is alive, whatever the clocks say.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::chunk_entry::is_worker_name;
use super::hand_out::HandOut;
use super::item::WorkItem;
use super::item_store::Queue;
use poolcast_base::files::read_regular;
use poolcast_base::process::Process;

/// The size of a worker's file. It is written in place, so that a full disk stops no heartbeat.
const FILE_BYTES: usize = 1024;

/// No worker's file has more bytes.
const MAX_FILE_BYTES: u64 = 64 << 10;

/// The least time between two beats of a worker that begins many items.
const LEAST_INTERVAL: Duration = Duration::from_secs(1);

/// How often a worker looks whether the queue is paused, at least.
const PAUSE_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// What a worker's file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkerHeartbeat {
    beat: u64,
    pub(super) process: Process,
    /// The item that the worker is at.
    pub work: Option<WorkProgress>,
}

impl WorkerHeartbeat {
    /// The host of the worker.
    pub fn host(&self) -> &str {
        &self.process.host
    }
}

/// How far a worker is with its item.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct WorkProgress {
    /// The item.
    pub item: WorkItem,
    /// Since the worker took it, by the worker's own clock.
    pub seconds: f64,
    /// Epochs so far.
    pub epoch: usize,
    /// The value of the watched metric after the last of them.
    pub value: Option<f64>,
}

/// What a worker's file said when it was read.
#[derive(Debug, Clone)]
pub struct ObservedHeartbeat {
    /// What it said.
    pub heartbeat: WorkerHeartbeat,
    /// The age of the file by the clocks of its host and of this one. It is shown to people, and no
    /// lease depends on it.
    pub age: Duration,
}

/// The item that a worker is at.
#[derive(Debug)]
struct CurrentItem {
    item: WorkItem,
    began: Instant,
    /// The longest time that the worker may take.
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

/// What the worker tells the thread of its heartbeat.
#[derive(Debug, Default)]
struct HeartbeatState {
    current: Option<CurrentItem>,
    is_stopped: bool,
}

/// What the worker and the thread of its heartbeat share.
#[derive(Debug, Default)]
struct HeartbeatChannel {
    state: Mutex<HeartbeatState>,
    changed: Condvar,
    /// Whether the queue was paused when the thread looked last.
    is_paused: AtomicBool,
    /// Whether nothing was handed out then.
    is_held_back: AtomicBool,
}

impl HeartbeatChannel {
    fn lock(&self) -> MutexGuard<'_, HeartbeatState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The heartbeat of a worker: a thread that writes the worker's file now and then. It stops when
/// this is dropped.
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
        writer.write_beat(&channel)?;

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

    /// Says which item the worker begins. If the worker has not come back a whole lease after
    /// `limit`, it hangs. The heartbeat stops then, and the lease is lost.
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

    /// Says how far the worker is with its item.
    pub(super) fn report_epoch(&self, epoch: usize, value: Option<f64>) {
        if let Some(current) = &mut self.channel.lock().current {
            current.epoch = epoch;
            current.value = value;
        }
    }

    /// Says that the worker has ended its item.
    pub(super) fn end_item(&self) {
        self.channel.lock().current = None;
    }

    /// Whether the queue was paused when the thread looked last.
    pub(super) fn is_paused(&self) -> bool {
        self.channel.is_paused.load(Ordering::Relaxed)
    }

    /// Whether no further trial is to be begun: the queue is paused, or hands nothing out.
    pub(super) fn is_held_back(&self) -> bool {
        self.is_paused() || self.channel.is_held_back.load(Ordering::Relaxed)
    }

    /// Says that the queue hands out, before the thread sees it.
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

/// Writes a worker's file, in a thread of its own.
struct HeartbeatWriter {
    file: fs_err::File,
    heartbeat: WorkerHeartbeat,
    queue: Queue,
}

impl HeartbeatWriter {
    /// Beats until the worker stops, and removes its file.
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
                let is_held_back = self.queue.hand_out() != HandOut::Open;
                channel.is_held_back.store(is_held_back, Ordering::Relaxed);
                channel
                    .is_paused
                    .store(self.queue.is_paused(), Ordering::Relaxed);
            }

            // A new item is written at once, unless the worker begins new items all the time.
            let least = if wait.timed_out() {
                interval
            } else {
                LEAST_INTERVAL
            };
            if last_beat.elapsed() >= least {
                // A heartbeat that cannot be written is skipped. After enough of them the lease is
                // lost, which is right: other hosts cannot see that this worker is alive.
                let _ = self.write_beat(channel);
                last_beat = Instant::now();
            }
            state = channel.lock();
        }
        let _ = fs_err::remove_file(path);
    }

    /// Writes the next beat, unless the worker hangs.
    fn write_beat(&mut self, channel: &HeartbeatChannel) -> Result<()> {
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
        // Without a sync, a network file system could keep the bytes on this host.
        Ok(self.file.sync_data()?)
    }
}

impl Queue {
    /// Registers `count` workers that live as long as this process, for tests of other crates.
    #[doc(hidden)]
    pub fn add_test_workers(&self, count: usize) {
        for _ in 0..count {
            std::mem::forget(Heartbeat::start(self).expect("it starts"));
        }
    }
}

impl Queue {
    /// What the worker's file holds now; `None` for a worker that has left.
    pub(super) fn read_heartbeat_file(&self, worker: &str) -> Option<Vec<u8>> {
        if !is_worker_name(worker) {
            return None;
        }
        // Opened each time: network file systems check for changes when a file is opened.
        read_regular(&self.path("workers").join(worker), MAX_FILE_BYTES).ok()
    }

    /// How many workers have been heard of lately, by the clocks of their hosts and of this one; the
    /// manager is none.
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

    /// What the worker's file says; `None` for a worker that has left.
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

/// What the bytes of a worker's file say; `None` for other bytes.
pub(super) fn parse_heartbeat(bytes: &[u8]) -> Option<WorkerHeartbeat> {
    serde_json::from_slice(bytes).ok()
}
