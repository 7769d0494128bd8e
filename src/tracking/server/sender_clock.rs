//! The clock of a sender. Tests replace it, so that they need not wait for an hour.

use std::time::{Duration, Instant};

/// A monotonic clock, and a function that sleeps by it.
pub(crate) struct SenderClock {
    now: Box<dyn Fn() -> Duration + Send>,
    sleep: Box<dyn Fn(Duration) + Send>,
}

impl SenderClock {
    /// The system's monotonic clock.
    pub(crate) fn system() -> SenderClock {
        let began = Instant::now();
        SenderClock {
            now: Box::new(move || began.elapsed()),
            sleep: Box::new(std::thread::sleep),
        }
    }

    /// Makes a clock that reads `now` and waits with `sleep`.
    #[cfg(test)]
    pub(crate) fn of(
        now: impl Fn() -> Duration + Send + 'static,
        sleep: impl Fn(Duration) + Send + 'static,
    ) -> SenderClock {
        SenderClock {
            now: Box::new(now),
            sleep: Box::new(sleep),
        }
    }

    /// The time since an arbitrary start.
    pub(crate) fn now(&self) -> Duration {
        (self.now)()
    }

    /// Waits for `duration`.
    pub(super) fn sleep(&self, duration: Duration) {
        (self.sleep)(duration);
    }
}
