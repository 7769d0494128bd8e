//! What hold reasons state as numbers, for a model.

use std::collections::{BTreeMap, BTreeSet};

use htcondor_eventlog::{HELD, ReasonKind};
use twox_hash::XxHash3_64;

use poolcast_events::{EventStore, StoredJob};
use poolcast_models::REASON_WORDS;

/// Row of a hold whose reason was not understood.
const NOT_UNDERSTOOD: u16 = 0;

/// A table `[r, 64]` with a row for each kind of reason. Row 0 is zero.
#[derive(Debug)]
pub(crate) struct ReasonWords {
    /// Rows of the packed kinds.
    rows: BTreeMap<u32, u16>,
    table: Vec<f32>,
}

impl ReasonWords {
    /// Makes the rows of the reasons in `store`.
    pub(crate) fn new(store: &EventStore) -> ReasonWords {
        let mut words = ReasonWords {
            rows: BTreeMap::from([(ReasonKind::default().packed_fault(), NOT_UNDERSTOOD)]),
            table: vec![0.0; REASON_WORDS],
        };
        for packed in packed_kinds(store) {
            let row = words.table.len() / REASON_WORDS;
            if let Ok(row) = u16::try_from(row)
                && !words.rows.contains_key(&packed)
            {
                words.rows.insert(packed, row);
                words.table.extend(word_counts(packed));
            }
        }
        words
    }

    /// Returns the row of the reason of event `hold` of `job`.
    pub(crate) fn row(&self, job: &StoredJob<'_>, hold: usize) -> u16 {
        let packed = job.hold_facts(hold).kind.packed_fault();
        self.rows.get(&packed).copied().unwrap_or(NOT_UNDERSTOOD)
    }

    /// The table, `[r, 64]`.
    pub(crate) fn table(&self) -> &[f32] {
        &self.table
    }
}

/// Returns what the reasons of all holds state, in order.
fn packed_kinds(store: &EventStore) -> BTreeSet<u32> {
    let mut kinds = BTreeSet::new();
    let jobs = store.jobs();
    for job in (0..jobs.len())
        .filter(|&index| jobs.was_held(index))
        .map(|index| jobs.get(index))
    {
        let holds = (0..job.history.number.len()).filter(|&at| job.history.number[at] == HELD);
        kinds.extend(holds.map(|hold| job.hold_facts(hold).kind.packed_fault()));
    }
    kinds
}

/// Counts the parts of a packed kind by their hash, divided by the root of their number.
fn word_counts(packed: u32) -> [f32; REASON_WORDS] {
    let numbers = ReasonKind::from_packed(packed).numbers();
    let parts = || (0u32..).zip(numbers).filter(|(_, number)| *number != 0);
    let share = 1.0 / (parts().count().max(1) as f32).sqrt();
    let mut counts = [0.0; REASON_WORDS];
    for (field, number) in parts() {
        let part = [field.to_le_bytes(), number.to_le_bytes()].concat();
        counts[XxHash3_64::oneshot(&part) as usize % REASON_WORDS] += share;
    }
    counts
}
