//! Sorts what a user named into jobs, logs and a run, by what each of them is.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::own_logs::expand_own_logs;
use poolcast_advice::JobSelection;
use poolcast_base::error::hinted;
use poolcast_base::manifest;
use poolcast_collect::has_event_logs;
use poolcast_sweep as sweep;
use poolcast_sweep::condor;

/// Format in the manifest of an archive of logs.
const ARCHIVE_FORMAT: &str = "archive";

/// What a user named, by kind.
#[derive(Debug, Default)]
pub(super) struct NamedInputs {
    /// The directory of a run or a sweep.
    pub(super) run: Option<PathBuf>,
    /// Event logs, archives, and directories of logs.
    pub(super) logs: Vec<PathBuf>,
    /// The jobs.
    pub(super) selections: Vec<JobSelection>,
}

impl NamedInputs {
    /// Sorts the arguments in `named`, and the values of `--log`, which are logs unless they are a
    /// job id or a run.
    ///
    /// # Errors
    /// Fails for an argument that is none of them, and if several runs are named.
    pub(super) fn sort(named: &[PathBuf], logs: &[PathBuf]) -> Result<NamedInputs> {
        let mut inputs = NamedInputs::default();
        for path in named {
            ensure!(
                inputs.add(path)?,
                hinted(
                    format!(
                        "`{}` is neither a job id nor a file or directory",
                        path.display()
                    ),
                    "write `123.0` for a job, `123` for a cluster, or the path of a log, of a directory of logs or of a run"
                )
            );
        }
        for log in expand_own_logs(logs)? {
            if !inputs.add(&log)? {
                // The reader explains what it cannot open.
                inputs.logs.push(log);
            }
        }
        Ok(inputs)
    }

    /// Adds `path` by its kind; returns false if it is neither a job id nor an existing path.
    fn add(&mut self, path: &Path) -> Result<bool> {
        let selection = path.to_str().and_then(|text| text.parse().ok());
        if let Some(selection) = selection {
            self.selections.push(selection);
        } else if !path.exists() {
            return Ok(false);
        } else if is_results(path)? {
            ensure!(
                self.run.is_none(),
                hinted(
                    format!("`{}` is a second run", path.display()),
                    "name one run: its model answers"
                )
            );
            self.run = Some(path.to_owned());
        } else {
            self.logs.push(path.to_owned());
        }
        Ok(true)
    }
}

/// Returns true for a directory that has results of this program, and is not an archive of logs.
fn is_results(path: &Path) -> Result<bool> {
    if !path.is_dir() {
        return Ok(false);
    }
    match manifest::format_name(path) {
        Ok(Some(format)) => return Ok(format != ARCHIVE_FORMAT),
        Ok(None) => {}
        // The code that opens the damaged manifest explains it.
        Err(_) => return Ok(true),
    }
    let is_sweep = path.join(sweep::BEST_FILE).is_file() || condor::is_dag(path);
    if is_sweep || condor::results_directory(path)? != path {
        return Ok(true);
    }
    // Users also have files of this name.
    Ok(path.join(poolcast_config::FILE).is_file() && !has_event_logs(path))
}
