//! Reads a table of new rows: the columns that a fitted pipeline needs, found by name. Any other
//! column, such as a target, is an error.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::feature_table::FeatureTable;
use super::name_list::list_names;
use super::numeric_table::NumericTable;
use super::row_targets::{RowClasses, RowTargets};
use poolcast_base::error::hinted;
use poolcast_base::output::counted;

/// Reads the rows of the table `path`: their names `[n]` from the column `index`, and their numbers
/// from the columns `features`. The targets are unknown, so all rows get the same class.
///
/// # Errors
/// Fails for a missing or unexpected column, and names it. Fails if the table is not a valid table
/// of features.
pub fn read_new_rows(
    path: &Path,
    index: &str,
    features: &[String],
) -> Result<(Vec<String>, FeatureTable)> {
    let found = NumericTable::read(path, index, |found| check_columns(found, features))
        .with_context(|| format!("cannot predict the rows of `{}`", path.display()))?;

    let n = found.index.len();
    let mut x = Vec::with_capacity(n * features.len());
    for feature in features {
        let place = found.features.iter().position(|known| known == feature);
        x.extend_from_slice(&found.columns[place.context("every feature was found")?]);
    }
    let table = FeatureTable {
        features: features.to_vec(),
        x,
        targets: RowTargets::Classes(RowClasses {
            names: vec!["unknown".to_owned()],
            y: vec![0; n],
        }),
        groups: vec![0; n],
    };
    Ok((found.index, table))
}

/// Fails if the columns `found` are not the `features`, in any order.
fn check_columns(found: &[String], features: &[String]) -> Result<()> {
    let missing = names_not_in(features, found);
    let unknown = names_not_in(found, features);

    let mut complaints = Vec::new();
    if !missing.is_empty() {
        let list = list_names(missing.into_iter());
        complaints.push(format!("it has no column {list}"));
    }
    if !unknown.is_empty() {
        let list = list_names(unknown.into_iter());
        complaints.push(format!("the pipeline does not know the column {list}"));
    }
    ensure!(
        complaints.is_empty(),
        hinted(
            complaints.join(", and "),
            format!(
                "the table needs exactly the {} that the pipeline was fitted on, in any order, and the index",
                counted(features.len(), "feature")
            )
        )
    );
    Ok(())
}

/// Returns the names in `all` that are not in `known`.
fn names_not_in<'a>(all: &'a [String], known: &[String]) -> Vec<&'a str> {
    all.iter()
        .filter(|name| !known.contains(name))
        .map(String::as_str)
        .collect()
}
