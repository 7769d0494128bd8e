//! How long a worker waits: longer and longer while nothing changes, and only for a limited time
//! while every try fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::settings::QueueSettings;
use poolcast_base::error::{EXIT_RETRY, exit_code};

/// Waits longer and longer while nothing changes.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    longest: Duration,
}

impl Backoff {
    const SHORTEST: Duration = Duration::from_millis(20);

    /// Waits up to `longest_s` at a time.
    pub(super) fn new(longest_s: f64) -> Backoff {
        Backoff {
            next: Self::SHORTEST,
            longest: Duration::from_secs_f64(longest_s),
        }
    }

    /// From now on waits no longer than `longest_s` at a time.
    pub(super) fn set_longest(&mut self, longest_s: f64) {
        self.longest = Duration::from_secs_f64(longest_s);
        self.next = self.next.min(self.longest);
    }

    /// Begins anew with short waits.
    pub(super) fn reset(&mut self) {
        self.next = Self::SHORTEST;
    }

    /// Waits, but no longer than until `stop` is set.
    pub(super) fn wait(&mut self, stop: &AtomicBool) {
        let end = Instant::now() + self.next;
        while Instant::now() < end && !stop.load(Ordering::Relaxed) {
            let left = end.saturating_duration_since(Instant::now());
            std::thread::sleep(left.min(Self::SHORTEST));
        }
        self.next = (self.next * 3 / 2).min(self.longest);
    }
}

/// Tolerates errors that can pass, for as long as a lease lasts without a success.
#[derive(Debug)]
pub(super) struct ErrorBackoff {
    longest_s: f64,
    first_error: Option<Instant>,
    backoff: Backoff,
}

impl ErrorBackoff {
    /// For a queue with these settings.
    pub(super) fn new(settings: &QueueSettings) -> ErrorBackoff {
        ErrorBackoff {
            longest_s: settings.lease_s,
            first_error: None,
            backoff: Backoff::new(settings.lease_s / 8.0),
        }
    }

    /// Says that something succeeded.
    pub(super) fn reset(&mut self) {
        self.first_error = None;
        self.backoff.reset();
    }

    /// Waits a while before the next try.
    ///
    /// # Errors
    /// Returns `error` if it cannot pass, or if there have been only errors for too long.
    pub(super) fn wait_or_fail(&mut self, error: anyhow::Error, stop: &AtomicBool) -> Result<()> {
        let first_error = *self.first_error.get_or_insert_with(Instant::now);
        let is_too_long = first_error.elapsed().as_secs_f64() > self.longest_s;
        if exit_code(&error) != EXIT_RETRY || is_too_long {
            return Err(error);
        }
        tracing::warn!("{error:#}; it is tried again");
        self.backoff.wait(stop);
        Ok(())
    }
}
