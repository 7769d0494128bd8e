//! A table of new rows → the columns that a fitted pipeline asks for, found by name. Nothing else of it is read, least of all
//! a target.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::join::list;
use super::numbers::Numbers;
use super::table::FeatureTable;
use crate::error::hinted;

/// The rows of the table `path`, which are called what its column `index` says: their names `[n]`, and their numbers in the
/// columns `features`. As nothing is known of their classes, all are said to be of the first of `classes`.
///
/// # Errors
/// Fails for a column that is missing or not asked for, and names it; and as tables of features do.
pub fn read_new_rows(
    path: &Path,
    index: &str,
    features: &[String],
    classes: &[String],
) -> Result<(Vec<String>, FeatureTable)> {
    let Numbers {
        index: names,
        features: found,
        columns,
    } = Numbers::read(path, index, |found| check_columns(found, features))
        .with_context(|| format!("cannot predict the rows of `{}`", path.display()))?;
    let place = |feature: &String| found.iter().position(|known| known == feature);
    let places = features
        .iter()
        .map(|feature| place(feature).context("every feature was found"));
    let x = places
        .map(|place| Ok(&columns[place?]))
        .collect::<Result<Vec<_>>>()?;
    let n = names.len();
    let table = FeatureTable {
        features: features.to_vec(),
        x: x.into_iter().flatten().copied().collect(),
        y: vec![0; n],
        classes: classes.to_vec(),
        groups: vec![0; n],
    };
    Ok((names, table))
}

fn check_columns(found: &[String], features: &[String]) -> Result<()> {
    let others = |all: &[String], but: &[String]| {
        all.iter()
            .filter(|name| !but.contains(name))
            .cloned()
            .collect::<Vec<String>>()
    };
    let (missing, unknown) = (others(features, found), others(found, features));
    let said = [
        ("it has no column", &missing),
        ("the pipeline knows no column", &unknown),
    ];
    let said = said.into_iter().filter(|(_, names)| !names.is_empty());
    let said: Vec<String> = said
        .map(|(what, names)| format!("{what} {}", list(names.iter().map(String::as_str))))
        .collect();
    ensure!(
        said.is_empty(),
        hinted(
            said.join(", and "),
            format!(
                "give it the {} that the pipeline was fitted on, in any order, beside the index, and no others",
                crate::output::counted(features.len(), "feature")
            )
        )
    );
    Ok(())
}
