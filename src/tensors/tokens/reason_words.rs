//! The listed words of hold reasons as numbers, for a model.

use std::collections::BTreeMap;

use twox_hash::XxHash3_64;

use poolcast_events::{EventStore, StoredJob};
use poolcast_models::REASON_WORDS;

/// Row of a hold without a known template.
const NO_TEMPLATE: u16 = 0;

/// A table `[r, 64]` with a row for each template of a hold reason. Row 0 is zero.
#[derive(Debug)]
pub(crate) struct ReasonWords {
    rows: BTreeMap<u32, u16>,
    table: Vec<f32>,
}

impl ReasonWords {
    /// Makes the rows of the templates in `store`.
    pub(crate) fn new(store: &EventStore) -> ReasonWords {
        let mut words = ReasonWords {
            rows: BTreeMap::new(),
            table: vec![0.0; REASON_WORDS],
        };
        for (hash, template) in store.summary.reasons.iter() {
            let row = words.table.len() / REASON_WORDS;
            if let Ok(row) = u16::try_from(row) {
                words.rows.insert(hash, row);
                words.table.extend(word_counts(template));
            }
        }
        words
    }

    /// Returns the row of the reason of event `hold` of `job`.
    pub(crate) fn row(&self, job: &StoredJob<'_>, hold: usize) -> u16 {
        let template = job.history.value[hold].cast_unsigned();
        self.rows.get(&template).copied().unwrap_or(NO_TEMPLATE)
    }

    /// The table, `[r, 64]`.
    pub(crate) fn table(&self) -> &[f32] {
        &self.table
    }
}

/// Counts the words of `template` by their hash, divided by the root of their number.
fn word_counts(template: &str) -> [f32; REASON_WORDS] {
    let mut counts = [0.0; REASON_WORDS];
    let words = || template.split_whitespace().filter(|word| *word != "*");
    let share = 1.0 / (words().count().max(1) as f32).sqrt();
    for word in words() {
        let hash = XxHash3_64::oneshot(word.as_bytes());
        counts[hash as usize % REASON_WORDS] += share;
    }
    counts
}
