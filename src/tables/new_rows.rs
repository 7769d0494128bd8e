//! A table of new rows → the columns that a fitted pipeline asks for, found by name. Nothing else
//! of it is read, least of all a target.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::feature_table::FeatureTable;
use super::name_list::list_names;
use super::numeric_table::NumericTable;
use super::row_targets::{RowClasses, RowTargets};
use poolcast_base::error::hinted;
use poolcast_base::output::counted;

/// The rows of the table `path`, which are called what its column `index` says: their names `[n]`,
/// and their numbers in the columns `features`. As nothing is known of their targets, all are said
/// to be of one class.
///
/// # Errors
/// Fails for a column that is missing or not asked for, and names it; and as tables of features do.
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

/// Fails where the columns `found` are not the `features`, whatever their order.
fn check_columns(found: &[String], features: &[String]) -> Result<()> {
    let missing = names_without(features, found);
    let unknown = names_without(found, features);

    let mut complaints = Vec::new();
    if !missing.is_empty() {
        let list = list_names(missing.into_iter());
        complaints.push(format!("it has no column {list}"));
    }
    if !unknown.is_empty() {
        let list = list_names(unknown.into_iter());
        complaints.push(format!("the pipeline knows no column {list}"));
    }
    ensure!(
        complaints.is_empty(),
        hinted(
            complaints.join(", and "),
            format!(
                "give it the {} that the pipeline was fitted on, in any order, beside the index, and no others",
                counted(features.len(), "feature")
            )
        )
    );
    Ok(())
}

/// The names in `all` that are not among `known`.
fn names_without<'a>(all: &'a [String], known: &[String]) -> Vec<&'a str> {
    all.iter()
        .filter(|name| !known.contains(name))
        .map(String::as_str)
        .collect()
}
