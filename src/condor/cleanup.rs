//! The directory of a DAG that is done → one directory of its sweep's name within it, and nothing else of ours beside that.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::nodes::{Nodes, STATUS_FILE};
use super::place::is_dag;
use super::words::check_node;
use crate::config::{self, Config};
use crate::error::hinted;

/// What a DAG leaves in its directory, apart from files that begin with `pipeline.`; the configuration says what the sweep
/// is called, so it goes last but for the status, which says that all is done.
const ENTRIES: [&str; 9] =
    ["best.json", "bestmodel.info", "logs", "condor", "events", "tensors", "trials", config::FILE, STATUS_FILE];

/// What tidying moves.
#[derive(Debug)]
pub struct Tidy {
    /// Where everything goes.
    pub to: PathBuf,
    /// From where to where, in this order.
    pub moves: Vec<(PathBuf, PathBuf)>,
}

/// What is to be moved in `dir`; nothing, where it was before.
///
/// # Errors
/// Fails unless the DAG in `dir` is done: until then its files are those that a rescue needs.
pub fn tidy(dir: &Path) -> Result<Tidy> {
    let to = target(dir)?;
    let nodes = Nodes::read(dir)?.map_or_else(|| Nodes::read(&to), |nodes| Ok(Some(nodes)))?;
    ensure!(
        nodes.is_some_and(|nodes| nodes.is_done) && !dir.join("pipeline.dag.lock").exists(),
        hinted(
            format!("the DAG in `{}` is not done", dir.display()),
            "`poolcast sweep status DIR` shows how far it is; `condor_submit_dag pipeline.dag` in it goes on from its rescue file"
        )
    );
    let moves: Vec<_> = entries(dir)?.into_iter().map(|name| (dir.join(&name), to.join(&name))).collect();
    for (_, target) in &moves {
        let hint = "move that away, or give the next sweep another `wandb.sweep.name`";
        ensure!(!target.exists(), hinted(format!("`{}` is there already", target.display()), hint));
    }
    Ok(Tidy { to, moves })
}

/// The directory of the sweep within `dir`: the one that its configuration names, or that an earlier tidying has filled.
fn target(dir: &Path) -> Result<PathBuf> {
    if dir.join(config::FILE).exists() {
        let name = Config::read(dir)?.wandb.sweep.name;
        check_node(&name)?;
        return Ok(dir.join(name));
    }
    let paths = fs_err::read_dir(dir)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    let found = paths.into_iter().find(|path| is_dag(path));
    found.with_context(|| hinted(format!("`{}` holds no DAG", dir.display()), "make one with `poolcast dag`"))
}

impl Tidy {
    /// Moves it. Interrupted, the same goes on from there.
    pub fn apply(&self) -> Result<()> {
        fs_err::create_dir_all(&self.to)?;
        self.moves.iter().try_for_each(|(from, to)| Ok(fs_err::rename(from, to)?))
    }
}

/// The names of what is there and ours, in the order of moving.
fn entries(dir: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs_err::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("pipeline.") && name != STATUS_FILE {
            names.push(name);
        }
    }
    names.sort_unstable();
    names.extend(ENTRIES.iter().filter(|name| dir.join(name).exists()).map(|name| (*name).to_owned()));
    Ok(names)
}
