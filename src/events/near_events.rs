//! An index of the events of a job in the last second, for seconds with very many events.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::job_row::{EventRow, LogStretch};

/// Indices of events by the stretch that reported them last.
type ByStretch = BTreeMap<LogStretch, BTreeSet<usize>>;

/// The kept events of one job that are close to the current one, by what decides if the current
/// event duplicates them.
#[derive(Debug, Default)]
pub(super) struct NearEvents {
    /// Index of the first close event.
    first: usize,
    /// Number of events that were added.
    end: usize,
    /// Close events by the key that equal events share.
    equal: HashMap<(u16, u32), ByStretch>,
    /// Close events that change the state of the job.
    changes: ByStretch,
}

impl NearEvents {
    /// Returns the index, in `kept`, of the first event that `event` duplicates. That event then
    /// belongs to the stretch of `event`. `kept` must be the events so far without duplicates.
    pub(super) fn find_duplicate(
        &mut self,
        kept: &mut [EventRow],
        event: &EventRow,
    ) -> Option<usize> {
        for (at, row) in kept.iter().enumerate().skip(self.end) {
            self.add(at, row);
        }
        self.end = kept.len();
        while self.first < kept.len() && !event.is_near(&kept[self.first]) {
            self.remove(self.first, &kept[self.first]);
            self.first += 1;
        }

        let duplicate = self.first_duplicate(event)?;
        self.remove(duplicate, &kept[duplicate]);
        kept[duplicate].set_stretch(event.stretch());
        self.add(duplicate, &kept[duplicate]);
        Some(duplicate)
    }

    /// Returns the index of the first close event that `event` duplicates: an equal one of another
    /// stretch, or of the same stretch, if no later event of that stretch changes the state.
    fn first_duplicate(&self, event: &EventRow) -> Option<usize> {
        let last_change = self.changes.get(&event.stretch()).and_then(BTreeSet::last);
        let of_stretch = |(stretch, at): (&LogStretch, &BTreeSet<usize>)| {
            if *stretch == event.stretch() {
                let unchanged_from = last_change.copied().unwrap_or(0);
                at.range(unchanged_from..).next().copied()
            } else {
                at.first().copied()
            }
        };
        let equal = self.equal.get(&event.text_key())?;
        equal.iter().filter_map(of_stretch).min()
    }

    fn add(&mut self, at: usize, event: &EventRow) {
        let stretch = event.stretch();
        let equal = self.equal.entry(event.text_key()).or_default();
        equal.entry(stretch).or_default().insert(at);
        if event.changes_state() {
            self.changes.entry(stretch).or_default().insert(at);
        }
    }

    fn remove(&mut self, at: usize, event: &EventRow) {
        let key = event.text_key();
        if let Some(equal) = self.equal.get_mut(&key) {
            remove_index(equal, event.stretch(), at);
            if equal.is_empty() {
                self.equal.remove(&key);
            }
        }
        if event.changes_state() {
            remove_index(&mut self.changes, event.stretch(), at);
        }
    }
}

/// Removes index `at` of `stretch`.
fn remove_index(indices: &mut ByStretch, stretch: LogStretch, at: usize) {
    if let Some(of_stretch) = indices.get_mut(&stretch) {
        of_stretch.remove(&at);
        if of_stretch.is_empty() {
            indices.remove(&stretch);
        }
    }
}
