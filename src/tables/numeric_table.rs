//! A table of features: columns of numbers, and the names of the rows.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use super::column_names::{check_unique_index, find_column};
use super::table_file::{TableCell, parse_truth, read_table};
use poolcast_base::error::hinted;

/// Numbers by name of row and column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct NumericTable {
    /// Name of each row, `[n]`.
    pub(super) index: Vec<String>,
    /// Name of each column, `[f]`.
    pub(super) features: Vec<String>,
    /// Values, one vector `[n]` per column. NaN marks a missing value.
    pub(super) columns: Vec<Vec<f64>>,
}

impl NumericTable {
    /// Reads the table `path`, whose column `index` has the names of the rows. Truth values become
    /// 0 and 1.
    ///
    /// # Errors
    /// Fails if `check` fails, which gets the names of the other columns before any row is read.
    /// Fails for a cell that is not a finite number; the message has its column and its position.
    /// Fails if two rows have the same name.
    pub(super) fn read(
        path: &Path,
        index: &str,
        check: impl FnOnce(&[String]) -> Result<()>,
    ) -> Result<NumericTable> {
        let begin = |names: &[String]| {
            let index_place = find_column(names, index)?;
            let features: Vec<String> = names
                .iter()
                .filter(|name| *name != index)
                .cloned()
                .collect();
            check(&features)?;
            Ok(NumericRows {
                index_place,
                table: NumericTable {
                    index: Vec::new(),
                    columns: vec![Vec::new(); features.len()],
                    features,
                },
            })
        };
        let read = read_table(path, begin, |rows, place, cells| rows.add_row(place, cells))?;
        check_unique_index(&read.table.index, index)
            .with_context(|| format!("cannot use the table `{}`", path.display()))?;
        Ok(read.table)
    }
}

/// A table while its rows are read.
struct NumericRows {
    index_place: usize,
    table: NumericTable,
}

impl NumericRows {
    fn add_row(&mut self, place: &str, cells: &[TableCell<'_>]) -> Result<()> {
        let table = &mut self.table;
        table.index.push(match cells[self.index_place] {
            TableCell::Missing => bail!("{place} has no index"),
            TableCell::Number(number) => number.to_string(),
            TableCell::Bool(value) => value.to_string(),
            TableCell::Time(_, number) => number.to_string(),
            TableCell::Text(text) | TableCell::Written(text) => text.to_owned(),
        });

        // The index is not a feature, so skip its cell.
        let (before, after) = cells.split_at(self.index_place);
        let features = before.iter().chain(&after[1..]);
        for ((column, name), cell) in table.columns.iter_mut().zip(&table.features).zip(features) {
            column.push(finite_number(cell).with_context(|| {
                hinted(
                    format!("column `{name}`, {place}"),
                    "features must be numbers: remove the column, encode it as numbers, or leave a missing value empty",
                )
            })?);
        }
        Ok(())
    }
}

/// Returns the number in a cell, or NaN if it is missing. Fails if the number is not finite.
fn finite_number(cell: &TableCell<'_>) -> Result<f64> {
    let number = match *cell {
        TableCell::Missing => return Ok(f64::NAN),
        TableCell::Number(number) | TableCell::Time(_, number) => Some(number),
        TableCell::Bool(value) => Some(f64::from(u8::from(value))),
        TableCell::Text(_) => None,
        TableCell::Written(text) => text
            .parse()
            .ok()
            .or_else(|| parse_truth(text).map(|value| f64::from(u8::from(value)))),
    };
    let number = number.with_context(|| format!("{} is not a number", show_cell(cell, number)))?;
    ensure!(
        number.is_finite(),
        "{} is not a finite number",
        show_cell(cell, Some(number))
    );
    Ok(number)
}

/// Returns a cell for a message. A text is shown as it is.
fn show_cell(cell: &TableCell<'_>, number: Option<f64>) -> String {
    match *cell {
        TableCell::Text(text) | TableCell::Written(text) => format!("`{text}`"),
        _ => format!("{number:?}"),
    }
}
