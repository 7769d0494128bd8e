//! Keys one after another → whether each was met lately: a table that forgets some, and never takes
//! one for another.

/// Keys that were met lately. Forgets the older of two that want one slot, so it only suits where
/// meeting a key anew does no harm.
#[derive(Debug)]
pub(super) struct RecentKeys<K> {
    slots: Vec<Option<K>>,
}

impl<K: Copy + PartialEq> RecentKeys<K> {
    /// A table of `slots`, a power of two.
    pub(super) fn new(slots: usize) -> RecentKeys<K> {
        RecentKeys {
            slots: vec![None; slots.next_power_of_two()],
        }
    }

    /// Whether `key` is known; from now on it is. `spread` places the keys in the table.
    pub(super) fn insert(&mut self, key: K, spread: u64) -> bool {
        let slot = self.slot_of(spread);
        self.slots[slot].replace(key) == Some(key)
    }

    /// Whether `key` is known.
    pub(super) fn contains(&self, key: K, spread: u64) -> bool {
        self.slots[self.slot_of(spread)] == Some(key)
    }

    fn slot_of(&self, spread: u64) -> usize {
        spread as usize & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_one_slot_displace_each_other() {
        let mut known = RecentKeys::new(4);
        let met = [(7, 3), (7, 3), (8, 7), (7, 3), (9, 1), (7, 3)]
            .map(|(key, hash)| known.insert(key, hash));
        assert_eq!(met, [false, true, false, false, false, true]);
        assert_eq!(
            [(7, 3), (8, 7), (9, 1), (9, 2)].map(|(key, hash)| known.contains(key, hash)),
            [true, false, true, false]
        );
    }
}
