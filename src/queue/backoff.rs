//! Backoff: waits that grow while nothing changes, with a time limit if every attempt fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::settings::QueueSettings;
use poolcast_base::error::{EXIT_RETRY, exit_code};

/// Waits that grow while nothing changes.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    const MIN_WAIT: Duration = Duration::from_millis(20);

    /// Starts with short waits, which grow up to `longest_s` seconds.
    pub(super) fn new(longest_s: f64) -> Backoff {
        Backoff {
            next: Self::MIN_WAIT,
            longest: Duration::from_secs_f64(longest_s),
        }
    }

    /// Limits later waits to `longest_s` seconds.
    pub(super) fn set_max_wait(&mut self, longest_s: f64) {
        self.longest = Duration::from_secs_f64(longest_s);
        self.next = self.next.min(self.longest);
    }

    /// Starts again with short waits.
    pub(super) fn reset(&mut self) {
        self.next = Self::MIN_WAIT;
    }

    /// Waits, but returns early if `stop` is set.
    pub(super) fn wait(&mut self, stop: &AtomicBool) {
        self.wait_for(|| stop.load(Ordering::Relaxed));
    }

    /// Waits, but returns early once `is_over` returns true.
    pub(super) fn wait_for(&mut self, is_over: impl Fn() -> bool) {
        let end = Instant::now() + self.next;
        while Instant::now() < end && !is_over() {
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Self::MIN_WAIT));
        }
        self.next = (self.next * 3 / 2).min(self.longest);
    }
}

/// Tolerates temporary errors for the duration of a lease without a success.
#[derive(Debug)]
pub(super) struct ErrorBackoff {
    longest_s: f64,
    first_error: Option<Instant>,
    backoff: Backoff,
}

impl ErrorBackoff {
    /// Uses the limits of these settings.
    pub(super) fn new(settings: &QueueSettings) -> ErrorBackoff {
        ErrorBackoff {
            longest_s: settings.lease_s,
            first_error: None,
            backoff: Backoff::new(settings.lease_s / 8.0),
        }
    }

    /// Records a success.
    pub(super) fn reset(&mut self) {
        self.first_error = None;
        self.backoff.reset();
    }

    /// Waits before the next attempt.
    ///
    /// # Errors
    /// Returns `error` if it is permanent, or if there were only errors for too long.
    pub(super) fn wait_or_fail(&mut self, error: anyhow::Error, stop: &AtomicBool) -> Result<()> {
        let first_error = *self.first_error.get_or_insert_with(Instant::now);
        let is_too_long = first_error.elapsed().as_secs_f64() > self.longest_s;
        if exit_code(&error) != EXIT_RETRY || is_too_long {
            return Err(error);
        }
        tracing::warn!("{error:#}; retrying");
        self.backoff.wait(stop);
        Ok(())
    }
}
