//! A table of features → numbers, column by column, and the names of its rows.

use std::path::Path;

use anyhow::{Context as _, Result, bail, ensure};

use super::columns::{check_index, place, truth};
use super::file::{Cell, read};
use crate::error::hinted;

/// Numbers by name of row and column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Numbers {
    /// What each row is called, `[n]`.
    pub(super) index: Vec<String>,
    /// What each column is called, `[f]`.
    pub(super) features: Vec<String>,
    /// The numbers, a vector `[n]` a column; what is missing is NaN.
    pub(super) columns: Vec<Vec<f64>>,
}

impl Numbers {
    /// Reads the table `path`, whose rows are called what its column `index` says. Truth values are 0 and 1.
    ///
    /// # Errors
    /// Fails where `check` does, which is given the names of the other columns before any row is read; for a cell that is no finite number, and names its column and place; and for two rows of the same name.
    pub(super) fn read(
        path: &Path,
        index: &str,
        check: impl FnOnce(&[String]) -> Result<()>,
    ) -> Result<Numbers> {
        let head = |names: &[String]| {
            let at = place(names, index)?;
            let features: Vec<String> = names
                .iter()
                .filter(|name| *name != index)
                .cloned()
                .collect();
            check(&features)?;
            Ok((
                at,
                Numbers {
                    index: Vec::new(),
                    columns: vec![Vec::new(); features.len()],
                    features,
                },
            ))
        };
        let (_, numbers) = read(path, head, |(at, numbers), place, cells| {
            numbers.add(*at, place, cells)
        })?;
        check_index(&numbers.index, index)
            .with_context(|| format!("cannot use the table `{}`", path.display()))?;
        Ok(numbers)
    }

    fn add(&mut self, at: usize, place: &str, cells: &[Cell<'_>]) -> Result<()> {
        self.index.push(match cells[at] {
            Cell::Missing => bail!("{place} has no index"),
            Cell::Number(number) => number.to_string(),
            Cell::Bool(value) => value.to_string(),
            Cell::Text(text) | Cell::Written(text) => text.to_owned(),
        });
        let others = cells.iter().enumerate().filter(|(other, _)| *other != at);
        for ((column, name), (_, cell)) in self.columns.iter_mut().zip(&self.features).zip(others) {
            column.push(number(cell).with_context(|| {
                hinted(
                    format!("column `{name}`, {place}"),
                    "features are numbers; leave the column out, or encode it as numbers",
                )
            })?);
        }
        Ok(())
    }
}

fn number(cell: &Cell<'_>) -> Result<f64> {
    let number = match *cell {
        Cell::Missing => return Ok(f64::NAN),
        Cell::Number(number) => Some(number),
        Cell::Bool(value) => Some(f64::from(u8::from(value))),
        Cell::Text(_) => None,
        Cell::Written(text) => text
            .parse()
            .ok()
            .or_else(|| truth(text).map(|value| f64::from(u8::from(value)))),
    };
    let found = || match *cell {
        Cell::Text(text) | Cell::Written(text) => format!("`{text}`"),
        _ => format!("{number:?}"),
    };
    let number = number.with_context(|| format!("{} is not a number", found()))?;
    ensure!(number.is_finite(), "{} is not a finite number", found());
    Ok(number)
}
