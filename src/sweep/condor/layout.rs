//! What stands where in the directory of a DAG, before and after it is tidied.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::parts::TrialSeconds;
use super::syntax::check_node_name;
use poolcast_base::error::hinted;
use poolcast_config as config;
use poolcast_base::manifest;

/// The DAG's file in its directory.
pub const DAG_FILE: &str = "pipeline.dag";

/// What DAGMan runs on the access point around the jobs. Nothing but a DAG's directory has it
/// beside a configuration.
pub(super) const SCRIPT_FILE: &str = "condor/node.sh";

/// The file to which DAGMan writes how far the nodes are.
pub(super) const STATUS_FILE: &str = "pipeline.status";

/// The file that says where the archives of shared inputs are. The DAG's scripts read it, too.
pub(super) const SHARED_INPUTS_FILE: &str = "condor/shared_inputs";

/// The file that says which program sends what came of the DAG to which trackers, a line each. The
/// DAG's last script reads it.
pub(super) const TRACKING_FILE: &str = "condor/tracking";

/// The directory of the rows of each part, and of the reasons of parts that have failed.
pub(super) const ROWS_DIRECTORY: &str = "rows";

/// What stands before the sweep's name in the line of the DAG that passes it to the script.
pub(super) const REPORT_SCRIPT: &str =
    "SCRIPT POST report /bin/sh condor/node.sh report $DAG_STATUS $FAILED_COUNT";

/// What a DAG leaves in its directory, apart from files that begin with `pipeline.`; in the order
/// of moving, the configuration last.
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
    config::FILE,
];

/// How the trials are divided among jobs, in a DAG's directory.
pub(super) const PARTS_FILE: &str = "rows/parts.json";

/// How the trials of a DAG are divided among jobs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TrialDivision {
    /// How long trials take, as it was measured, in seconds.
    pub(super) measured_s: TrialSeconds,
    /// The trials of each part by its name, as `1-8,12`.
    pub(super) parts: BTreeMap<String, String>,
}

impl TrialDivision {
    /// That of the DAG in `dir`.
    pub(super) fn read(dir: &Path) -> Result<TrialDivision> {
        manifest::read_json(&dir.join(PARTS_FILE))
    }
}

/// Whether `dir` is the directory of a DAG.
pub fn is_dag(dir: &Path) -> bool {
    dir.join(SCRIPT_FILE).is_file() && dir.join(config::FILE).is_file()
}

/// Whether `dir` is where a DAG was made, and not where its sweep was tidied to.
///
/// # Errors
/// Fails for a configuration that cannot be read.
pub fn is_untidied(dir: &Path) -> Result<bool> {
    if !is_dag(dir) {
        return Ok(false);
    }
    let name = config::Config::read(dir)?.wandb.sweep.name;
    Ok(!fs_err::canonicalize(dir)?.ends_with(name))
}

/// What was measured for the DAG that is in `dir`; `None` where none is.
///
/// # Errors
/// Fails for a file that is not ours.
pub fn read_trial_seconds(dir: &Path) -> Result<Option<TrialSeconds>> {
    if !dir.join(DAG_FILE).is_file() || !dir.join(PARTS_FILE).is_file() {
        return Ok(None);
    }
    Ok(Some(TrialDivision::read(dir)?.measured_s))
}

/// The directories in `dir` into which DAGs of sweeps were tidied, by their names.
pub(super) fn tidied_directories(dir: &Path) -> Result<Vec<PathBuf>> {
    let paths = fs_err::read_dir(dir)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    let mut found: Vec<PathBuf> = paths.into_iter().filter(|path| is_dag(path)).collect();
    found.sort_unstable();
    Ok(found)
}

/// The directory with what the DAG or the sweep in `dir` has left: `dir` itself, or the directory
/// in it to which a DAG was tidied.
///
/// # Errors
/// Fails where several were.
pub fn results_directory(dir: &Path) -> Result<PathBuf> {
    if is_dag(dir)
        || !dir.is_dir()
        || dir.join(manifest::FILE).exists()
        || dir.join(config::FILE).exists()
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
            format!("`{}` holds several sweeps", dir.display()),
            format!("name one of them: {}", names.join(", "))
        )
    );
    Ok(found.into_iter().next().unwrap_or_else(|| dir.to_owned()))
}

/// Refuses a name that the sweep's directory cannot have.
pub(super) fn check_sweep_name(name: &str) -> Result<()> {
    check_node_name(name)?;
    let hint = "name it as no file or directory of a DAG is named";
    ensure!(
        !LEFT_BY_DAG.contains(&name),
        hinted(format!("`{name}` is what a DAG leaves beside it"), hint)
    );
    Ok(())
}
