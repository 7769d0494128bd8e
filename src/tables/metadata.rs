//! A table of metadata: columns of numbers, truth values or texts, and the names of its rows.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::column_names::{check_unique_index, find_column};
use super::table_file::{TableCell, parse_truth, read_table, time_text};

/// Columns of a table by name, and the name of each row.
#[derive(Debug, Clone, PartialEq)]
pub struct MetadataTable {
    /// Name of each row, `[n]`.
    pub index: Vec<String>,
    names: Vec<String>,
    columns: Vec<MetadataColumn>,
}

/// Cells of one column, `[n]`.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataColumn {
    /// Numbers. NaN marks a missing value.
    Numbers(Vec<f64>),
    /// Truth values. `None` marks a missing value.
    Bools(Vec<Option<bool>>),
    /// Texts, for all other columns. `None` marks a missing value.
    Texts(Vec<Option<String>>),
}

/// Columns of a table while its rows are read.
struct ReadColumns {
    names: Vec<String>,
    index_place: usize,
    cells: Vec<Vec<OwnedCell>>,
}

impl MetadataTable {
    /// Reads the table `path`, whose column `index` has the names of the rows.
    ///
    /// A column of a CSV file has numbers if all its cells are numbers, truth values if all are
    /// true or false, and otherwise texts. The index always has texts.
    ///
    /// # Errors
    /// Fails if two rows have the same name, or if a row has no name.
    pub fn read(path: &Path, index: &str) -> Result<MetadataTable> {
        let begin = |names: &[String]| {
            Ok(ReadColumns {
                names: names.to_vec(),
                index_place: find_column(names, index)?,
                cells: vec![Vec::new(); names.len()],
            })
        };
        let read = read_table(path, begin, |columns, _, row| {
            for (column, cell) in columns.cells.iter_mut().zip(row) {
                column.push(OwnedCell::new(cell));
            }
            Ok(())
        })?;
        MetadataTable::from_columns(read)
            .with_context(|| format!("cannot use the table `{}`", path.display()))
    }

    fn from_columns(read: ReadColumns) -> Result<MetadataTable> {
        let ReadColumns {
            names,
            index_place,
            cells,
        } = read;
        let index = row_names(&cells[index_place], &names[index_place])?;
        check_unique_index(&index, &names[index_place])?;

        let mut columns: Vec<MetadataColumn> = cells
            .iter()
            .map(|cells| MetadataColumn::new(cells))
            .collect();
        columns[index_place] = MetadataColumn::Texts(index.iter().cloned().map(Some).collect());
        Ok(MetadataTable {
            index,
            names,
            columns,
        })
    }

    /// Returns the column named `name`.
    ///
    /// # Errors
    /// Fails if there is no such column; the message has the nearest name.
    pub fn column(&self, name: &str) -> Result<&MetadataColumn> {
        Ok(&self.columns[find_column(&self.names, name)?])
    }
}

/// Returns the names of rows from their cells in the column `index`.
fn row_names(cells: &[OwnedCell], index: &str) -> Result<Vec<String>> {
    let mut names = Vec::with_capacity(cells.len());
    for (row, cell) in (1..).zip(cells) {
        let name = cell.to_text();
        names.push(name.with_context(|| format!("row {row} has no `{index}`"))?);
    }
    Ok(names)
}

impl MetadataColumn {
    /// Creates the narrowest kind of column that fits all cells.
    fn new(cells: &[OwnedCell]) -> MetadataColumn {
        let known = || cells.iter().filter(|cell| **cell != OwnedCell::Missing);
        if known().all(|cell| cell.to_number().is_some()) {
            let numbers = cells.iter().map(|cell| cell.to_number());
            MetadataColumn::Numbers(numbers.map(|value| value.unwrap_or(f64::NAN)).collect())
        } else if known().all(|cell| cell.to_bool().is_some()) {
            MetadataColumn::Bools(cells.iter().map(OwnedCell::to_bool).collect())
        } else {
            MetadataColumn::Texts(cells.iter().map(OwnedCell::to_text).collect())
        }
    }

    /// Returns the value in `row` as text, or `None` if it is missing.
    pub fn text_at(&self, row: usize) -> Option<String> {
        match self {
            MetadataColumn::Numbers(values) => {
                let value = values[row];
                (!value.is_nan()).then(|| value.to_string())
            }
            MetadataColumn::Bools(values) => values[row].map(|value| value.to_string()),
            MetadataColumn::Texts(values) => values[row].clone(),
        }
    }
}

/// Owned copy of a [`TableCell`], which outlives its row.
#[derive(Debug, Clone, PartialEq)]
enum OwnedCell {
    Missing,
    Number(f64),
    Bool(bool),
    Text(String),
    Written(String),
}

impl OwnedCell {
    fn new(cell: &TableCell<'_>) -> OwnedCell {
        match *cell {
            TableCell::Missing => OwnedCell::Missing,
            TableCell::Number(number) => OwnedCell::Number(number),
            TableCell::Bool(value) => OwnedCell::Bool(value),
            TableCell::Time(micros, number) => {
                time_text(micros).map_or(OwnedCell::Number(number), OwnedCell::Text)
            }
            TableCell::Text(text) => OwnedCell::Text(text.to_owned()),
            TableCell::Written(text) => OwnedCell::Written(text.to_owned()),
        }
    }

    fn to_number(&self) -> Option<f64> {
        match self {
            OwnedCell::Number(number) => Some(*number),
            OwnedCell::Written(text) => text.parse().ok(),
            _ => None,
        }
    }

    fn to_bool(&self) -> Option<bool> {
        match self {
            OwnedCell::Bool(value) => Some(*value),
            OwnedCell::Written(text) => parse_truth(text),
            _ => None,
        }
    }

    fn to_text(&self) -> Option<String> {
        match self {
            OwnedCell::Missing => None,
            OwnedCell::Number(number) => Some(number.to_string()),
            OwnedCell::Bool(value) => Some(value.to_string()),
            OwnedCell::Text(text) | OwnedCell::Written(text) => Some(text.clone()),
        }
    }
}
