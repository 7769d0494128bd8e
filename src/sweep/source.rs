//! The trial of a pipeline → the rows it learns from, in the folder that all workers share.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::fits::{Predictions, Rows};
use super::folder::Sweep;
use crate::config::Config;
use crate::error::hinted;
use crate::manifest;
use crate::tables::{Samples, TABLE};

/// Where the joined tables of the sweep in `dir` are.
pub fn table_dir(dir: &Path) -> PathBuf {
    dir.join("table")
}

/// What the trial `config` of `sweep` learns from and is validated on.
///
/// # Errors
/// Fails where that is not what it was when the sweep began.
pub(super) fn rows(sweep: &Sweep, config: &Config) -> Result<Rows> {
    let dir = table_dir(&sweep.dir);
    let key = manifest::read::<serde_json::Value>(&dir, TABLE)?.key;
    ensure!(
        key == sweep.plan.source_key,
        hinted(
            format!("`{}` is not what it was when the sweep began", dir.display()),
            "begin anew with `poolcast sweep init CONFIG -o DIR --overwrite`"
        )
    );
    let split = config.data.split_names.first().context("a trial over tables has a split")?;
    Rows::of_split(&Samples::open(&dir)?, split, key)
}

/// What the trial in `dir` predicted of `rows`.
///
/// # Errors
/// Fails where its predictions were removed, and where they are of other rows.
pub(super) fn predictions(dir: &Path, rows: &Rows) -> Result<Predictions> {
    let found = Predictions::read(dir)?;
    let classes = rows.train.classes.len();
    let fits =
        [(&found.folds, rows.train.n()), (&found.validation, rows.validate.as_ref().map_or(0, |table| table.n()))];
    let fits = fits.iter().all(|(values, n)| values.is_empty() || values.len() == n * classes);
    ensure!(fits, "the predictions in `{}` are of other rows", dir.display());
    Ok(found)
}
