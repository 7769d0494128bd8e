//! The file that `NODE_STATUS_FILE` names → how far the nodes of a DAG are.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

/// The file in a DAG's directory.
pub(super) const STATUS_FILE: &str = "pipeline.status";

/// How many nodes there are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Ended well, or nothing was to be done.
    pub done: usize,
    /// With a job in the queue, or a script at work.
    pub at_work: usize,
    /// Not begun.
    pub waiting: usize,
    /// Ended badly.
    pub failed: usize,
    /// Never to begin, as what they depend on has failed.
    pub futile: usize,
}

/// How far a DAG is.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Nodes {
    /// Whether all is done, and well.
    pub is_done: bool,
    /// Whether DAGMan has ended the DAG with a failure.
    pub has_failed: bool,
    /// Jobs on hold.
    pub held: usize,
    /// The nodes whose jobs they are.
    pub held_nodes: Vec<String>,
    /// Nodes by step: the first word of their names.
    pub steps: BTreeMap<String, Counts>,
}

/// DAGMan's numbers for the states of a node, and of the DAG.
mod state {
    pub(super) const NOT_READY: u64 = 0;
    pub(super) const READY: u64 = 1;
    pub(super) const DONE: u64 = 5;
    pub(super) const ERROR: u64 = 6;
    pub(super) const FUTILE: u64 = 7;
}

impl Nodes {
    /// How far the DAG in `dir` is; `None` before DAGMan has begun.
    ///
    /// # Errors
    /// Fails for a file that is not DAGMan's.
    pub fn read(dir: &Path) -> Result<Option<Nodes>> {
        let path = dir.join(STATUS_FILE);
        if !path.is_file() {
            return Ok(None);
        }
        let nodes = Nodes::of(&fs_err::read_to_string(&path)?);
        nodes.map(Some).with_context(|| format!("`{}` is not DAGMan's status of nodes", path.display()))
    }

    fn of(text: &str) -> Option<Nodes> {
        let (mut nodes, mut is_status) = (Nodes::default(), false);
        for ad in text.split("\n]").map(attributes) {
            match ad.get("Type").map(String::as_str) {
                Some("DagStatus") => {
                    let status = number(&ad, "DagStatus")?;
                    is_status = true;
                    (nodes.is_done, nodes.has_failed) = (status == state::DONE, status == state::ERROR);
                    nodes.held = number(&ad, "JobProcsHeld").unwrap_or_default() as usize;
                }
                Some("NodeStatus") => {
                    let node = ad.get("Node")?;
                    nodes.add(node, number(&ad, "NodeStatus")?);
                    nodes.held_nodes.extend((number(&ad, "JobProcsHeld") > Some(0)).then(|| node.clone()));
                }
                _ => {}
            }
        }
        is_status.then_some(nodes)
    }

    fn add(&mut self, node: &str, status: u64) {
        let step = node.split('-').next().unwrap_or(node);
        let counts = self.steps.entry(step.to_owned()).or_default();
        let count = match status {
            state::NOT_READY | state::READY => &mut counts.waiting,
            state::DONE => &mut counts.done,
            state::ERROR => &mut counts.failed,
            state::FUTILE => &mut counts.futile,
            _ => &mut counts.at_work,
        };
        *count += 1;
    }
}

/// The attributes of one ClassAd, one a line: `Name = Value; /* a remark */`.
fn attributes(ad: &str) -> BTreeMap<String, String> {
    let attribute = |line: &str| {
        let (name, rest) = line.split_once(" = ")?;
        let value = rest.split(';').next()?.trim().trim_matches('"');
        Some((name.trim().to_owned(), value.to_owned()))
    };
    ad.lines().filter_map(attribute).collect()
}

fn number(ad: &BTreeMap<String, String>, name: &str) -> Option<u64> {
    ad.get(name)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = r#"[
  Type = "DagStatus";
  DagFiles = {
    "pipeline.dag"
  };
  Timestamp = 1399674138; /* "Fri May  9 17:22:18 2014" */
  DagStatus = 3; /* "STATUS_SUBMITTED ()" */
  NodesTotal = 4;
  JobProcsHeld = 1;
]
[
  Type = "NodeStatus";
  Node = "parse";
  NodeStatus = 5; /* "STATUS_DONE" */
  StatusDetails = "";
]
[
  Type = "NodeStatus";
  Node = "train-0001";
  NodeStatus = 3; /* "STATUS_SUBMITTED" */
  StatusDetails = "held";
  JobProcsHeld = 1;
]
[
  Type = "NodeStatus";
  Node = "train-0002";
  NodeStatus = 6; /* "STATUS_ERROR" */
  StatusDetails = "Job proc (17.0.0) failed with status 1";
]
[
  Type = "StatusEnd";
  EndTime = 1399674138; /* "Fri May  9 17:22:18 2014" */
]
"#;

    #[test]
    fn nodes_are_counted_by_step() {
        let nodes = Nodes::of(STATUS).expect("read");
        assert_eq!((nodes.is_done, nodes.has_failed, nodes.held), (false, false, 1));
        assert_eq!(nodes.held_nodes, ["train-0001"]);
        assert_eq!(nodes.steps["parse"], Counts { done: 1, ..Counts::default() });
        assert_eq!(nodes.steps["train"], Counts { at_work: 1, failed: 1, ..Counts::default() });
        assert!(Nodes::of(&STATUS.replace("DagStatus = 3", "DagStatus = 5")).expect("read").is_done);
        for damaged in ["", "[\n", "[\n  Type = \"DagStatus\";\n]\n", "\0"] {
            assert_eq!(Nodes::of(damaged), None);
        }
        // A file that is being written over ends anywhere.
        (0..STATUS.len()).for_each(|end| drop(Nodes::of(&STATUS[..end])));
    }
}
