//! Selects the rows of the metadata for each split of `data`, by the split's filters.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::filter::RowFilter;
use super::metadata::MetadataTable;
use super::name_list::list_names;
use crate::{DataConfig, EVALUATE, WHOLE};
use poolcast_base::error::{HintedError, hinted};

/// Rows of a split, ascending.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SplitRows {
    /// Training rows.
    pub train: Vec<usize>,
    /// Validation rows; empty if the split holds out no rows.
    pub validate: Vec<usize>,
    /// Further rows to score models on, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evaluate: BTreeMap<String, Vec<usize>>,
}

/// Rows of a split that models do not learn from.
pub(super) struct HeldOutRows<'a> {
    /// Name of the filter that selects the rows.
    pub(super) filter: String,
    pub(super) rows: &'a [usize],
}

impl SplitRows {
    /// Iterates over the training, validation and further rows. A row may occur more than once.
    pub fn all_rows(&self) -> impl Iterator<Item = usize> {
        self.train
            .iter()
            .chain(&self.validate)
            .chain(self.evaluate.values().flatten())
            .copied()
    }

    /// Returns the rows that models of the split `split` do not learn from.
    pub(super) fn held_out<'a>(&'a self, split: &str) -> Vec<HeldOutRows<'a>> {
        let mut held_out = vec![HeldOutRows {
            filter: format!("validate_{split}"),
            rows: &self.validate,
        }];
        for (name, rows) in &self.evaluate {
            held_out.push(HeldOutRows {
                filter: format!("{EVALUATE}{name}"),
                rows,
            });
        }
        held_out
    }

    /// Returns the same split for a table with other row indices. `places` maps old indices to new
    /// ones.
    pub(super) fn moved(self, places: &HashMap<usize, usize>) -> SplitRows {
        let moved = |rows: Vec<usize>| rows.iter().map(|row| places[row]).collect();
        SplitRows {
            train: moved(self.train),
            validate: moved(self.validate),
            evaluate: self
                .evaluate
                .into_iter()
                .map(|(name, rows)| (name, moved(rows)))
                .collect(),
        }
    }
}

/// Selects the rows of the metadata for each chosen split, or all rows if there are no splits.
///
/// # Errors
/// Fails if a filter cannot be used or selects no rows, and if a split would both learn from a row
/// and hold it out.
pub(super) fn select_splits(
    data: &DataConfig,
    metadata: &MetadataTable,
) -> Result<BTreeMap<String, SplitRows>> {
    if data.splits.is_empty() {
        let whole = SplitRows {
            train: (0..metadata.index.len()).collect(),
            ..SplitRows::default()
        };
        return Ok([(WHOLE.to_owned(), whole)].into());
    }

    let mut splits = BTreeMap::new();
    for name in data.chosen()? {
        let selector = SplitSelector {
            data,
            metadata,
            name: &name,
        };
        let rows = selector.select()?;
        splits.insert(name, rows);
    }
    Ok(splits)
}

/// Selects the rows of one split.
struct SplitSelector<'a> {
    data: &'a DataConfig,
    metadata: &'a MetadataTable,
    /// Name of the split.
    name: &'a str,
}

impl SplitSelector<'_> {
    fn select(&self) -> Result<SplitRows> {
        let mut split = self.select_learned()?;
        if !self.data.validate {
            // The configuration holds out no rows, so models learn from all of them.
            split.train.append(&mut split.validate);
            split.train.sort_unstable();
        }
        self.select_evaluated(&mut split)?;
        Ok(split)
    }

    /// Selects the training and validation rows of the split: `train_NAME` and `validate_NAME`, or
    /// `NAME` alone.
    fn select_learned(&self) -> Result<SplitRows> {
        let [train, validate] = ["train", "validate"].map(|part| format!("{part}_{}", self.name));
        let has_train = self.data.splits.contains_key(&train);
        let mut split = SplitRows {
            train: self.select_filter(if has_train { &train } else { self.name })?,
            ..SplitRows::default()
        };
        if has_train && self.data.splits.contains_key(&validate) {
            split.validate = self.select_filter(&validate)?;
        }

        // Even if both parts are merged afterwards, a row in both is a mistake in the filters.
        let learned: BTreeSet<usize> = split.train.iter().copied().collect();
        self.check_disjoint(&learned, &split.validate, || {
            format!("`{train}` and `{validate}`")
        })?;
        Ok(split)
    }

    /// Adds the further rows to score models on.
    fn select_evaluated(&self, split: &mut SplitRows) -> Result<()> {
        for evaluated in self.data.evaluated(self.name) {
            let filter = format!("{EVALUATE}{evaluated}");
            let rows = self.select_filter(&filter)?;

            // Validation rows choose the best trial, so its score on them would not be honest
            // either.
            let known: BTreeSet<usize> =
                split.train.iter().chain(&split.validate).copied().collect();
            self.check_disjoint(&known, &rows, || {
                format!("the split `{}` and `{filter}`", self.name)
            })?;
            split.evaluate.insert(evaluated.to_owned(), rows);
        }
        Ok(())
    }

    /// Returns the rows that the filter `data.splits.FILTER` selects.
    fn select_filter(&self, filter: &str) -> Result<Vec<usize>> {
        let rows = RowFilter::parse(&self.data.splits[filter])
            .and_then(|parsed| parsed.select(self.metadata))
            .with_context(|| format!("cannot use `data.splits.{filter}`"))?;
        ensure!(
            !rows.is_empty(),
            hinted(
                format!("`data.splits.{filter}` selects no row"),
                "change the filter; rows where it is unknown are not selected"
            )
        );
        Ok(rows)
    }

    /// Fails if one of the rows `held_out` is in `known`. `parts` names both for the message.
    fn check_disjoint(
        &self,
        known: &BTreeSet<usize>,
        held_out: &[usize],
        parts: impl FnOnce() -> String,
    ) -> Result<()> {
        let both: Vec<&str> = held_out
            .iter()
            .filter(|row| known.contains(row))
            .map(|row| self.metadata.index[*row].as_str())
            .collect();
        ensure!(
            both.is_empty(),
            shared_names(&parts(), "row", both.into_iter())
        );
        Ok(())
    }
}

/// Returns the error for two parts that share rows or groups, as a model would learn from them and
/// be validated on them.
pub(super) fn shared_names<'a>(
    parts: &str,
    what: &str,
    names: impl ExactSizeIterator<Item = &'a str>,
) -> HintedError {
    hinted(
        format!("{parts} share the {what} {}", list_names(names)),
        "models must not be validated on what they learned from; change one of the two filters",
    )
}
