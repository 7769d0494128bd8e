//! Columns of metadata → the class or number, the group and the time of each row.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context as _, Result, bail, ensure};

use super::metadata::{MetadataColumn, MetadataTable};
use super::name_list::list_names;
use super::row_targets::{NumberLoss, RowClasses, RowNumbers, RowTargets};
use poolcast_config::DataConfig;
use poolcast_base::error::hinted;
use poolcast_base::moment::parse_moment_ms;

/// The most classes that a target may have.
const MAX_CLASSES: usize = 1000;

/// What to do about rows whose target is not known.
const NO_TARGET_HINT: &str = "add `and TARGET is not missing` to the split, with the name of the target column; without splits, \
                              name one, such as `all: \"TARGET is not missing\"`";

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
    /// What of numbers is predicted; `None` where the target has classes.
    loss: Option<NumberLoss>,
    group: Option<&'a MetadataColumn>,
    time: Option<&'a MetadataColumn>,
}

/// What the columns say of each row.
pub(super) struct RowLabels {
    /// What is to be predicted of each row, `[n]`. Classes are in order: numbers by size, texts by
    /// alphabet.
    pub(super) targets: RowTargets,
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
            loss: NumberLoss::of_task(data),
            group: optional(&data.group)?,
            time: optional(&data.time)?,
        })
    }

    /// The class or number, the group and the time of each row.
    ///
    /// # Errors
    /// Fails for a row without one of them, and for a target of classes that has numbers to
    /// predict, or the other way round.
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
            // Each row is a group of its own.
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
                NO_TARGET_HINT
            )
        );

        let distinct: BTreeSet<&String> = found.iter().collect();
        let mut names: Vec<String> = distinct.into_iter().cloned().collect();
        if matches!(target, MetadataColumn::Numbers(_)) {
            // As texts 10 would come before 9.
            let number = |name: &str| name.parse().unwrap_or(f64::NAN);
            names.sort_by(|a, b| number(a).total_cmp(&number(b)));
        }
        ensure!(
            names.len() <= MAX_CLASSES,
            hinted(
                format!(
                    "the target has {} classes: it is a number to predict, and no class",
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

    /// The number of each row in the column `target`.
    fn numbers(self, target: &MetadataColumn) -> Result<Vec<f64>> {
        let MetadataColumn::Numbers(values) = target else {
            bail!(hinted(
                "the target is no number, and `task: regression` predicts numbers",
                "leave `task` out to predict classes"
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
