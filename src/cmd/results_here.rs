//! Finds the run or the sweep of the current directory, where a call names none.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use poolcast_base::error::hinted;
use poolcast_base::manifest;
use poolcast_config::FILE;
use poolcast_sweep as sweep;
use poolcast_sweep::condor::is_dag;
use poolcast_sweep::config::Config;

/// Maximum number of configuration files that are examined in a directory.
const MAX_CONFIGURATIONS: usize = 100;

/// Formats of artefacts that are models.
const MODEL_FORMATS: [&str; 3] = ["run", "fit", "ensemble"];

/// Returns `named`, or else the run, the sweep or the DAG of this directory, which may be incomplete.
///
/// # Errors
/// Fails if there is none, or if there are several.
pub(super) fn named_or_here(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    find_here(|dir| {
        is_dag(dir) || (dir.join(FILE).is_file() && dir.join(manifest::FILE).is_file())
    })?
    .with_context(|| {
        hinted(
            "there is no run or sweep here",
            "name its directory, or go to where `run` or `sweep init` was called",
        )
    })
}

/// Finds the results in this directory; `None` if there are none, or several.
pub(super) fn find_results_here() -> Option<PathBuf> {
    find_results().ok()?
}

/// Finds the run of this directory: either the directory itself, or the `out` of one of its
/// configuration files; `None` if there is none.
///
/// # Errors
/// Fails if there are several.
pub(super) fn find_results() -> Result<Option<PathBuf>> {
    find_here(is_result)
}

/// Finds the only one of these directories for which `is_found` returns true: this one, or else the `out` of its
/// configuration files, or else `out`; `None` if there is none.
///
/// # Errors
/// Fails if there are several.
fn find_here(is_found: impl Fn(&Path) -> bool) -> Result<Option<PathBuf>> {
    if is_found(Path::new(".")) {
        return Ok(Some(PathBuf::from(".")));
    }

    let (mut found, mut looked): (Vec<PathBuf>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    let default_out = PathBuf::from("out");
    for out in configured_outputs()?.into_iter().chain([default_out]) {
        if looked.contains(&out) {
            continue;
        }
        if is_found(&out) {
            found.push(out.clone());
        }
        looked.push(out);
    }

    match &found[..] {
        [only] => Ok(Some(only.clone())),
        [] => Ok(None),
        several => {
            let names = several.iter().map(|run| format!("`{}`", run.display()));
            let names: Vec<String> = names.collect();
            Err(hinted(
                format!("there are several runs here: {}", names.join(", ")),
                format!("name one, such as `{}`", several[0].display()),
            )
            .into())
        }
    }
}

/// Returns true if `dir` is a run, or a sweep that has chosen its best trial, or that had too few
/// holds for one.
pub(super) fn is_result(dir: &Path) -> bool {
    let format = manifest::format_name(dir).ok().flatten();
    let is_model = format.is_some_and(|format| MODEL_FORMATS.contains(&format.as_str()));
    is_model || dir.join(sweep::BEST_FILE).is_file() || sweep::has_no_model(dir)
}

/// Returns the logs of `config`, whose run is in `results`. Relative names are relative to the directory in which the
/// run was called, if `results` shows which one it was.
pub(super) fn logs_of_run(config: &Config, results: &Path) -> Vec<PathBuf> {
    let called_in = std::path::absolute(results)
        .ok()
        .filter(|results| config.out.is_relative() && results.ends_with(&config.out))
        .and_then(|results| {
            let names = config.out.components().count();
            results.ancestors().nth(names).map(Path::to_owned)
        });
    let of_call = |log: &PathBuf| {
        let there = called_in.as_ref().map(|called_in| called_in.join(log));
        there
            .filter(|log| log.exists())
            .unwrap_or_else(|| log.clone())
    };
    config.logs.iter().map(of_call).collect()
}

/// The output directories of the configuration files in this directory, in the order of the file
/// names. Files that are not valid configurations are skipped.
fn configured_outputs() -> Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = fs_err::read_dir(".")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|end| end == "yaml" || end == "yml")
        })
        .collect();
    paths.sort();
    paths.truncate(MAX_CONFIGURATIONS);

    let mut outs = Vec::new();
    for path in paths {
        let name = path.strip_prefix(".").unwrap_or(&path);
        if let Ok(config) = Config::load(Some(name), &BTreeMap::new()) {
            outs.push(config.out);
        }
    }
    Ok(outs)
}
