//! A directory → its runs on trackers: once, or again and again until all have ended.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::http_sender::{SendError, SendLimits};
use super::run_sender::{RunSender, Tracker};
use super::sender_clock::SenderClock;
use super::sender_lock::SenderLock;
use super::source::TrackedSource;
use super::wandb_sender::SentSummary;

/// How often a directory is looked at while its runs go on.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(15);

/// How long a server may not answer where nobody says how long.
const USUAL_PATIENCE: Duration = Duration::from_secs(60);

/// How long runs are sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct SendTime {
    /// Until all have ended, and not once.
    pub watch: bool,
    /// No longer than this, whatever is left.
    pub limit: Option<Duration>,
}

impl SendTime {
    fn limits(self, clock: &SenderClock) -> SendLimits {
        let deadline = self.limit.map(|limit| clock.now() + limit);
        SendLimits {
            patience: (!self.watch && deadline.is_none()).then_some(USUAL_PATIENCE),
            deadline,
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
        let clock = SenderClock::system();
        let limits = time.limits(&clock);
        senders.push(RunSender::new(
            *tracker,
            &source,
            clock,
            limits,
            stop.clone(),
        )?);
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
