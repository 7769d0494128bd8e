//! The layout of a DAG's directory, before and after its cleanup.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::parts::TrialSeconds;
use super::syntax::check_node_name;
use crate::config::Config;
use poolcast_base::error::hinted;
use poolcast_base::manifest;

/// The DAG's file in its directory.
pub const DAG_FILE: &str = "pipeline.dag";

/// The script that DAGMan runs on the access point before and after jobs. Only the directory of a
/// DAG has it together with a configuration.
pub(super) const SCRIPT_FILE: &str = "condor/node.sh";

/// The file to which DAGMan writes the status of the nodes.
pub(super) const STATUS_FILE: &str = "pipeline.status";

/// The log of DAGMan's own job.
pub(super) const DAGMAN_LOG: &str = "pipeline.dag.dagman.log";

/// The file with the path of the archives of shared inputs. The DAG's scripts also read it.
pub(super) const SHARED_INPUTS_FILE: &str = "condor/shared_inputs";

/// The file with the program that sends the DAG's results, and the names of the trackers, on one
/// line each. The DAG's last script reads it.
pub(super) const TRACKING_FILE: &str = "condor/tracking";

/// The directory of the rows of each part, and of the error messages of failed parts.
pub(super) const ROWS_DIRECTORY: &str = "rows";

/// The start of the DAG's line that passes the sweep's name to the script.
pub(super) const REPORT_SCRIPT: &str =
    "SCRIPT POST report /bin/sh condor/node.sh report $DAG_STATUS $FAILED_COUNT";

/// The files and directories that a DAG leaves in its directory, except files that begin with
/// `pipeline.`. They are in the order of moving, with the configuration last.
pub(super) const LEFT_BY_DAG: [&str; 20] = [
    "best.json",
    "bestmodel.info",
    "selection.json",
    "results.csv",
    "results.jsonl",
    "report.html",
    "chosen.files",
    "tracked-wandb.json",
    "tracked-mlflow.json",
    "tracking.lock",
    "rows",
    "logs",
    "condor",
    "events",
    "table",
    "tensors",
    "trials",
    "ensemble",
    manifest::FILE,
    poolcast_config::FILE,
];

/// The file with the division of the trials among jobs, in a DAG's directory.
pub(super) const PARTS_FILE: &str = "rows/parts.json";

/// The division of a DAG's trials among jobs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TrialDivision {
    /// Measured durations of trials, in seconds.
    pub(super) measured_s: TrialSeconds,
    /// The trials of each part by the part's name, in the format `1-8,12`.
    pub(super) parts: BTreeMap<String, String>,
}

impl TrialDivision {
    /// Reads the division of the DAG in `dir`.
    pub(super) fn read(dir: &Path) -> Result<TrialDivision> {
        manifest::read_json(&dir.join(PARTS_FILE))
    }
}

/// Returns true if `dir` is the directory of a DAG.
pub fn is_dag(dir: &Path) -> bool {
    dir.join(SCRIPT_FILE).is_file() && dir.join(poolcast_config::FILE).is_file()
}

/// Returns true if `dir` is the directory that a DAG was made in. Returns false for the directory
/// that a cleanup has moved the sweep to.
///
/// # Errors
/// Fails for a configuration that cannot be read.
pub fn is_untidied(dir: &Path) -> Result<bool> {
    if !is_dag(dir) {
        return Ok(false);
    }
    let name = Config::read(dir)?.wandb.sweep.name;
    Ok(!fs_err::canonicalize(dir)?.ends_with(name))
}

/// Reads the measured durations of the trials of the DAG in `dir`; `None` if there is no DAG.
///
/// # Errors
/// Fails for a file in another format.
pub fn read_trial_seconds(dir: &Path) -> Result<Option<TrialSeconds>> {
    if !dir.join(DAG_FILE).is_file() || !dir.join(PARTS_FILE).is_file() {
        return Ok(None);
    }
    Ok(Some(TrialDivision::read(dir)?.measured_s))
}

/// The directories in `dir` that cleanups have moved DAGs of sweeps to, sorted by name.
pub(super) fn tidied_directories(dir: &Path) -> Result<Vec<PathBuf>> {
    let paths = fs_err::read_dir(dir)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    let mut found: Vec<PathBuf> = paths.into_iter().filter(|path| is_dag(path)).collect();
    found.sort_unstable();
    Ok(found)
}

/// The directory with the results of the DAG or the sweep in `dir`: `dir` itself, or the directory
/// in it that a cleanup has moved the DAG to.
///
/// # Errors
/// Fails if there are several such directories.
pub fn results_directory(dir: &Path) -> Result<PathBuf> {
    if is_dag(dir)
        || !dir.is_dir()
        || dir.join(manifest::FILE).exists()
        || dir.join(poolcast_config::FILE).exists()
    {
        return Ok(dir.to_owned());
    }
    let found = tidied_directories(dir)?;
    let names: Vec<String> = found
        .iter()
        .map(|path| format!("`{}`", path.display()))
        .collect();
    ensure!(
        names.len() < 2,
        hinted(
            format!("`{}` contains several sweeps", dir.display()),
            format!("name one of them: {}", names.join(", "))
        )
    );
    Ok(found.into_iter().next().unwrap_or_else(|| dir.to_owned()))
}

/// Rejects a name that the sweep's directory cannot have.
pub(super) fn check_sweep_name(name: &str) -> Result<()> {
    check_node_name(name)?;
    let hint = "choose a name that no file or directory of a DAG has";
    ensure!(
        !LEFT_BY_DAG.contains(&name),
        hinted(
            format!("`{name}` is the name of a file or directory of a DAG"),
            hint
        )
    );
    Ok(())
}
