//! How many items are in each state.

use super::chunk_entry::{ChunkEntry, ChunkState};

/// How many trials are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemStateCounts {
    /// Trials that no worker is at.
    pub ready: usize,
    /// Trials of chunks that a worker has: the one it is at, and those it does next.
    pub leased: usize,
    /// Trials whose results are on disk.
    pub done: usize,
    /// Trials that were given up, as too many workers died of them.
    pub quarantined: usize,
    /// How many trials there are, once no more will come.
    pub sealed: Option<usize>,
}

impl ItemStateCounts {
    /// Counts the trials of `entries`.
    pub fn of_entries<'a>(entries: impl Iterator<Item = &'a ChunkEntry>) -> ItemStateCounts {
        let mut counts = ItemStateCounts::default();
        for entry in entries {
            let quarantined = entry.given_up.count_ones() as usize;
            counts.quarantined += quarantined;
            counts.done += entry.ended - quarantined;

            let open = entry.chunk.count - entry.ended;
            match entry.state {
                ChunkState::Ready => counts.ready += open,
                ChunkState::Leased(_) => counts.leased += open,
                ChunkState::Done(_) => {}
            }
        }
        counts
    }

    /// Adds the trials that `other` counted.
    pub(super) fn add(&mut self, other: ItemStateCounts) {
        self.ready += other.ready;
        self.leased += other.leased;
        self.done += other.done;
        self.quarantined += other.quarantined;
    }

    /// Trials to which nothing more will happen.
    pub fn ended(&self) -> usize {
        self.done + self.quarantined
    }

    /// All trials.
    pub fn total(&self) -> usize {
        self.ready + self.leased + self.ended()
    }

    /// Whether all trials have ended, and no more will come. Items that somebody else put there may
    /// count as ended. Therefore it is not enough that as many have ended as there are trials: none
    /// may be left.
    pub fn is_over(&self) -> bool {
        self.sealed.is_some_and(|sealed| self.ended() >= sealed) && self.ended() == self.total()
    }
}
