//! Sends the runs of a directory to trackers, once or repeatedly until all have ended.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::run_sender::RunSender;
use super::sender_lock::SenderLock;
use crate::runs::TrackedSource;
use crate::server::{SendError, SendLimits, SenderClock, SentSummary};
use poolcast_sweep::config::Tracker;

/// Time without an answer after which a single pass without a time limit fails.
const DEFAULT_PATIENCE: Duration = Duration::from_secs(60);

/// Duration of sending.
#[derive(Debug, Clone, Copy, Default)]
pub struct SendTime {
    /// True to repeat until all runs have ended, false for one pass.
    pub watch: bool,
    /// Time limit, after which the rest stays unsent.
    pub limit: Option<Duration>,
}

impl SendTime {
    fn limits(self, clock: &SenderClock) -> SendLimits {
        let deadline = self.limit.map(|limit| clock.now() + limit);
        SendLimits {
            patience: (!self.watch && deadline.is_none()).then_some(DEFAULT_PATIENCE),
            deadline,
        }
    }
}

/// Sends what the `trackers` lack of the runs in `dir`, to all of them in parallel. `server` is the
/// URL of the command line; it is for one tracker, and takes precedence over the environment and
/// the configuration. Setting `stop` ends the sending early. Returns one result per tracker: a summary, or an error such as a missing key or a
/// request that the server rejects.
///
/// # Errors
/// Fails if `dir` has nothing to send, or if another process is sending it.
pub fn send_runs(
    dir: &Path,
    trackers: &[Tracker],
    server: Option<&str>,
    time: SendTime,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Result<SentSummary>>> {
    let source = TrackedSource::open(dir)?;
    let _lock = SenderLock::take(source.dir())?;
    Ok(send_to_each_tracker(trackers, |tracker| {
        send_to(tracker, source.clone(), dir, server, time, stop.clone())
    }))
}

/// Calls `send` for each tracker in its own thread, so that no tracker waits for another one's
/// server.
pub(super) fn send_to_each_tracker<T: Send>(
    trackers: &[Tracker],
    send: impl Fn(Tracker) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    let send = &send;
    std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for tracker in trackers {
            threads.push((tracker, scope.spawn(move || send(*tracker))));
        }
        let mut results = Vec::new();
        for (tracker, thread) in threads {
            let ended = thread.join();
            let broken = |_| {
                Err(anyhow!(
                    "the thread that sends to {tracker} ended unexpectedly"
                ))
            };
            results.push(ended.unwrap_or_else(broken));
        }
        results
    })
}

fn send_to(
    tracker: Tracker,
    mut source: TrackedSource,
    dir: &Path,
    server: Option<&str>,
    time: SendTime,
    stop: Arc<AtomicBool>,
) -> Result<SentSummary> {
    let clock = SenderClock::system();
    let limits = time.limits(&clock);
    let mut sender = RunSender::new(tracker, &source, server, clock, limits, stop)?;
    let began = Instant::now();
    let mut was_read = true;

    loop {
        let is_over = match send_once(&mut sender, &source) {
            Ok(is_over) => {
                was_read = true;
                is_over
            }
            Err(error) if is_stop(&error) => break,
            // Files that are being moved may be incomplete, so one failed read is retried in the
            // next pass.
            Err(error) if time.watch && was_read && !error.is::<SendError>() => {
                tracing::info!("not sent yet: {error:#}");
                was_read = false;
                false
            }
            Err(error) => return Err(sender.with_hint(error, dir, server)),
        };
        let next = began.elapsed() + source.pass_interval();
        let is_last = time.limit.is_some_and(|limit| next > limit);
        if is_over || !time.watch || is_last {
            break;
        }
        let http = sender.http();
        if http
            .wait_until(http.now() + source.pass_interval())
            .is_err()
        {
            break;
        }
        // The DAG may have been tidied into another directory.
        source = TrackedSource::open(dir).unwrap_or(source);
    }
    Ok(sender.into_summary())
}

/// Sends what the server lacks now. Once all runs have ended, it also sends the best run's files
/// and returns true.
fn send_once(sender: &mut RunSender, source: &TrackedSource) -> Result<bool> {
    let is_over = sender.send_all(source)?;
    if !is_over {
        return Ok(false);
    }
    match source.best_files() {
        Ok(Some(best)) => sender.send_files(&best)?,
        Ok(None) => {}
        // The runs themselves were sent, so this is only a note.
        Err(error) => sender.add_note(format!(
            "the report and the best model were not sent: {error:#}"
        )),
    }
    Ok(true)
}

fn is_stop(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<SendError>(), Some(SendError::Stopped))
}
