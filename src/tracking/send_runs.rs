//! A directory → its runs on trackers: once, or again and again until all have ended.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::http_sender::{HttpSender, SendError, SendLimits};
use super::mlflow_sender::MlflowSender;
use super::sender_clock::SenderClock;
use super::sender_lock::SenderLock;
use super::source::TrackedSource;
use super::wandb_sender::{SentSummary, WandbSender};
use crate::error::{hinted, too_early};

/// How often a directory is looked at while its runs go on.
const LOOK_EVERY: Duration = Duration::from_secs(15);

/// How long a server may not answer where nobody says how long.
const USUAL_PATIENCE: Duration = Duration::from_secs(60);

/// How long what is left is sent for once the work that it tells of is done.
const LAST_PASS: Duration = Duration::from_secs(10);

/// The pause between two looks whether a thread is to end.
const END_STEP: Duration = Duration::from_millis(50);

/// How long runs are sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct SendTime {
    /// Until all have ended, and not once.
    pub watch: bool,
    /// No longer than this, whatever is left.
    pub limit: Option<Duration>,
}

/// A tracker that runs are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tracker {
    /// Weights & Biases.
    Wandb,
    /// An MLflow tracking server.
    Mlflow,
}

/// Sends the runs of a directory to one tracker.
enum RunSender {
    Wandb(Box<WandbSender>),
    Mlflow(Box<MlflowSender>),
}

impl RunSender {
    fn new(
        tracker: Tracker,
        source: &TrackedSource,
        time: SendTime,
        stop: Arc<AtomicBool>,
    ) -> Result<RunSender> {
        let clock = SenderClock::system();
        let deadline = time.limit.map(|limit| clock.now() + limit);
        let limits = SendLimits {
            patience: (!time.watch && deadline.is_none()).then_some(USUAL_PATIENCE),
            deadline,
        };
        Ok(match tracker {
            Tracker::Wandb => {
                RunSender::Wandb(Box::new(WandbSender::new(source, clock, limits, stop)?))
            }
            Tracker::Mlflow => {
                RunSender::Mlflow(Box::new(MlflowSender::new(source, clock, limits, stop)?))
            }
        })
    }

    fn send_all(&mut self, source: &TrackedSource) -> Result<bool> {
        match self {
            RunSender::Wandb(sender) => sender.send_all(source),
            RunSender::Mlflow(sender) => sender.send_all(source),
        }
    }

    fn http(&mut self) -> &mut HttpSender {
        match self {
            RunSender::Wandb(sender) => sender.http(),
            RunSender::Mlflow(sender) => sender.http(),
        }
    }

    fn into_summary(self) -> SentSummary {
        match self {
            RunSender::Wandb(sender) => sender.summary,
            RunSender::Mlflow(sender) => sender.summary,
        }
    }

    /// The error of this sender, with what to do.
    fn explained(&self, error: anyhow::Error, dir: &Path) -> anyhow::Error {
        let (name, key_hint, place_hint) = match self {
            RunSender::Wandb(_) => (
                "wandb",
                "check WANDB_API_KEY or netrc, WANDB_BASE_URL and WANDB_ENTITY",
                "check WANDB_BASE_URL, and `wandb.entity` and `wandb.project` of the configuration",
            ),
            RunSender::Mlflow(_) => (
                "mlflow",
                "check MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or MLFLOW_TRACKING_TOKEN",
                "check MLFLOW_TRACKING_URI",
            ),
        };
        match error.downcast_ref::<SendError>() {
            Some(SendError::OutOfTime { .. } | SendError::InDoubt | SendError::Stopped) => {
                let shown = crate::escape::path(dir);
                let again = format!("send the rest later: poolcast track {shown} --to {name}");
                too_early(error.to_string(), again).into()
            }
            Some(SendError::Refused {
                status: 401 | 403, ..
            }) => hinted(error.to_string(), key_hint).into(),
            Some(SendError::Refused { status: 404, .. }) => {
                hinted(error.to_string(), place_hint).into()
            }
            Some(SendError::Refused { .. }) | None => error,
        }
    }
}

/// Sends what the `trackers` lack of the runs in `dir`. Once `stop` is set, it leaves.
///
/// # Errors
/// Fails where another process sends them, without a key, and where a server does not take them; the
/// other trackers get theirs before that.
pub fn send_runs(
    dir: &Path,
    trackers: &[Tracker],
    time: SendTime,
    stop: Arc<AtomicBool>,
) -> Result<Vec<SentSummary>> {
    let source = TrackedSource::open(dir)?;
    let _lock = SenderLock::take(source.dir())?;
    let mut senders = Vec::new();
    for tracker in trackers {
        senders.push(RunSender::new(*tracker, &source, time, stop.clone())?);
    }
    let began = Instant::now();

    let mut failure = None;
    loop {
        let mut are_all_over = true;
        let mut at_work = Vec::new();
        for mut sender in senders {
            match sender.send_all(&source) {
                Ok(is_over) => are_all_over &= is_over,
                Err(error) if is_stop(&error) => {}
                Err(error) => {
                    failure = Some(sender.explained(error, dir));
                    continue;
                }
            }
            at_work.push(sender);
        }
        senders = at_work;

        let next = began.elapsed() + LOOK_EVERY;
        let is_last = time.limit.is_some_and(|limit| next > limit);
        let is_done = are_all_over || !time.watch || is_last;
        if is_done || !wait_to_look_again(&mut senders) {
            break;
        }
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(senders.into_iter().map(RunSender::into_summary).collect()),
    }
}

/// Waits until a directory is to be looked at again. Returns whether it is: not where all have
/// failed, or are to stop.
fn wait_to_look_again(senders: &mut [RunSender]) -> bool {
    let Some(sender) = senders.first_mut() else {
        return false;
    };
    let http = sender.http();
    http.wait_until(http.now() + LOOK_EVERY).is_ok()
}

fn is_stop(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref::<SendError>(), Some(SendError::Stopped))
}

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
