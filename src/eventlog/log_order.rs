//! Reorder buffer: threads submit numbered items in any order, and the items are consumed in log
//! order.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard};

/// Message for locks of the threads that read one log. It states why the locks are never poisoned.
pub(super) const NO_PANIC: &str = "no thread panics with the lock";

/// Accepts numbered items from many threads, and has them consumed in order of their numbers. One
/// thread consumes at a time: the one that submits the next item.
pub(super) struct LogOrder<T> {
    state: Mutex<OrderState<T>>,
    /// Notified after each consumed item, and when consumption stops.
    progressed: Condvar,
    /// Maximum distance of an item from the next one to consume; a thread that submits a later item
    /// waits.
    max_ahead: usize,
}

struct OrderState<T> {
    /// Number of the next item to consume.
    next: usize,
    /// Items that were submitted before their turn.
    early: BTreeMap<usize, T>,
    /// True if a thread is consuming items.
    is_consuming: bool,
    /// True if an item failed, or a thread has panicked.
    has_stopped: bool,
}

impl<T> LogOrder<T> {
    /// Creates a buffer in which a thread waits if its item is `max_ahead` or more ahead.
    pub(super) fn new(max_ahead: usize) -> LogOrder<T> {
        LogOrder {
            state: Mutex::new(OrderState {
                next: 0,
                early: BTreeMap::new(),
                is_consuming: false,
                has_stopped: false,
            }),
            progressed: Condvar::new(),
            max_ahead,
        }
    }

    /// Submits item `number`. If it is the next one, `take` consumes it and the items that follow
    /// it. If it is far ahead, the thread waits. Returns true if the caller may submit more items,
    /// and false after an item failed or a thread panicked.
    ///
    /// # Errors
    /// Fails if `take` fails.
    pub(super) fn hand_in<E>(
        &self,
        number: usize,
        item: T,
        mut take: impl FnMut(T) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut state = self.lock();
        state.early.insert(number, item);

        if !state.is_consuming {
            state.is_consuming = true;
            while let Some(item) = state.pop_next() {
                drop(state);
                let taken = take(item);
                state = self.lock();
                state.next += 1;
                state.has_stopped |= taken.is_err();
                self.progressed.notify_all();
                taken?;
            }
            state.is_consuming = false;
        }

        // The thread that has the next item never waits here, so the others cannot wait forever.
        while number >= state.next + self.max_ahead && !state.has_stopped {
            state = self.progressed.wait(state).expect(NO_PANIC);
        }
        Ok(!state.has_stopped)
    }

    /// Returns a guard that wakes all waiting threads if this thread panics, because its item will
    /// never be submitted.
    pub(super) fn stop_on_panic(&self) -> StopOnPanic<'_, T> {
        StopOnPanic(self)
    }

    fn lock(&self) -> MutexGuard<'_, OrderState<T>> {
        self.state.lock().expect(NO_PANIC)
    }
}

impl<T> OrderState<T> {
    fn pop_next(&mut self) -> Option<T> {
        if self.has_stopped {
            return None;
        }
        self.early.remove(&self.next)
    }
}

/// Guard of [`LogOrder::stop_on_panic`].
pub(super) struct StopOnPanic<'a, T>(&'a LogOrder<T>);

impl<T> Drop for StopOnPanic<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().has_stopped = true;
            self.0.progressed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Submits the numbers from 0 to `count` on three threads. Returns the consumed numbers, and
    /// the result of each thread.
    fn consume_on_threads(
        count: usize,
        max_ahead: usize,
        take: impl Fn(usize) -> Result<(), String> + Sync,
    ) -> (Vec<usize>, Vec<Result<bool, String>>) {
        let order = LogOrder::new(max_ahead);
        let begun = AtomicUsize::new(0);
        let taken = Mutex::new(Vec::new());
        let hand_in_all = || {
            loop {
                let number = begun.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok(true);
                }
                // Threads finish in another order than they begin.
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
    fn items_are_consumed_in_numeric_order() {
        for max_ahead in [1, 2, 100] {
            let (taken, results) = consume_on_threads(500, max_ahead, |_| Ok(()));
            assert_eq!(taken, Vec::from_iter(0..500));
            assert!(results.iter().all(|result| matches!(result, Ok(true))));
        }
    }

    #[test]
    fn consumption_stops_at_the_first_error() {
        for max_ahead in [1, 100] {
            let (taken, results) = consume_on_threads(500, max_ahead, |item| {
                if item == 40 {
                    return Err(format!("no room for {item}"));
                }
                Ok(())
            });
            assert_eq!(taken, Vec::from_iter(0..=40));
            assert_eq!(results.iter().filter(|result| result.is_err()).count(), 1);
        }
    }

    #[test]
    fn a_panic_wakes_waiting_threads() {
        let order = LogOrder::new(1);
        let results = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| order.hand_in(1, 1, |_| Ok::<(), String>(())));
            let panicking = scope.spawn(|| {
                let _stop = order.stop_on_panic();
                panic!("before item 0 is handed in");
            });
            (waiting.join(), panicking.join().is_err())
        });
        assert!(matches!(results, (Ok(Ok(false)), true)));
    }
}
