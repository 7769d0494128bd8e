//! A table of recent keys. It forgets some keys, but never mistakes one key for another.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

/// Recently inserted keys. If two keys need one slot, the table forgets the older one. So it suits
/// only uses in which repeating a key does no harm. Threads may look up keys while another one
/// inserts; they may miss the latest keys.
#[derive(Debug)]
pub(super) struct RecentKeys {
    /// Key in each slot; 0 for none.
    slots: Vec<AtomicU64>,
}

impl RecentKeys {
    /// Creates a table with `slots` slots, rounded up to a power of two.
    pub(super) fn new(slots: usize) -> RecentKeys {
        let empty = std::iter::repeat_with(AtomicU64::default);
        RecentKeys {
            slots: empty.take(slots.next_power_of_two()).collect(),
        }
    }

    /// Inserts `key`. Returns true if it was already known. `spread` selects the slot of the key.
    pub(super) fn insert(&self, key: NonZeroU64, spread: u64) -> bool {
        let is_known = self.contains(key, spread);
        if !is_known {
            // No other data depends on the key, so relaxed ordering is enough.
            self.slot(spread).store(key.get(), Ordering::Relaxed);
        }
        is_known
    }

    /// Returns true if `key` is known.
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
