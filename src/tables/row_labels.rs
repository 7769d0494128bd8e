//! Labels of rows from the columns of the metadata: class or number, group and time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context as _, Result, bail, ensure};

use super::metadata::{MetadataColumn, MetadataTable};
use super::name_list::list_names;
use super::row_targets::{NumberLoss, RowClasses, RowNumbers, RowTargets};
use crate::DataConfig;
use poolcast_base::error::hinted;
use poolcast_base::moment::parse_time_ms;

/// Maximum number of classes of a target.
const MAX_CLASSES: usize = 1000;

/// Hint for rows without a known target.
const NO_TARGET_HINT: &str = "add `and TARGET is not missing` to the split, with the name of the target column; without splits, \
                              name one, such as `all: \"TARGET is not missing\"`";

/// Rows of the metadata.
#[derive(Clone, Copy)]
pub(super) struct NamedRows<'a> {
    /// Indices of the rows, `[n]`.
    pub(super) places: &'a [usize],
    /// Names of the rows, `[n]`.
    pub(super) names: &'a [String],
}

/// Columns of the metadata that have the labels of the rows.
pub(super) struct LabelColumns<'a> {
    target: &'a MetadataColumn,
    /// Loss of a numeric target; `None` if the target has classes.
    loss: Option<NumberLoss>,
    group: Option<&'a MetadataColumn>,
    time: Option<&'a MetadataColumn>,
}

/// Labels of rows.
pub(super) struct RowLabels {
    /// Target of each row, `[n]`. Classes are sorted: numbers by size, texts alphabetically.
    pub(super) targets: RowTargets,
    /// Group of each row as a number, `[n]`.
    pub(super) groups: Vec<u64>,
    /// Name of each row's group, `[n]`, if there is a column of groups.
    pub(super) group_names: Option<Vec<String>>,
    /// Time of each row, `[n]`, if there is a column of times.
    pub(super) times: Option<Vec<f64>>,
}

impl<'a> LabelColumns<'a> {
    /// Finds the columns that `data` names.
    ///
    /// # Errors
    /// Fails if a column does not exist; the message has the nearest name.
    pub(super) fn find(
        data: &DataConfig,
        target: &str,
        metadata: &'a MetadataTable,
    ) -> Result<LabelColumns<'a>> {
        let optional =
            |name: &Option<String>| name.as_ref().map(|name| metadata.column(name)).transpose();
        Ok(LabelColumns {
            target: metadata.column(target)?,
            loss: NumberLoss::from_task(data),
            group: optional(&data.group)?,
            time: optional(&data.time)?,
        })
    }

    /// Returns the class or number, the group and the time of each row.
    ///
    /// # Errors
    /// Fails for a row without one of them. Fails if the target does not fit the task: more than
    /// [`MAX_CLASSES`] classes, or texts or truth values instead of numbers to predict.
    pub(super) fn label_rows(&self, rows: NamedRows<'_>) -> Result<RowLabels> {
        let targets = match self.loss {
            None => RowTargets::Classes(rows.classes(self.target)?),
            Some(loss) => RowTargets::Numbers(RowNumbers {
                y: rows.numbers(self.target)?,
                loss,
            }),
        };
        let group_names = match self.group {
            Some(column) => Some(rows.group_names(column)?),
            None => None,
        };
        let groups = match &group_names {
            Some(names) => number_groups(names),
            // Each row is its own group.
            None => (0..rows.places.len() as u64).collect(),
        };
        let times = match self.time {
            Some(column) => Some(rows.times(column)?),
            None => None,
        };
        Ok(RowLabels {
            targets,
            groups,
            group_names,
            times,
        })
    }
}

impl NamedRows<'_> {
    /// Returns the class of each row from the column `target`.
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
                    "no class is known for the row {}",
                    list_names(without_class.into_iter())
                ),
                NO_TARGET_HINT
            )
        );

        let distinct: BTreeSet<&String> = found.iter().collect();
        let mut names: Vec<String> = distinct.into_iter().cloned().collect();
        if matches!(target, MetadataColumn::Numbers(_)) {
            // As texts, 10 would come before 9.
            let number = |name: &str| name.parse().unwrap_or(f64::NAN);
            names.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        ensure!(
            names.len() <= MAX_CLASSES,
            hinted(
                format!(
                    "the target has {} classes, more than {MAX_CLASSES}",
                    names.len()
                ),
                "add `task: regression` to `data`"
            )
        );

        let place_of_class: HashMap<&str, u32> =
            names.iter().map(String::as_str).zip(0..).collect();
        let y = found
            .iter()
            .map(|name| place_of_class[name.as_str()])
            .collect();
        Ok(RowClasses { names, y })
    }

    /// Returns the number of each row from the column `target`.
    fn numbers(self, target: &MetadataColumn) -> Result<Vec<f64>> {
        let MetadataColumn::Numbers(values) = target else {
            bail!(hinted(
                "the target is not a number, but `task: regression` predicts numbers",
                "remove `task` to predict classes"
            ));
        };
        let mut numbers = Vec::with_capacity(self.places.len());
        for (place, name) in self.places.iter().zip(self.names) {
            let number = values[*place];
            ensure!(
                number.is_finite(),
                hinted(
                    format!("the row `{name}` has no finite number to predict"),
                    NO_TARGET_HINT
                )
            );
            numbers.push(number);
        }
        Ok(numbers)
    }

    /// Returns the name of each row's group.
    fn group_names(self, column: &MetadataColumn) -> Result<Vec<String>> {
        let mut found = Vec::with_capacity(self.places.len());
        for (place, name) in self.places.iter().zip(self.names) {
            found.push(column.text_at(*place).with_context(|| {
                hinted(
                    format!("the row `{name}` has no group"),
                    "exclude it from the splits",
                )
            })?);
        }
        Ok(found)
    }

    /// Returns the time of each row. Numbers stay as they are. Texts are dates or timestamps, and
    /// become seconds.
    fn times(self, column: &MetadataColumn) -> Result<Vec<f64>> {
        let mut times = Vec::with_capacity(self.places.len());
        for (place, name) in self.places.iter().zip(self.names) {
            times.push(time_at(column, *place).with_context(|| {
                hinted(
                    format!("the row `{name}` has no valid time"),
                    "times are numbers, dates such as 2026-01-31 or timestamps such as 2026-01-31T12:00:00",
                )
            })?);
        }
        Ok(times)
    }
}

/// Numbers the groups in the alphabetical order of their names; returns the number of each row's
/// group.
fn number_groups(names: &[String]) -> Vec<u64> {
    let distinct: BTreeSet<&String> = names.iter().collect();
    let numbers: BTreeMap<&String, u64> = distinct.into_iter().zip(0..).collect();
    names.iter().map(|name| numbers[name]).collect()
}

fn time_at(column: &MetadataColumn, row: usize) -> Option<f64> {
    match column {
        MetadataColumn::Numbers(values) => Some(values[row]).filter(|value| !value.is_nan()),
        MetadataColumn::Texts(values) => {
            let moment_ms = parse_time_ms(values[row].as_deref()?)?;
            Some(moment_ms as f64 / 1000.0)
        }
        MetadataColumn::Bools(_) => None,
    }
}
