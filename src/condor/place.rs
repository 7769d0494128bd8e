//! A plan → the directory of a DAG, laid out as what `poolcast run` leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::parts::Measured;
use super::plan::Plan;
use super::submit::SCRIPT_FILE;
use super::{dag, submit};
use crate::error::hinted;
use crate::sweep::SweepTrials;
use crate::{config, files, manifest};

/// The DAG's file in its directory.
pub const DAG_FILE: &str = "pipeline.dag";

/// How the trials are divided among jobs, in a DAG's directory.
const PARTS_FILE: &str = "rows/parts.json";

/// How the trials of a DAG are divided among jobs.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Division {
    /// How long trials take, as it was measured, in seconds.
    measured_s: Measured,
    /// The trials of each part by its name, as `1-8,12`.
    pub(super) parts: BTreeMap<String, String>,
}

impl Division {
    /// That of the DAG in `dir`.
    pub(super) fn read(dir: &Path) -> Result<Division> {
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
pub fn measured(dir: &Path) -> Result<Option<Measured>> {
    if !dir.join(DAG_FILE).is_file() || !dir.join(PARTS_FILE).is_file() {
        return Ok(None);
    }
    Ok(Some(Division::read(dir)?.measured_s))
}

/// The directories in `dir` into which DAGs of sweeps were tidied, by their names.
pub(super) fn tidied(dir: &Path) -> Result<Vec<PathBuf>> {
    let paths = fs_err::read_dir(dir)?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<PathBuf>>>()?;
    let mut found: Vec<PathBuf> = paths.into_iter().filter(|path| is_dag(path)).collect();
    found.sort_unstable();
    Ok(found)
}

/// Where what a DAG or another sweep left is that a user names as `dir`: there, or where a DAG in it was tidied to.
///
/// # Errors
/// Fails where several were.
pub fn results(dir: &Path) -> Result<PathBuf> {
    if is_dag(dir)
        || !dir.is_dir()
        || dir.join(manifest::FILE).exists()
        || dir.join(config::FILE).exists()
    {
        return Ok(dir.to_owned());
    }
    let found = tidied(dir)?;
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

impl Plan {
    /// All files of the DAG, by their paths in its directory.
    ///
    /// # Errors
    /// Fails for submit commands that are no user's to decide.
    pub fn files(&self) -> Result<BTreeMap<String, String>> {
        let mut files = submit::files(self)?;
        files.insert(config::FILE.to_owned(), config::yaml::write(&self.config)?);
        let trials = SweepTrials::from_config(&self.config)?;
        for (name, &trial) in &self.tensors {
            let text = config::yaml::write(&trials.draw(trial, &[])?)?;
            files.insert(format!("tensors/{name}.yaml"), text);
        }
        let parts = self
            .parts
            .iter()
            .map(|part| (part.name.clone(), part.ranges()))
            .collect();
        let division = Division {
            measured_s: self.measured.clone(),
            parts,
        };
        files.insert(
            PARTS_FILE.to_owned(),
            serde_json::to_string_pretty(&division)? + "\n",
        );
        files.insert(DAG_FILE.to_owned(), dag::text(self));
        Ok(files)
    }
}

/// Fails where the DAG of `plan` cannot be written to the directory that its configuration names: where another DAG or another
/// artefact is. The same one may be there, with what came of it so far.
pub fn check_place(plan: &Plan) -> Result<()> {
    let dir = &plan.config.out;
    ensure!(
        is_dag(dir) || !dir.join(manifest::FILE).exists(),
        hinted(
            format!(
                "`{}` holds a sweep of workers, or another artefact",
                dir.display()
            ),
            "name another directory"
        )
    );
    let tidied = dir.join(&plan.config.wandb.sweep.name);
    ensure!(
        !is_dag(&tidied),
        hinted(
            format!("`{}` holds a finished sweep of this name", tidied.display()),
            "give this one another `wandb.sweep.name`, or name another directory"
        )
    );
    for (name, text) in &plan.files()? {
        let path = dir.join(name);
        ensure!(
            !path.exists() || fs_err::read(&path)? == text.as_bytes(),
            hinted(
                format!("`{}` is there, and of another sweep", path.display()),
                "name another directory; `poolcast sweep cleanup DIR` puts a finished sweep into one of its own"
            )
        );
    }
    Ok(())
}

/// Writes the DAG of `plan` to the directory that its configuration names; `pipeline.dag` comes last.
///
/// # Errors
/// Fails as [`check_place`].
pub fn write(plan: &Plan) -> Result<()> {
    check_place(plan)?;
    let (dir, all) = (&plan.config.out, plan.files()?);
    let directories =
        ["condor", "logs", "tensors", "trials", "rows", "parts"].map(|name| dir.join(name));
    let of_parts = plan
        .parts
        .iter()
        .map(|part| dir.join("parts").join(&part.name));
    directories
        .into_iter()
        .chain(of_parts)
        .try_for_each(fs_err::create_dir_all)?;
    let (dag, others): (Vec<_>, Vec<_>) = all.iter().partition(|(name, _)| *name == DAG_FILE);
    others
        .into_iter()
        .chain(dag)
        .try_for_each(|(name, text)| files::write_atomic(&dir.join(name), text.as_bytes()))
}
