//! Columns of metadata → the class, the group and the time of each row.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context as _, Result, ensure};

use super::metadata::{MetadataColumn, MetadataTable};
use super::name_list::list_names;
use crate::config::DataConfig;
use crate::error::hinted;
use crate::moment::parse_moment_ms;

/// The most classes that a target may have.
const MAX_CLASSES: usize = 1000;

/// Rows of the metadata.
#[derive(Clone, Copy)]
pub(super) struct NamedRows<'a> {
    /// Their places, `[n]`.
    pub(super) places: &'a [usize],
    /// What they are called, `[n]`.
    pub(super) names: &'a [String],
}

/// The columns of the metadata that say what each row is.
pub(super) struct LabelColumns<'a> {
    target: &'a MetadataColumn,
    group: Option<&'a MetadataColumn>,
    time: Option<&'a MetadataColumn>,
}

/// What the columns say of each row.
pub(super) struct RowLabels {
    /// The names of the classes: numbers by size, texts by alphabet.
    pub(super) classes: Vec<String>,
    /// The class of each row, `[n]`: a place in `classes`.
    pub(super) y: Vec<u32>,
    /// The group of each row as a number, `[n]`.
    pub(super) groups: Vec<u64>,
    /// The name of each row's group, `[n]`, where a column says it.
    pub(super) group_names: Option<Vec<String>>,
    /// When each row was, `[n]`, where a column says it.
    pub(super) times: Option<Vec<f64>>,
}

impl<'a> LabelColumns<'a> {
    /// The columns that `data` names.
    ///
    /// # Errors
    /// Fails where one is not there, and names the nearest.
    pub(super) fn find(
        data: &DataConfig,
        target: &str,
        metadata: &'a MetadataTable,
    ) -> Result<LabelColumns<'a>> {
        let optional =
            |name: &Option<String>| name.as_ref().map(|name| metadata.column(name)).transpose();
        Ok(LabelColumns {
            target: metadata.column(target)?,
            group: optional(&data.group)?,
            time: optional(&data.time)?,
        })
    }

    /// The class, the group and the time of each row.
    ///
    /// # Errors
    /// Fails for a row without one of them, and for a target that is no class but a number to
    /// predict.
    pub(super) fn label_rows(&self, rows: NamedRows<'_>) -> Result<RowLabels> {
        let RowClasses { classes, y } = rows.classes(self.target)?;
        let group_names = match self.group {
            Some(column) => Some(rows.group_names(column)?),
            None => None,
        };
        let groups = match &group_names {
            Some(names) => number_groups(names),
            // Each row is a group of its own.
            None => (0..rows.places.len() as u64).collect(),
        };
        let times = match self.time {
            Some(column) => Some(rows.times(column)?),
            None => None,
        };
        Ok(RowLabels {
            classes,
            y,
            groups,
            group_names,
            times,
        })
    }
}

/// Classes by name, and the class of each row.
struct RowClasses {
    classes: Vec<String>,
    y: Vec<u32>,
}

impl NamedRows<'_> {
    /// What the column `target` says of each row.
    fn classes(self, target: &MetadataColumn) -> Result<RowClasses> {
        let mut found = Vec::with_capacity(self.places.len());
        let mut without_class = Vec::new();
        for (place, name) in self.places.iter().zip(self.names) {
            match target.text_at(*place) {
                Some(class) => found.push(class),
                None => without_class.push(name.as_str()),
            }
        }
        ensure!(
            without_class.is_empty(),
            hinted(
                format!(
                    "no class is known of the row {}",
                    list_names(without_class.into_iter())
                ),
                "add `and TARGET is not missing` to the split, with the name of the target column; without splits, name one, such \
                 as `all: \"TARGET is not missing\"`"
            )
        );

        let distinct: BTreeSet<&String> = found.iter().collect();
        let mut classes: Vec<String> = distinct.into_iter().cloned().collect();
        if matches!(target, MetadataColumn::Numbers(_)) {
            // As texts 10 would come before 9.
            let number = |name: &str| name.parse().unwrap_or(f64::NAN);
            classes.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        ensure!(
            classes.len() <= MAX_CLASSES,
            "the target has {} classes: it is a number to predict, and no class",
            classes.len()
        );

        let place_of_class: HashMap<&str, u32> =
            classes.iter().map(String::as_str).zip(0..).collect();
        let y = found
            .iter()
            .map(|name| place_of_class[name.as_str()])
            .collect();
        Ok(RowClasses { classes, y })
    }

    /// The name of each row's group.
    fn group_names(self, column: &MetadataColumn) -> Result<Vec<String>> {
        let mut found = Vec::with_capacity(self.places.len());
        for (place, name) in self.places.iter().zip(self.names) {
            found.push(column.text_at(*place).with_context(|| {
                hinted(
                    format!("the row `{name}` has no group"),
                    "leave it out of the splits",
                )
            })?);
        }
        Ok(found)
    }

    /// The time of each row: numbers as they are, texts as dates or moments, in seconds.
    fn times(self, column: &MetadataColumn) -> Result<Vec<f64>> {
        let mut times = Vec::with_capacity(self.places.len());
        for (place, name) in self.places.iter().zip(self.names) {
            times.push(time_at(column, *place).with_context(|| {
                hinted(
                    format!("the row `{name}` has no time that can be read"),
                    "times are numbers, dates such as 2026-01-31 or moments such as 2026-01-31T12:00:00",
                )
            })?);
        }
        Ok(times)
    }
}

/// A number for each group, by the alphabet of their names.
fn number_groups(names: &[String]) -> Vec<u64> {
    let distinct: BTreeSet<&String> = names.iter().collect();
    let numbers: BTreeMap<&String, u64> = distinct.into_iter().zip(0..).collect();
    names.iter().map(|name| numbers[name]).collect()
}

fn time_at(column: &MetadataColumn, row: usize) -> Option<f64> {
    match column {
        MetadataColumn::Numbers(values) => Some(values[row]).filter(|value| !value.is_nan()),
        MetadataColumn::Texts(values) => {
            let moment_ms = parse_moment_ms(values[row].as_deref()?)?;
            Some(moment_ms as f64 / 1000.0)
        }
        MetadataColumn::Bools(_) => None,
    }
}
