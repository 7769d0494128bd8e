//! A table of metadata → its columns, each of numbers, truth values or texts, and its index.

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use super::file::{Cell, read};
use crate::config::nearest;
use crate::error::hinted;

/// The columns of a table, by name, and the name of each row.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataTable {
    /// What each row is called, `[n]`.
    pub index: Vec<String>,
    names: Vec<String>,
    columns: Vec<MetadataColumn>,
}

/// One column, `[n]`.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataColumn {
    /// What is missing is NaN.
    Numbers(Vec<f64>),
    /// Truth values.
    Bools(Vec<Option<bool>>),
    /// Anything else.
    Texts(Vec<Option<String>>),
}

impl MetadataTable {
    /// Reads the table `path`, whose rows are called what its column `index` says.
    ///
    /// In a CSV file a column is of numbers where all its cells are, of truth values where all are true or false, else of
    /// texts; the index is always one of texts.
    ///
    /// # Errors
    /// Fails where two rows are called the same, and where one has no name.
    pub fn read(path: &Path, index: &str) -> Result<MetadataTable> {
        let head = |names: &[String]| {
            Ok((
                place(names, index)?,
                names.to_vec(),
                vec![Vec::new(); names.len()],
            ))
        };
        let (at, names, values) = read(path, head, |(_, _, values), _, cells| {
            values
                .iter_mut()
                .zip(cells)
                .for_each(|(column, cell): (&mut Vec<Value>, _)| column.push(Value::of(cell)));
            Ok(())
        })?;
        let broken = || format!("cannot use the table `{}`", path.display());
        let named = (1..).zip(&values[at]).map(|(row, value): (usize, &Value)| {
            value
                .name()
                .with_context(|| format!("row {row} has no `{index}`"))
        });
        let index: Vec<String> = named.collect::<Result<_>>().with_context(broken)?;
        check_index(&index, &names[at]).with_context(broken)?;
        let mut columns: Vec<MetadataColumn> = values.into_iter().map(MetadataColumn::of).collect();
        columns[at] = MetadataColumn::Texts(index.iter().cloned().map(Some).collect());
        Ok(MetadataTable {
            index,
            names,
            columns,
        })
    }

    /// The column called `name`.
    ///
    /// # Errors
    /// Names the nearest where there is none.
    pub fn column(&self, name: &str) -> Result<&MetadataColumn> {
        Ok(&self.columns[place(&self.names, name)?])
    }
}

impl MetadataColumn {
    fn of(values: Vec<Value>) -> MetadataColumn {
        let all = |is: fn(&Value) -> bool| {
            values
                .iter()
                .all(|value| *value == Value::Missing || is(value))
        };
        if all(|value| value.number().is_some()) {
            MetadataColumn::Numbers(
                values
                    .iter()
                    .map(|value| value.number().unwrap_or(f64::NAN))
                    .collect(),
            )
        } else if all(|value| value.bool().is_some()) {
            MetadataColumn::Bools(values.iter().map(Value::bool).collect())
        } else {
            MetadataColumn::Texts(values.iter().map(Value::name).collect())
        }
    }

    /// What stands in row `at`, in words; `None` for what is missing.
    pub fn name(&self, at: usize) -> Option<String> {
        match self {
            MetadataColumn::Numbers(values) => Some(values[at])
                .filter(|value| !value.is_nan())
                .map(|value| value.to_string()),
            MetadataColumn::Bools(values) => values[at].map(|value| value.to_string()),
            MetadataColumn::Texts(values) => values[at].clone(),
        }
    }
}

/// A cell that outlives its row.
#[derive(Debug, Clone, PartialEq)]
enum Value {
    Missing,
    Number(f64),
    Bool(bool),
    Text(String),
    Written(String),
}

impl Value {
    fn of(cell: &Cell<'_>) -> Value {
        match *cell {
            Cell::Missing => Value::Missing,
            Cell::Number(number) => Value::Number(number),
            Cell::Bool(value) => Value::Bool(value),
            Cell::Text(text) => Value::Text(text.to_owned()),
            Cell::Written(text) => Value::Written(text.to_owned()),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some(*number),
            Value::Written(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            Value::Written(text) => truth(text),
            _ => None,
        }
    }

    fn name(&self) -> Option<String> {
        match self {
            Value::Missing => None,
            Value::Number(number) => Some(number.to_string()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Text(text) | Value::Written(text) => Some(text.clone()),
        }
    }
}

/// `true` and `false`, as Python and R write them, too.
pub(super) fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

/// Where the column `name` is.
pub(super) fn place(names: &[String], name: &str) -> Result<usize> {
    let Some(at) = names.iter().position(|known| known == name) else {
        let message = format!("there is no column `{name}`");
        match nearest(name, names.iter().map(String::as_str)) {
            Some(nearest) => bail!(hinted(message, format!("did you mean `{nearest}`?"))),
            None => {
                let all: Vec<String> = names
                    .iter()
                    .take(20)
                    .map(|name| format!("`{name}`"))
                    .collect();
                let more = if names.len() > all.len() { ", ..." } else { "" };
                bail!(hinted(
                    message,
                    format!("there are {}{more}", all.join(", "))
                ))
            }
        }
    };
    Ok(at)
}

/// Fails where two rows have the same name.
pub(super) fn check_index(index: &[String], column: &str) -> Result<()> {
    let mut known = HashSet::new();
    match index.iter().find(|name| !known.insert(*name)) {
        Some(twice) => bail!("two rows have the `{column}` `{twice}`: rows are told apart by it"),
        None => Ok(()),
    }
}
