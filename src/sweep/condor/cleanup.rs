//! Moves the results of a finished DAG to one directory in the DAG's directory, named after the
//! sweep. Nothing else of the DAG remains.
//!
//! A DAG that succeeds does most of this itself, in the POST script of its last node, which
//! receives [`LEFT_BY_DAG`]. DAGMan writes some files until its own end. [`plan_cleanup`] moves
//! those later.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::layout::{
    DAG_FILE, LEFT_BY_DAG, REPORT_SCRIPT, STATUS_FILE, check_sweep_name, tidied_directories,
};
use super::nodes::DagProgress;
use super::shared;
use crate::config::Config;
use poolcast_base::error::hinted;
use poolcast_base::files;

/// The plan of a cleanup: paths to move, and a directory to remove.
#[derive(Debug)]
pub struct CleanupPlan {
    /// The target directory.
    pub to: PathBuf,
    /// Pairs of source and target paths, in the order of moving.
    pub moves: Vec<(PathBuf, PathBuf)>,
    /// The directory of the inputs that its jobs shared, which is removed.
    pub removes: Option<PathBuf>,
}

/// Plans the moves in `dir`. There are none if everything was moved before.
///
/// # Errors
/// Fails unless the DAG in `dir` is done, because a rescue of the DAG needs its files until then.
pub fn plan_cleanup(dir: &Path) -> Result<CleanupPlan> {
    let to = sweep_directory(dir)?;
    let progress = match DagProgress::read(dir)? {
        Some(progress) => Some(progress),
        None => DagProgress::read(&to)?,
    };
    ensure!(
        progress.is_some_and(|progress| progress.is_done)
            && !dir.join("pipeline.dag.lock").exists(),
        hinted(
            format!("the DAG in `{}` is not done", dir.display()),
            "`poolcast sweep status DIR` shows its progress; run `condor_submit_dag pipeline.dag` in it to continue from its rescue file"
        )
    );

    let mut moves = Vec::new();
    for name in entries_to_move(dir)? {
        let target = to.join(&name);
        ensure!(
            !target.exists(),
            hinted(
                format!("`{}` already exists", target.display()),
                "move it away, or give the next sweep another `wandb.sweep.name`"
            )
        );
        moves.push((dir.join(name), target));
    }

    let shared = match shared::read_location(dir)? {
        Some(directory) => Some(directory),
        None => shared::read_location(&to)?,
    };
    let removes = shared.filter(|directory| directory.is_dir());
    Ok(CleanupPlan { to, moves, removes })
}

/// The directory of the sweep within `dir`. The name comes from the configuration, or from the DAG
/// once the configuration has moved. If both have moved, it is the directory that an earlier
/// cleanup has filled.
fn sweep_directory(dir: &Path) -> Result<PathBuf> {
    let name = if dir.join(poolcast_config::FILE).exists() {
        Some(Config::read(dir)?.wandb.sweep.name)
    } else {
        name_in_dag(dir)
    };
    if let Some(name) = name {
        check_sweep_name(&name)?;
        return Ok(dir.join(name));
    }

    let found = tidied_directories(dir)?.into_iter().next();
    found.with_context(|| {
        hinted(
            format!("`{}` contains no DAG", dir.display()),
            "make one with `poolcast dag`",
        )
    })
}

/// The name that the DAG in `dir` passes to its script.
fn name_in_dag(dir: &Path) -> Option<String> {
    let text = fs_err::read_to_string(dir.join(DAG_FILE)).ok()?;
    let name = text.lines().find_map(|line| {
        line.strip_prefix(REPORT_SCRIPT)?
            .split_ascii_whitespace()
            .next()
    });
    name.map(str::to_owned)
}

impl CleanupPlan {
    /// Moves everything. An interrupted call can be repeated, and continues from there.
    pub fn apply(&self) -> Result<()> {
        fs_err::create_dir_all(&self.to)?;
        // The inputs and outputs of jobs have been moved from their parts by now.
        let dir = self.to.parent().unwrap_or(&self.to);
        files::remove_all(["parts", "chosen"].map(|name| dir.join(name)))?;
        if let Some(directory) = &self.removes {
            shared::remove_archives(directory)?;
        }
        for (from, to) in &self.moves {
            fs_err::rename(from, to)?;
        }
        Ok(())
    }
}

/// The names of the existing files and directories of the DAG, in the order of moving. The files
/// that record the end of the DAG and the sweep's name are last.
fn entries_to_move(dir: &Path) -> Result<Vec<String>> {
    let last = [STATUS_FILE, DAG_FILE];
    let mut names = Vec::new();
    for entry in fs_err::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("pipeline.") && !last.contains(&&*name) {
            names.push(name);
        }
    }
    names.sort_unstable();

    for name in LEFT_BY_DAG.iter().chain(&last) {
        if dir.join(name).exists() {
            names.push((*name).to_owned());
        }
    }
    Ok(names)
}
