//! Writes the directory of a DAG, with the same layout as the results of `poolcast run`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::layout::{DAG_FILE, PARTS_FILE, TRACKING_FILE, TrialDivision, is_dag};
use super::plan::DagPlan;
use super::{dag, submit};
use crate::SweepTrials;
use crate::config::Tracker;
use poolcast_base::error::hinted;
use poolcast_base::{files, manifest};

impl DagPlan {
    /// All files of the DAG, by path in its directory.
    ///
    /// # Errors
    /// Fails for submit commands that users cannot set.
    pub fn files_by_path(&self) -> Result<BTreeMap<String, String>> {
        let mut files = submit::submit_files(self)?;
        files.insert(
            poolcast_config::FILE.to_owned(),
            poolcast_config::yaml::write(&self.config)?,
        );

        let trials = SweepTrials::from_config(&self.config)?;
        for (name, &trial) in &self.tensors {
            let text = poolcast_config::yaml::write(&trials.draw(trial)?)?;
            files.insert(format!("tensors/{name}.yaml"), text);
        }

        let mut division = TrialDivision {
            measured_s: self.measured.clone(),
            parts: BTreeMap::new(),
        };
        for part in &self.parts {
            division.parts.insert(part.name.clone(), part.ranges());
        }
        files.insert(
            PARTS_FILE.to_owned(),
            serde_json::to_string_pretty(&division)? + "\n",
        );

        files.insert(DAG_FILE.to_owned(), dag::dag_text(self));
        Ok(files)
    }
}

/// Checks that the DAG of `plan` can be written to the directory that its configuration names.
/// Fails if another DAG or another artefact is there. The same DAG may be there, with its results
/// so far.
pub fn check_directory(plan: &DagPlan) -> Result<()> {
    let dir = &plan.config.out;
    ensure!(
        is_dag(dir) || !dir.join(manifest::FILE).exists(),
        hinted(
            format!(
                "`{}` contains a sweep of workers, or another artefact",
                dir.display()
            ),
            "name another directory"
        )
    );

    let tidied = dir.join(&plan.config.wandb.sweep.name);
    ensure!(
        !is_dag(&tidied),
        hinted(
            format!(
                "`{}` contains a finished sweep of this name",
                tidied.display()
            ),
            "give this one another `wandb.sweep.name`, or name another directory"
        )
    );

    for (name, text) in &plan.files_by_path()? {
        let path = dir.join(name);
        ensure!(
            !path.exists() || fs_err::read(&path)? == text.as_bytes(),
            hinted(
                format!("`{}` belongs to another sweep", path.display()),
                "name another directory; `poolcast sweep cleanup DIR` moves a finished sweep into a directory of its own"
            )
        );
    }
    Ok(())
}

/// Writes the DAG of `plan` to the directory that its configuration names; `pipeline.dag` is
/// written last.
///
/// # Errors
/// Fails like [`check_directory`].
pub fn write_dag(plan: &DagPlan) -> Result<()> {
    check_directory(plan)?;
    let dir = &plan.config.out;
    for name in ["condor", "logs", "tensors", "trials", "rows", "parts"] {
        fs_err::create_dir_all(dir.join(name))?;
    }
    for part in &plan.parts {
        fs_err::create_dir_all(dir.join("parts").join(&part.name))?;
    }

    write_tracking(dir, &plan.config.enabled_trackers())?;
    let mut files = plan.files_by_path()?;
    let dag = files.remove_entry(DAG_FILE);
    for (name, text) in files.into_iter().chain(dag) {
        files::write_atomic(&dir.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// Writes the file by which the last script of the DAG in `dir` sends results to `trackers`. The
/// file names this program, by its current path.
fn write_tracking(dir: &Path, trackers: &[Tracker]) -> Result<()> {
    if trackers.is_empty() {
        return Ok(());
    }
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let words: Vec<&str> = trackers.iter().map(|tracker| tracker.word()).collect();
    let text = format!("{}\n{}\n", program.display(), words.join(","));
    files::write_atomic(&dir.join(TRACKING_FILE), text.as_bytes())
}
