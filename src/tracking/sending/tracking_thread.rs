//! A background thread that sends the runs of a directory while this process works on them.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::run_sender::RunSender;
use super::send_runs::send_to_each_tracker;
use super::sender_lock::SenderLock;
use crate::runs::TrackedSource;
use crate::server::{SendError, SendLimits, SenderClock, SentSummary};
use poolcast_sweep::config::Tracker;

/// Time limit for the last pass, after the work itself is done.
const LAST_PASS_LIMIT: Duration = Duration::from_secs(10);

/// Interval between two checks for the end of the work or the thread.
const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// A thread that sends the runs of a directory while this process works on them. Its failures
/// become notes and never errors of the work.
#[derive(Debug)]
pub struct TrackingThread {
    again: String,
    work_is_done: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Vec<String>>>>,
}

impl TrackingThread {
    /// Starts to send the runs in `dir` to `trackers`; `dir` need not exist yet. If the thread ends
    /// before the work is done, it sets `work_stop`. That stops work that waits for points from
    /// this thread.
    pub fn begin(
        dir: &Path,
        trackers: Vec<Tracker>,
        work_stop: Option<Arc<AtomicBool>>,
    ) -> TrackingThread {
        let work_is_done = Arc::new(AtomicBool::new(false));
        let stop = Arc::new(AtomicBool::new(false));
        let words: Vec<&str> = trackers.iter().map(|tracker| tracker.word()).collect();
        let again = resend_hint(dir, &words.join(","));
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

    /// Sends the rest, for ten seconds at most, and returns notes about what could not be sent.
    pub fn finish(mut self) -> Vec<String> {
        let Some(thread) = self.thread.take() else {
            return Vec::new();
        };
        self.work_is_done.store(true, Ordering::Relaxed);
        let until = Instant::now() + LAST_PASS_LIMIT;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(STOP_CHECK_INTERVAL);
        }
        self.stop.store(true, Ordering::Relaxed);
        // The thread ends soon, and would not add anything to this note.
        let again = &self.again;
        if !thread.is_finished() {
            return vec![format!("some results were not sent; {again}")];
        }
        match thread.join() {
            Ok(Ok(notes)) => notes,
            Ok(Err(error)) => vec![format!("nothing was sent: {error:#}; {again}")],
            Err(_) => vec![format!("some results were not sent; {again}")],
        }
    }
}

impl Drop for TrackingThread {
    fn drop(&mut self) {
        self.work_is_done.store(true, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Returns a hint with the command that sends the rest.
fn resend_hint(dir: &Path, trackers: &str) -> String {
    let shown = poolcast_base::escape::path(dir);
    format!("the rest can be sent by: poolcast track {shown} --to {trackers}")
}

/// Returns notes: what could not be sent, and other facts for the user.
fn send_while_at_work(
    dir: &Path,
    trackers: &[Tracker],
    work_is_done: &AtomicBool,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<String>> {
    // The directory may not exist yet: the work creates it.
    let source = loop {
        match TrackedSource::open(dir) {
            Ok(source) => break source,
            Err(error) if work_is_done.load(Ordering::Relaxed) => return Err(error),
            Err(_) => std::thread::sleep(STOP_CHECK_INTERVAL),
        }
    };
    let _lock = SenderLock::take(source.dir())?;
    let results = send_to_each_tracker(trackers, |tracker| {
        let source = source.clone();
        send_to_tracker(tracker, dir, source, work_is_done, stop.clone())
    });

    let mut notes = Vec::new();
    for (tracker, result) in trackers.iter().zip(results) {
        match result {
            Ok(sent) => notes.extend(sent.notes),
            Err(error) => {
                let again = resend_hint(dir, tracker.word());
                notes.push(format!(
                    "some results were not sent to {tracker}: {error:#}; {again}"
                ));
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
    let limits = SendLimits::default();
    let mut sender = RunSender::new(tracker, &source, None, clock, limits, stop)?;
    loop {
        let is_last = work_is_done.load(Ordering::Relaxed);
        if is_last {
            let deadline = sender.http().now() + LAST_PASS_LIMIT;
            sender.http().set_limits(SendLimits {
                patience: None,
                deadline: Some(deadline),
            });
        }
        // Files that are being written may be incomplete, so a failed read is retried in the next
        // pass.
        let sent = sender.send_all(&source);
        match sent {
            Err(error) if is_last || error.is::<SendError>() => return Err(error),
            Err(error) => tracing::info!("not sent yet: {error:#}"),
            Ok(_) if is_last => return Ok(sender.into_summary()),
            Ok(_) => {}
        }

        let next = sender.http().now() + source.pass_interval();
        while !work_is_done.load(Ordering::Relaxed) && sender.http().now() < next {
            std::thread::sleep(STOP_CHECK_INTERVAL);
        }
        // A new training may have begun in the directory of an earlier one.
        source = TrackedSource::open(dir).unwrap_or(source);
    }
}
