//! Keys one after another → whether each was met lately: a table that forgets some, and never takes
//! one for another.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

/// Keys that were met lately. Forgets the older of two that want one slot, so it only suits where
/// meeting a key anew does no harm. Threads may look keys up while one inserts; they may miss what
/// was inserted just now.
#[derive(Debug)]
pub(super) struct RecentKeys {
    /// The key in each slot; 0 for none.
    slots: Vec<AtomicU64>,
}

impl RecentKeys {
    /// A table of `slots`, a power of two.
    pub(super) fn new(slots: usize) -> RecentKeys {
        let empty = std::iter::repeat_with(AtomicU64::default);
        RecentKeys {
            slots: empty.take(slots.next_power_of_two()).collect(),
        }
    }

    /// Whether `key` is known; from now on it is. `spread` places the keys in the table.
    pub(super) fn insert(&self, key: NonZeroU64, spread: u64) -> bool {
        let is_known = self.contains(key, spread);
        if !is_known {
            // Nothing else is told by a key than itself, so there is no order to keep.
            self.slot(spread).store(key.get(), Ordering::Relaxed);
        }
        is_known
    }

    /// Whether `key` is known.
    pub(super) fn contains(&self, key: NonZeroU64, spread: u64) -> bool {
        self.slot(spread).load(Ordering::Relaxed) == key.get()
    }

    fn slot(&self, spread: u64) -> &AtomicU64 {
        &self.slots[spread as usize & (self.slots.len() - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> NonZeroU64 {
        NonZeroU64::new(number).expect("not 0")
    }

    #[test]
    fn keys_of_one_slot_displace_each_other() {
        let known = RecentKeys::new(4);
        let met = [(7, 3), (7, 3), (8, 7), (7, 3), (9, 1), (7, 3)]
            .map(|(number, spread)| known.insert(key(number), spread));
        assert_eq!(met, [false, true, false, false, false, true]);
        assert_eq!(
            [(7, 3), (8, 7), (9, 1), (9, 2)]
                .map(|(number, spread)| known.contains(key(number), spread)),
            [true, false, true, false]
        );
    }
}
