//! The time as a sender knows it, so that tests need not wait for an hour.

use std::time::{Duration, Instant};

/// A clock that never goes back, and a way to wait by it.
pub(super) struct SenderClock {
    now: Box<dyn Fn() -> Duration + Send>,
    sleep: Box<dyn Fn(Duration) + Send>,
}

impl SenderClock {
    /// The clock of the system.
    pub(super) fn system() -> SenderClock {
        let began = Instant::now();
        SenderClock {
            now: Box::new(move || began.elapsed()),
            sleep: Box::new(std::thread::sleep),
        }
    }

    /// A clock of `now`, by which `sleep` waits.
    #[cfg(test)]
    pub(super) fn of(
        now: impl Fn() -> Duration + Send + 'static,
        sleep: impl Fn(Duration) + Send + 'static,
    ) -> SenderClock {
        SenderClock {
            now: Box::new(now),
            sleep: Box::new(sleep),
        }
    }

    /// The time since some moment.
    pub(super) fn now(&self) -> Duration {
        (self.now)()
    }

    /// Waits.
    pub(super) fn sleep(&self, duration: Duration) {
        (self.sleep)(duration);
    }
}
