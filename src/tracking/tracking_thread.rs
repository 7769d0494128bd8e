//! Sending what comes about in a directory while this process works on it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::http_sender::{SendError, SendLimits};
use super::run_sender::RunSender;
use super::send_runs::at_each_tracker;
use super::sender_clock::SenderClock;
use super::sender_lock::SenderLock;
use super::sent_summary::SentSummary;
use super::source::TrackedSource;
use poolcast_config::Tracker;

/// How long what is left is sent for once the work that it tells of is done.
const LAST_PASS: Duration = Duration::from_secs(10);

/// The pause between two looks whether a thread is to end.
const END_STEP: Duration = Duration::from_millis(50);

/// A thread that sends what comes about in a directory while this process works on it. What it
/// cannot do is a note, and never an error of the work.
#[derive(Debug)]
pub struct TrackingThread {
    again: String,
    work_is_done: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Vec<String>>>>,
}

impl TrackingThread {
    /// Begins to send what comes about in `dir`, which need not be there yet, to `trackers`. Where it
    /// ends before the work is done, `work_stop` is set: that of work that waits for what it brings.
    pub fn begin(
        dir: &Path,
        trackers: Vec<Tracker>,
        work_stop: Option<Arc<AtomicBool>>,
    ) -> TrackingThread {
        let work_is_done = Arc::new(AtomicBool::new(false));
        let stop = Arc::new(AtomicBool::new(false));
        let words: Vec<&str> = trackers.iter().map(|tracker| tracker.word()).collect();
        let again = rest_command(dir, &words.join(","));
        let thread = std::thread::Builder::new()
            .name("tracking".to_owned())
            .spawn({
                let (dir, work_is_done, stop) =
                    (dir.to_owned(), work_is_done.clone(), stop.clone());
                move || {
                    let sent = send_while_at_work(&dir, &trackers, &work_is_done, &stop);
                    if !work_is_done.load(Ordering::Relaxed)
                        && let Some(work_stop) = work_stop
                    {
                        work_stop.store(true, Ordering::Relaxed);
                    }
                    sent
                }
            });
        TrackingThread {
            again,
            work_is_done,
            stop,
            thread: thread.ok(),
        }
    }

    /// Sends what is left, for ten seconds at most, and says what could not be sent.
    pub fn finish(mut self) -> Vec<String> {
        let Some(thread) = self.thread.take() else {
            return Vec::new();
        };
        self.work_is_done.store(true, Ordering::Relaxed);
        let until = Instant::now() + LAST_PASS;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(END_STEP);
        }
        self.stop.store(true, Ordering::Relaxed);
        // It stops within a try of a request.
        let again = &self.again;
        if !thread.is_finished() {
            return vec![format!("not all was sent; {again}")];
        }
        match thread.join() {
            Ok(Ok(notes)) => notes,
            Ok(Err(error)) => vec![format!("nothing was sent: {error:#}; {again}")],
            Err(_) => vec![format!("not all was sent; {again}")],
        }
    }
}

impl Drop for TrackingThread {
    fn drop(&mut self) {
        self.work_is_done.store(true, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// What to type for what was not sent.
fn rest_command(dir: &Path, trackers: &str) -> String {
    let shown = poolcast_base::escape::path(dir);
    format!("the rest can be sent by: poolcast track {shown} --to {trackers}")
}

/// Returns what could not be sent, and what else people should know.
fn send_while_at_work(
    dir: &Path,
    trackers: &[Tracker],
    work_is_done: &AtomicBool,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<String>> {
    let source = loop {
        match TrackedSource::open(dir) {
            Ok(source) => break source,
            Err(error) if work_is_done.load(Ordering::Relaxed) => return Err(error),
            Err(_) => std::thread::sleep(END_STEP),
        }
    };
    let _lock = SenderLock::take(source.dir())?;
    let results = at_each_tracker(trackers, |tracker| {
        let source = source.clone();
        send_to_tracker(tracker, dir, source, work_is_done, stop.clone())
    });

    let mut notes = Vec::new();
    for (tracker, result) in trackers.iter().zip(results) {
        match result {
            Ok(sent) => notes.extend(sent.notes),
            Err(error) => {
                let again = rest_command(dir, tracker.word());
                notes.push(format!("{tracker} has not got all: {error:#}; {again}"));
            }
        }
    }
    Ok(notes)
}

fn send_to_tracker(
    tracker: Tracker,
    dir: &Path,
    mut source: TrackedSource,
    work_is_done: &AtomicBool,
    stop: Arc<AtomicBool>,
) -> Result<SentSummary> {
    let clock = SenderClock::system();
    let mut sender = RunSender::new(tracker, &source, clock, SendLimits::default(), stop)?;
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
            Ok(_) if is_last => return Ok(sender.into_summary()),
            Ok(_) => {}
        }

        let next = sender.http().now() + source.look_every();
        while !work_is_done.load(Ordering::Relaxed) && sender.http().now() < next {
            std::thread::sleep(END_STEP);
        }
        // Another training may have begun in the directory of an earlier one.
        source = TrackedSource::open(dir).unwrap_or(source);
    }
}
