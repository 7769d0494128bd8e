//! A worker's heartbeat ⇄ a small file with a number that grows: who sees it grow knows that the worker lives, whatever
//! the clocks say.

use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::folder::Queue;
use super::token::{Item, is_worker};
use crate::files::read_regular;
use crate::process::Process;

/// The size of a heartbeat's file: written in place, so that a full disk stops no heart.
const SIZE_BYTES: usize = 1024;

/// More than any worker's file has.
const MOST_BYTES: u64 = 64 << 10;

/// The least time between two beats of a worker that begins many items.
const SOON: Duration = Duration::from_secs(1);

/// How often a worker looks whether the queue is paused.
const LISTEN: Duration = Duration::from_secs(2);

/// What a worker's file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Beat {
    beat: u64,
    pub(super) process: Process,
    /// What the worker is at.
    pub work: Option<Work>,
}

impl Beat {
    /// The host of the worker.
    pub fn host(&self) -> &str {
        &self.process.host
    }
}

/// How far a worker is with its item.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Work {
    /// The item.
    pub item: Item,
    /// Since the worker took it, by the worker's own clock.
    pub seconds: f64,
    /// Epochs so far.
    pub epoch: usize,
    /// The value of the watched metric after the last of them.
    pub value: Option<f64>,
}

#[derive(Debug)]
struct Doing {
    item: Item,
    since: Instant,
    limit: Duration,
    epoch: usize,
    value: Option<f64>,
}

#[derive(Debug, Default)]
struct Shared {
    doing: Mutex<(Option<Doing>, bool)>,
    changed: Condvar,
    /// Whether the queue was paused at the last beat.
    paused: AtomicBool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, (Option<Doing>, bool)> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A beating heart; it stops when it is dropped.
#[derive(Debug)]
pub(super) struct Pulse {
    pub(super) worker: String,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Pulse {
    /// Registers a worker of this process.
    pub(super) fn start(queue: &Queue) -> Result<Pulse> {
        let process = Process::current();
        let worker = process.worker_name();
        let path = queue.path("workers").join(&worker);
        let file = fs_err::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&path)?;
        let shared = Arc::<Shared>::default();
        let mut heart = Heart {
            file,
            beat: Beat {
                beat: 0,
                process,
                work: None,
            },
            queue: queue.clone(),
        };
        heart.beat(&shared)?;
        let listening = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("heartbeat".to_owned())
            .spawn(move || heart.run(&listening, &path))?;
        Ok(Pulse {
            worker,
            shared,
            thread: Some(thread),
        })
    }

    /// Says what the worker begins. Past `limit` by a whole lease, the heart stops: who has not come back by then hangs.
    pub(super) fn begin(&self, item: Item, limit: Duration) {
        self.shared.lock().0 = Some(Doing {
            item,
            since: Instant::now(),
            limit,
            epoch: 0,
            value: None,
        });
        self.shared.changed.notify_all();
    }

    /// Says how far it is.
    pub(super) fn epoch(&self, epoch: usize, value: Option<f64>) {
        if let Some(doing) = &mut self.shared.lock().0 {
            (doing.epoch, doing.value) = (epoch, value);
        }
    }

    /// Whether the queue was paused when the heart beat last.
    pub(super) fn is_paused(&self) -> bool {
        self.shared.paused.load(Ordering::Relaxed)
    }

    /// Says that the queue is paused no longer, before the heart sees it.
    pub(super) fn resume(&self) {
        self.shared.paused.store(false, Ordering::Relaxed);
    }

    /// Says that it has ended.
    pub(super) fn end(&self) {
        self.shared.lock().0 = None;
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        self.shared.lock().1 = true;
        self.shared.changed.notify_all();
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Heart {
    file: fs_err::File,
    beat: Beat,
    queue: Queue,
}

impl Heart {
    fn run(&mut self, shared: &Shared, path: &Path) {
        let every = Duration::from_secs_f64(self.queue.settings.heartbeat_s);
        let mut last = Instant::now();
        let mut guard = shared.lock();
        while !guard.1 {
            let (now, waited) = shared
                .changed
                .wait_timeout(guard, every.min(LISTEN))
                .unwrap_or_else(PoisonError::into_inner);
            drop(now);
            if waited.timed_out() {
                shared
                    .paused
                    .store(self.queue.is_paused(), Ordering::Relaxed);
            }
            // What it begins is told at once, unless it begins something new all the time.
            if last.elapsed() >= if waited.timed_out() { every } else { SOON } {
                // A beat that cannot be written is missed; enough of them, and the lease is lost, as it must be.
                let _ = self.beat(shared);
                last = Instant::now();
            }
            guard = shared.lock();
        }
        let _ = fs_err::remove_file(path);
    }

    fn beat(&mut self, shared: &Shared) -> Result<()> {
        let lease = Duration::from_secs_f64(self.queue.settings.lease_s);
        let work = shared.lock().0.as_ref().map(|doing| {
            (
                doing.work(),
                doing.since.elapsed() > doing.limit.saturating_add(lease),
            )
        });
        if work.as_ref().is_some_and(|(_, hangs)| *hangs) {
            return Ok(());
        }
        self.beat.beat += 1;
        self.beat.work = work.map(|(work, _)| work);
        let mut text = serde_json::to_vec(&self.beat)?;
        text.resize(SIZE_BYTES.max(text.len() + 1), b' ');
        self.file.file().write_all_at(&text, 0)?;
        // A network file system would keep what is written to an open file for itself.
        Ok(self.file.sync_data()?)
    }
}

impl Doing {
    fn work(&self) -> Work {
        let Doing {
            item,
            since,
            epoch,
            value,
            ..
        } = *self;
        Work {
            item,
            seconds: since.elapsed().as_secs_f64(),
            epoch,
            value,
        }
    }
}

impl Queue {
    /// What the worker's file holds now; `None` for a worker that has left.
    pub(super) fn heard(&self, worker: &str) -> Option<Vec<u8>> {
        // Opened each time: network file systems check for changes when a file is opened.
        let path = is_worker(worker).then(|| self.path("workers").join(worker))?;
        read_regular(&path, MOST_BYTES).ok()
    }

    /// What the worker's file says, and how old it is by the clocks of its host and this one: to be shown, not to judge by.
    pub fn beat(&self, worker: &str) -> Option<(Beat, Duration)> {
        let beat = read_beat(&self.heard(worker)?)?;
        let written = fs_err::metadata(self.path("workers").join(worker))
            .ok()?
            .modified()
            .ok()?;
        Some((beat, written.elapsed().unwrap_or_default()))
    }
}

/// What the bytes of a worker's file say.
pub(super) fn read_beat(bytes: &[u8]) -> Option<Beat> {
    serde_json::from_slice(bytes).ok()
}
