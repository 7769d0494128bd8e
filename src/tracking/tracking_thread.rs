//! Sending what comes about in a directory while this process works on it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::http_sender::{SendError, SendLimits};
use super::send_runs::LOOK_EVERY;
use super::sender_clock::SenderClock;
use super::sender_lock::SenderLock;
use super::source::TrackedSource;
use super::wandb_sender::{SentSummary, WandbSender};

/// How long what is left is sent for once the work that it tells of is done.
const LAST_PASS: Duration = Duration::from_secs(10);

/// The pause between two looks whether a thread is to end.
const END_STEP: Duration = Duration::from_millis(50);

/// A thread that sends what comes about in a directory while this process works on it. What it
/// cannot do is a note, and never an error of the work.
#[derive(Debug)]
pub struct TrackingThread {
    dir: PathBuf,
    work_is_done: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<SentSummary>>>,
}

impl TrackingThread {
    /// Begins to send what comes about in `dir`, which need not be there yet.
    pub fn begin(dir: &Path) -> TrackingThread {
        let work_is_done = Arc::new(AtomicBool::new(false));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new()
            .name("tracking".to_owned())
            .spawn({
                let (dir, work_is_done, stop) =
                    (dir.to_owned(), work_is_done.clone(), stop.clone());
                move || send_while_at_work(&dir, &work_is_done, stop)
            });
        TrackingThread {
            dir: dir.to_owned(),
            work_is_done,
            stop,
            thread: thread.ok(),
        }
    }

    /// Sends what is left, for ten seconds at most, and says what could not be sent.
    pub fn finish(mut self) -> Option<String> {
        let thread = self.thread.take()?;
        self.work_is_done.store(true, Ordering::Relaxed);
        let until = Instant::now() + LAST_PASS;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(END_STEP);
        }
        self.stop.store(true, Ordering::Relaxed);
        // It stops within a try of a request.
        let is_late = !thread.is_finished();
        let again = format!(
            "the rest can be sent by: poolcast track {} --to wandb",
            crate::escape::path(&self.dir)
        );
        if is_late {
            return Some(format!("W&B has not got all: {again}"));
        }
        match thread.join() {
            Ok(Ok(sent)) if sent.notes.is_empty() => None,
            Ok(Ok(sent)) => Some(sent.notes.join("; ")),
            Ok(Err(error)) => Some(format!("W&B has not got all: {error:#}; {again}")),
            Err(_) => Some(format!("W&B has not got all; {again}")),
        }
    }
}

impl Drop for TrackingThread {
    fn drop(&mut self) {
        self.work_is_done.store(true, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn send_while_at_work(
    dir: &Path,
    work_is_done: &AtomicBool,
    stop: Arc<AtomicBool>,
) -> Result<SentSummary> {
    let clock = SenderClock::system();
    let mut source = loop {
        match TrackedSource::open(dir) {
            Ok(source) => break source,
            Err(error) if work_is_done.load(Ordering::Relaxed) => return Err(error),
            Err(_) => std::thread::sleep(END_STEP),
        }
    };
    let _lock = SenderLock::take(source.dir())?;
    let mut sender = WandbSender::new(&source, clock, SendLimits::default(), stop)?;
    loop {
        let is_last = work_is_done.load(Ordering::Relaxed);
        if is_last {
            let deadline = sender.http().now() + LAST_PASS;
            sender.http().set_limits(SendLimits {
                patience: None,
                deadline: Some(deadline),
            });
        }
        // What is written at this moment may not be whole: the next look tells.
        let sent = sender.send_all(&source);
        match sent {
            Err(error) if is_last || error.is::<SendError>() => return Err(error),
            Err(error) => tracing::info!("not sent yet: {error:#}"),
            Ok(_) if is_last => return Ok(sender.summary),
            Ok(_) => {}
        }

        let next = sender.http().now() + LOOK_EVERY;
        while !work_is_done.load(Ordering::Relaxed) && sender.http().now() < next {
            std::thread::sleep(END_STEP);
        }
        // Another training may have begun in the directory of an earlier one.
        source = TrackedSource::open(dir).unwrap_or(source);
    }
}
