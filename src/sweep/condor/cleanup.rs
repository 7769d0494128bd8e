//! The directory of a DAG that is done → one directory in it, with the name of its sweep, and
//! nothing else that the DAG has left.
//!
//! A DAG that ends well does most of it itself, in the POST script of its last node, to which
//! [`LEFT_BY_DAG`] are passed. What DAGMan writes until its own end is left for later:
//! [`plan_cleanup`] goes on from there.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::layout::{
    DAG_FILE, LEFT_BY_DAG, REPORT_SCRIPT, STATUS_FILE, check_sweep_name, tidied_directories,
};
use super::nodes::DagProgress;
use super::shared;
use poolcast_config::{self as config, Config};
use poolcast_base::error::hinted;
use poolcast_base::files;

/// What tidying moves.
#[derive(Debug)]
pub struct CleanupPlan {
    /// Where everything goes.
    pub to: PathBuf,
    /// From where to where, in this order.
    pub moves: Vec<(PathBuf, PathBuf)>,
    /// The directory with what its jobs shared, which is removed.
    pub removes: Option<PathBuf>,
}

/// What is to be moved in `dir`; nothing, where it was before.
///
/// # Errors
/// Fails unless the DAG in `dir` is done: until then its files are those that a rescue needs.
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
            "`poolcast sweep status DIR` shows how far it is; `condor_submit_dag pipeline.dag` in it goes on from its rescue file"
        )
    );

    let mut moves = Vec::new();
    for name in entries_to_move(dir)? {
        let target = to.join(&name);
        ensure!(
            !target.exists(),
            hinted(
                format!("`{}` is there already", target.display()),
                "move that away, or give the next sweep another `wandb.sweep.name`"
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

/// The directory of the sweep within `dir`: the one that its configuration or, once that has moved,
/// its DAG names; at last the one that an earlier tidying has filled.
fn sweep_directory(dir: &Path) -> Result<PathBuf> {
    let name = if dir.join(config::FILE).exists() {
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
            format!("`{}` holds no DAG", dir.display()),
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
    /// Moves everything. If this is interrupted, the same call goes on from there.
    pub fn apply(&self) -> Result<()> {
        fs_err::create_dir_all(&self.to)?;
        // What jobs took along and left of their parts stands elsewhere by now.
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

/// The names of what is there and ours, in the order of moving: what says that the DAG is done, and
/// how the sweep is called, goes last.
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
