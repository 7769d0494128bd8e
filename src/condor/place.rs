//! A plan → the directory of a DAG, laid out as what `poolcast run` leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::plan::Plan;
use super::{dag, submit};
use crate::error::hinted;
use crate::sweep::trial_dir;
use crate::{config, files, manifest};

/// The DAG's file in its directory.
pub const DAG_FILE: &str = "pipeline.dag";

/// Where the configuration of the first trial is: every directory of a DAG has it, and nothing else has.
const MARK: &str = "trials/trial-0001.yaml";

/// Whether `dir` is the directory of a DAG.
pub fn is_dag(dir: &Path) -> bool {
    dir.join(MARK).is_file() && !dir.join(manifest::FILE).exists()
}

/// The directories in `dir` into which DAGs of sweeps were tidied, by their names.
pub(super) fn tidied(dir: &Path) -> Result<Vec<PathBuf>> {
    let paths = fs_err::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let mut found: Vec<PathBuf> = paths.into_iter().filter(|path| is_dag(path)).collect();
    found.sort_unstable();
    Ok(found)
}

/// Where what a DAG or another sweep left is that a user names as `dir`: there, or where a DAG in it was tidied to.
///
/// # Errors
/// Fails where several were.
pub fn results(dir: &Path) -> Result<PathBuf> {
    if is_dag(dir) || !dir.is_dir() || dir.join(manifest::FILE).exists() || dir.join(config::FILE).exists() {
        return Ok(dir.to_owned());
    }
    let found = tidied(dir)?;
    let names: Vec<String> = found.iter().map(|path| format!("`{}`", path.display())).collect();
    ensure!(
        names.len() < 2,
        hinted(format!("`{}` holds several sweeps", dir.display()), format!("name one of them: {}", names.join(", ")))
    );
    Ok(found.into_iter().next().unwrap_or_else(|| dir.to_owned()))
}

impl Plan {
    /// All files of the DAG, by their paths in its directory.
    ///
    /// # Errors
    /// Fails for submit commands that are no user's to decide.
    pub fn files(&self) -> Result<BTreeMap<String, String>> {
        let mut files = submit::files(self)?;
        files.insert(config::FILE.to_owned(), config::yaml::write(&self.config)?);
        for trial in &self.trials {
            let text = config::yaml::write(&trial.config)?;
            if self.tensors[&trial.tensors] == trial.number {
                files.insert(format!("tensors/{}.yaml", trial.tensors), text.clone());
            }
            files.insert(trial.config_file(), text);
        }
        files.insert(DAG_FILE.to_owned(), dag::text(self));
        Ok(files)
    }
}

/// Writes the DAG of `plan` to the directory that its configuration names; `pipeline.dag` comes last.
///
/// # Errors
/// Fails where another DAG or another artefact is. The same one is left as it is, with what came of it so far.
pub fn write(plan: &Plan) -> Result<()> {
    let (dir, all) = (&plan.config.out, plan.files()?);
    ensure!(
        !dir.join(manifest::FILE).exists(),
        hinted(format!("`{}` holds a sweep of workers, or another artefact", dir.display()), "name another directory")
    );
    let tidied = dir.join(&plan.config.wandb.sweep.name);
    ensure!(
        !is_dag(&tidied),
        hinted(
            format!("`{}` holds a finished sweep of this name", tidied.display()),
            "give this one another `wandb.sweep.name`, or name another directory"
        )
    );
    for (name, text) in &all {
        let path = dir.join(name);
        ensure!(
            !path.exists() || fs_err::read(&path)? == text.as_bytes(),
            hinted(
                format!("`{}` is there, and of another sweep", path.display()),
                "name another directory; `poolcast sweep cleanup DIR` puts a finished sweep into one of its own"
            )
        );
    }
    let directories = ["condor", "logs", "tensors", "trials"].map(|name| dir.join(name));
    let of_trials = plan.trials.iter().map(|trial| trial_dir(dir, trial.number));
    directories.into_iter().chain(of_trials).try_for_each(fs_err::create_dir_all)?;
    let (dag, others): (Vec<_>, Vec<_>) = all.iter().partition(|(name, _)| *name == DAG_FILE);
    others.into_iter().chain(dag).try_for_each(|(name, text)| files::write_atomic(&dir.join(name), text.as_bytes()))
}
