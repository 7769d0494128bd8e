//! Waiting: longer and longer while nothing changes, and not for ever where something fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;

use super::item_store::QueueSettings;
use crate::error::{EXIT_RETRY, exit_code};

/// Waits longer and longer while nothing changes.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    const LEAST: Duration = Duration::from_millis(20);

    /// Waits up to `most_s` at a time.
    pub(super) fn new(most_s: f64) -> Backoff {
        Backoff {
            next: Self::LEAST,
            most: Duration::from_secs_f64(most_s),
        }
    }

    /// Begins anew with short waits.
    pub(super) fn reset(&mut self) {
        self.next = Self::LEAST;
    }

    /// Waits, but no longer than until `stop`.
    pub(super) fn wait(&mut self, stop: &AtomicBool) {
        let until = Instant::now() + self.next;
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(
                until
                    .saturating_duration_since(Instant::now())
                    .min(Self::LEAST),
            );
        }
        self.next = (self.next * 3 / 2).min(self.most);
    }
}

/// Bears errors that can pass for as long as a lease lasts, if nothing succeeds in between.
#[derive(Debug)]
pub(super) struct RetryBackoff {
    most_s: f64,
    since: Option<Instant>,
    pace: Backoff,
}

impl RetryBackoff {
    pub(super) fn new(settings: &QueueSettings) -> RetryBackoff {
        RetryBackoff {
            most_s: settings.lease_s,
            since: None,
            pace: Backoff::new(settings.lease_s / 8.0),
        }
    }

    /// Something succeeded.
    pub(super) fn reset(&mut self) {
        self.since = None;
        self.pace.reset();
    }

    /// Waits a while before the next try.
    ///
    /// # Errors
    /// Gives `error` back when it cannot pass, and when there have been only errors for too long.
    pub(super) fn bear(&mut self, error: anyhow::Error, stop: &AtomicBool) -> Result<()> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if exit_code(&error) != EXIT_RETRY || since.elapsed().as_secs_f64() > self.most_s {
            return Err(error);
        }
        tracing::warn!("{error:#}; it is tried again");
        self.pace.wait(stop);
        Ok(())
    }
}
