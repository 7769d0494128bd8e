//! What threads finish in any order → one after another, in the order of the log.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};

use anyhow::Result;

/// Why the locks of threads that read one log are never poisoned.
pub(super) const NO_PANIC: &str = "no thread panics with the lock";

/// Takes numbered items from many threads, and has them taken in the order of their numbers, by one
/// thread at a time: whichever hands in the next one.
pub(super) struct LogOrder<T> {
    state: Mutex<OrderState<T>>,
    /// Told whenever an item was taken, or nothing is taken any more.
    moved_on: Condvar,
    /// How far ahead of the next item others may be handed in.
    most_ahead: usize,
}

struct OrderState<T> {
    /// The number of the next item to take.
    next: usize,
    /// Items that came before their turn.
    early: BTreeMap<usize, T>,
    /// Whether a thread is taking items.
    is_taking: bool,
    /// Whether an item could not be taken, or a thread has panicked.
    has_stopped: bool,
}

impl<T> LogOrder<T> {
    pub(super) fn new(most_ahead: usize) -> LogOrder<T> {
        LogOrder {
            state: Mutex::new(OrderState {
                next: 0,
                early: BTreeMap::new(),
                is_taking: false,
                has_stopped: false,
            }),
            moved_on: Condvar::new(),
            most_ahead,
        }
    }

    /// Hands in item `number`. If that is the next one, `take` gets it and what follows it; if it is
    /// far ahead, this waits. Whether to go on: not after an item could not be taken.
    ///
    /// # Errors
    /// Fails as `take` does.
    pub(super) fn hand_in(
        &self,
        number: usize,
        item: T,
        mut take: impl FnMut(T) -> Result<()>,
    ) -> Result<bool> {
        let mut state = self.lock();
        state.early.insert(number, item);

        if !state.is_taking {
            state.is_taking = true;
            while let Some(item) = state.take_next() {
                drop(state);
                let taken = take(item);
                state = self.lock();
                state.next += 1;
                state.has_stopped |= taken.is_err();
                self.moved_on.notify_all();
                taken?;
            }
            state.is_taking = false;
        }

        // The thread that has the next item is never among those that wait.
        while number >= state.next + self.most_ahead && !state.has_stopped {
            state = self.moved_on.wait(state).expect(NO_PANIC);
        }
        Ok(!state.has_stopped)
    }

    /// Ends the waiting of all threads if this one panics, as its item will never come.
    pub(super) fn stop_on_panic(&self) -> StopOnPanic<'_, T> {
        StopOnPanic(self)
    }

    fn lock(&self) -> MutexGuard<'_, OrderState<T>> {
        self.state.lock().expect(NO_PANIC)
    }
}

impl<T> OrderState<T> {
    fn take_next(&mut self) -> Option<T> {
        if self.has_stopped {
            return None;
        }
        self.early.remove(&self.next)
    }
}

/// See [`LogOrder::stop_on_panic`].
pub(super) struct StopOnPanic<'a, T>(&'a LogOrder<T>);

impl<T> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().has_stopped = true;
            self.0.moved_on.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::bail;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Hands in the numbers from 0 to `count` by three threads; what was taken, and what came of it
    /// on each thread.
    fn taken_of(
        count: usize,
        most_ahead: usize,
        take: impl Fn(usize) -> Result<()> + Sync,
    ) -> (Vec<usize>, Vec<Result<bool>>) {
        let order = LogOrder::new(most_ahead);
        let begun = AtomicUsize::new(0);
        let taken = Mutex::new(Vec::new());
        let hand_in_all = || {
            loop {
                let number = begun.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(true);
                }
                // Threads are done in another order than they began.
                std::thread::sleep(std::time::Duration::from_micros(number as u64 * 7 % 50));
                let goes_on = order.hand_in(number, number, |item| {
                    taken.lock().expect("whole").push(item);
                    take(item)
                })?;
                if !goes_on {
                    return Ok(false);
                }
            }
        };
        let results = std::thread::scope(|scope| {
            let threads = [(); 3].map(|()| scope.spawn(hand_in_all));
            threads
                .map(|thread| thread.join().expect("no panic"))
                .into()
        });
        (taken.into_inner().expect("whole"), results)
    }

    #[test]
    fn items_are_taken_in_the_order_of_their_numbers() {
        for most_ahead in [1, 2, 100] {
            let (taken, results) = taken_of(500, most_ahead, |_| Ok(()));
            assert_eq!(taken, Vec::from_iter(0..500));
            assert!(results.iter().all(|result| matches!(result, Ok(true))));
        }
    }

    #[test]
    fn nothing_is_taken_after_what_could_not_be() {
        for most_ahead in [1, 100] {
            let (taken, results) = taken_of(500, most_ahead, |item| {
                if item == 40 {
                    bail!("no room for {item}");
                }
                Ok(())
            });
            assert_eq!(taken, Vec::from_iter(0..=40));
            assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1);
        }
    }

    #[test]
    fn a_panic_ends_the_waiting_of_others() {
        let order = LogOrder::new(1);
        let results = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| order.hand_in(1, 1, |_| Ok(())));
            let panicking = scope.spawn(|| {
                let _stop = order.stop_on_panic();
                panic!("before item 0 is handed in");
            });
            (waiting.join(), panicking.join().is_err())
        });
        assert!(matches!(results, (Ok(Ok(false)), true)));
    }
}
