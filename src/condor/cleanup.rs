//! The directory of a DAG that is done → one directory of its sweep's name within it, and nothing else of ours beside that.
//!
//! A DAG that ends well does most of it itself, in the POST script of its last node, to which [`ENTRIES`] are passed. What
//! DAGMan writes until its own end is left for later: [`tidy`] goes on from there.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use super::nodes::{Nodes, STATUS_FILE};
use super::place::{DAG_FILE, tidied};
use super::shared;
use super::words::check_node;
use crate::config::{self, Config};
use crate::error::hinted;
use crate::{files, manifest};

/// What a DAG leaves in its directory, apart from files that begin with `pipeline.`; in the order of moving, the
/// configuration last.
pub(super) const ENTRIES: [&str; 15] = [
    "best.json",
    "bestmodel.info",
    "selection.json",
    "results.csv",
    "results.jsonl",
    "chosen.files",
    "rows",
    "logs",
    "condor",
    "events",
    "table",
    "tensors",
    "trials",
    manifest::FILE,
    config::FILE,
];

/// What stands before the sweep's name in the line of the DAG that passes it to the script.
pub(super) const SCRIPT: &str =
    "SCRIPT POST report /bin/sh condor/node.sh report $DAG_STATUS $FAILED_COUNT";

/// What tidying moves.
#[derive(Debug)]
pub struct Tidy {
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
    let moves: Vec<_> = entries(dir)?
        .into_iter()
        .map(|name| (dir.join(&name), to.join(&name)))
        .collect();
    for (_, target) in &moves {
        let hint = "move that away, or give the next sweep another `wandb.sweep.name`";
        ensure!(
            !target.exists(),
            hinted(format!("`{}` is there already", target.display()), hint)
        );
    }
    let shared = match shared::location(dir)? {
        Some(directory) => Some(directory),
        None => shared::location(&to)?,
    };
    let removes = shared.filter(|directory| directory.is_dir());
    Ok(Tidy { to, moves, removes })
}

/// Refuses a name that the sweep's directory cannot have.
pub(super) fn check_name(name: &str) -> Result<()> {
    check_node(name)?;
    let hint = "name it as no file or directory of a DAG is named";
    ensure!(
        !ENTRIES.contains(&name),
        hinted(format!("`{name}` is what a DAG leaves beside it"), hint)
    );
    Ok(())
}

/// The directory of the sweep within `dir`: the one that its configuration or, once that has moved, its DAG names; at last the
/// one that an earlier tidying has filled.
fn target(dir: &Path) -> Result<PathBuf> {
    let name = match dir.join(config::FILE).exists() {
        true => Some(Config::read(dir)?.wandb.sweep.name),
        false => name_in_dag(dir),
    };
    if let Some(name) = name {
        check_name(&name)?;
        return Ok(dir.join(name));
    }
    let found = tidied(dir)?.into_iter().next();
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
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix(SCRIPT)?.split_ascii_whitespace().next());
    name.map(str::to_owned)
}

impl Tidy {
    /// Moves it. Interrupted, the same goes on from there.
    pub fn apply(&self) -> Result<()> {
        fs_err::create_dir_all(&self.to)?;
        // What jobs took along and left of their parts stands elsewhere by now.
        let dir = self.to.parent().unwrap_or(&self.to);
        files::remove_all(["parts", "chosen"].map(|name| dir.join(name)))?;
        if let Some(directory) = &self.removes {
            shared::remove(directory)?;
        }
        self.moves
            .iter()
            .try_for_each(|(from, to)| Ok(fs_err::rename(from, to)?))
    }
}

/// The names of what is there and ours, in the order of moving: what says that the DAG is done, and how the sweep is called,
/// goes last.
fn entries(dir: &Path) -> Result<Vec<String>> {
    let last = [STATUS_FILE, DAG_FILE];
    let mut names = Vec::new();
    for entry in fs_err::read_dir(dir)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.starts_with("pipeline.") && !last.contains(&&*name) {
            names.push(name);
        }
    }
    names.sort_unstable();
    let known = ENTRIES
        .iter()
        .chain(&last)
        .filter(|name| dir.join(name).exists());
    names.extend(known.map(|name| (*name).to_owned()));
    Ok(names)
}
