//! Counts of trials by state.

use super::chunk_entry::{ChunkEntry, ChunkState};

/// Number of trials in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemStateCounts {
    /// Trials that no worker has leased.
    pub ready: usize,
    /// Trials of leased chunks: the running one, and the ones after it.
    pub leased: usize,
    /// Trials whose results are on disk.
    pub done: usize,
    /// Trials that were given up because too many workers died of them.
    pub quarantined: usize,
    /// Number of trials, once no more will be added.
    pub sealed: Option<usize>,
}

impl ItemStateCounts {
    /// Counts the trials of `entries`.
    pub fn from_entries<'a>(entries: impl Iterator<Item = &'a ChunkEntry>) -> ItemStateCounts {
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

    /// Adds the counts of `other`.
    pub(super) fn add(&mut self, other: ItemStateCounts) {
        self.ready += other.ready;
        self.leased += other.leased;
        self.done += other.done;
        self.quarantined += other.quarantined;
    }

    /// Number of trials that have ended.
    pub fn ended(&self) -> usize {
        self.done + self.quarantined
    }

    /// Number of all trials.
    pub fn total(&self) -> usize {
        self.ready + self.leased + self.ended()
    }

    /// Returns true if all trials have ended, and no more will be added. Items from outside the
    /// sweep may count as ended. It is therefore not enough that the expected number of trials has
    /// ended: there must also be no open trial.
    pub fn is_over(&self) -> bool {
        self.sealed.is_some_and(|sealed| self.ended() >= sealed) && self.ended() == self.total()
    }
}
