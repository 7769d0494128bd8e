//! Reads the progress of a DAG's nodes from DAGMan's `NODE_STATUS_FILE`, and from the log of DAGMan's
//! own job if that was removed.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::layout::{DAGMAN_LOG, STATUS_FILE};
use htcondor_eventlog::{self as eventlog, ABORTED, ReadOptions};

/// Number of nodes in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct NodeCounts {
    /// Nodes that succeeded or had nothing to do.
    pub done: usize,
    /// Nodes with a job in the queue, or with a running script.
    pub at_work: usize,
    /// Nodes that have not begun.
    pub waiting: usize,
    /// Nodes that failed.
    pub failed: usize,
    /// Nodes that will never begin, because a node that they depend on has failed.
    pub futile: usize,
}

/// The progress of a DAG.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct DagProgress {
    /// True if all nodes are done and DAGMan reported success.
    pub is_done: bool,
    /// True if DAGMan has ended the DAG with a failure.
    pub has_failed: bool,
    /// True if DAGMan's own job was removed from the queue, as by `condor_rm`, and with it all jobs
    /// of the DAG.
    pub was_removed: bool,
    /// Number of held jobs.
    pub held: usize,
    /// The nodes of the held jobs.
    pub held_nodes: Vec<String>,
    /// The nodes that failed.
    pub failed_nodes: Vec<String>,
    /// The time at which DAGMan wrote this status, in epoch seconds.
    pub written_s: Option<u64>,
    /// Nodes by step: the first word of their names.
    pub steps: BTreeMap<String, NodeCounts>,
}

/// DAGMan's numbers for the states of a node and of the DAG.
mod state {
    pub(super) const NOT_READY: u64 = 0;
    pub(super) const READY: u64 = 1;
    pub(super) const DONE: u64 = 5;
    pub(super) const ERROR: u64 = 6;
    pub(super) const FUTILE: u64 = 7;
}

impl DagProgress {
    /// Reads the progress of the DAG in `dir`; `None` before DAGMan has begun.
    ///
    /// # Errors
    /// Fails for a file that DAGMan did not write.
    pub fn read(dir: &Path) -> Result<Option<DagProgress>> {
        let was_removed = is_last_event(&dir.join(DAGMAN_LOG), ABORTED);
        let path = dir.join(STATUS_FILE);
        let progress = if path.is_file() {
            DagProgress::parse(&fs_err::read_to_string(&path)?).with_context(|| {
                format!("`{}` is not a node status file of DAGMan", path.display())
            })?
        } else if was_removed {
            DagProgress::default()
        } else {
            return Ok(None);
        };
        let is_removed = was_removed && !progress.is_done;
        Ok(Some(if is_removed {
            progress.after_removal()
        } else {
            progress
        }))
    }

    /// The progress once DAGMan was removed. It may not have been able to write its status, and none
    /// of its jobs is in the queue any more.
    fn after_removal(mut self) -> DagProgress {
        for counts in self.steps.values_mut() {
            counts.waiting += std::mem::take(&mut counts.at_work);
        }
        DagProgress {
            was_removed: true,
            held: 0,
            held_nodes: Vec::new(),
            ..self
        }
    }

    fn parse(text: &str) -> Option<DagProgress> {
        let (mut nodes, mut is_status) = (DagProgress::default(), false);
        for ad in text.split("\n]").map(parse_classad) {
            match ad.get("Type").map(String::as_str) {
                Some("DagStatus") => {
                    let status = read_number(&ad, "DagStatus")?;
                    is_status = true;
                    (nodes.is_done, nodes.has_failed) =
                        (status == state::DONE, status == state::ERROR);
                    nodes.held = read_number(&ad, "JobProcsHeld").unwrap_or_default() as usize;
                    nodes.written_s = read_number(&ad, "Timestamp");
                }
                Some("NodeStatus") => {
                    let node = ad.get("Node")?;
                    nodes.count_node(node, read_number(&ad, "NodeStatus")?);
                    nodes.failed_nodes.extend(
                        (read_number(&ad, "NodeStatus") == Some(state::ERROR))
                            .then(|| node.clone()),
                    );
                    nodes
                        .held_nodes
                        .extend((read_number(&ad, "JobProcsHeld") > Some(0)).then(|| node.clone()));
                }
                _ => {}
            }
        }
        is_status.then_some(nodes)
    }

    /// Returns true if DAGMan has ended.
    pub fn is_over(&self) -> bool {
        self.is_done || self.has_failed || self.was_removed
    }

    /// Seconds since DAGMan last wrote its status.
    pub fn silent_s(&self) -> Option<u64> {
        let now = jiff::Timestamp::now().as_second();
        Some(u64::try_from(now).ok()?.saturating_sub(self.written_s?))
    }

    /// Returns true if every node but the last is done, but DAGMan continues.
    pub fn waits_for_nothing(&self) -> bool {
        let counts = || {
            self.steps
                .iter()
                .filter(|(step, _)| *step != "report")
                .map(|(_, counts)| counts)
        };
        let is_done = |counts: &NodeCounts| {
            counts.at_work + counts.waiting + counts.failed + counts.futile == 0
        };
        !self.is_over() && counts().next().is_some() && counts().all(is_done)
    }

    /// Counts nodes as failed that DAGMan counts as done, but that left a record of failure in
    /// `dir`.
    ///
    /// # Errors
    /// Fails if the records cannot be listed.
    pub fn with_failure_records(mut self, dir: &Path) -> Result<DagProgress> {
        for (place, prefix) in [("tensors", "tensors-"), ("rows", "")] {
            let Ok(entries) = fs_err::read_dir(dir.join(place)) else {
                continue;
            };
            for entry in entries {
                let name = entry?.file_name().to_string_lossy().into_owned();
                let Some(name) = name.strip_suffix(".failed") else {
                    continue;
                };
                let node = format!("{prefix}{name}");
                if let Some(counts) = self
                    .steps
                    .get_mut(step_of_node(&node))
                    .filter(|counts| counts.done > 0)
                {
                    (counts.done, counts.failed) = (counts.done - 1, counts.failed + 1);
                    self.failed_nodes.push(node);
                }
            }
        }
        self.failed_nodes.sort_unstable();
        Ok(self)
    }

    /// The reason of each failed node of the DAG in `dir`: the record of its failure, else the
    /// first error in its job's output.
    pub fn failure_reasons(&self, dir: &Path) -> BTreeMap<String, String> {
        let why = |node: &String| {
            let record = match node.strip_prefix("tensors-") {
                Some(name) => dir.join(format!("tensors/{name}.failed")),
                None => dir.join(format!("rows/{node}.failed")),
            };
            let recorded = fs_err::read_to_string(record).ok();
            let stderr_text = || fs_err::read_to_string(dir.join(format!("logs/{node}.err"))).ok();
            let error = |text: String| {
                Some(
                    text.lines()
                        .find_map(|line| line.strip_prefix("error: "))?
                        .to_owned(),
                )
            };
            let why = recorded.or_else(|| stderr_text().and_then(error));
            let why = why.unwrap_or_else(|| format!("logs/{node}.err has no error message"));
            let why = why.lines().next().unwrap_or_default();
            (
                node.clone(),
                why.strip_prefix(&format!("{node}: "))
                    .unwrap_or(why)
                    .to_owned(),
            )
        };
        self.failed_nodes.iter().map(why).collect()
    }

    fn count_node(&mut self, node: &str, status: u64) {
        let counts = self.steps.entry(step_of_node(node).to_owned()).or_default();
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

/// The step of a node: the first word of its name.
pub fn step_of_node(node: &str) -> &str {
    node.split('-').next().unwrap_or(node)
}

/// The attributes of one ClassAd, one per line: `Name = Value; /* a remark */`.
fn parse_classad(ad: &str) -> BTreeMap<String, String> {
    let attribute = |line: &str| {
        let (name, rest) = line.split_once(" = ")?;
        let value = rest.split(';').next()?.trim().trim_matches('"');
        Some((name.trim().to_owned(), value.to_owned()))
    };
    ad.lines().filter_map(attribute).collect()
}

/// Returns true if the last event in `log` has this number; false also for a log that cannot be read.
fn is_last_event(log: &Path, number: u16) -> bool {
    let mut last = None;
    let read = eventlog::read(log, &ReadOptions::default(), |_| {}, &mut |batch| {
        last = batch.events.last().map(|event| event.number).or(last);
        Ok(())
    });
    read.is_ok() && last == Some(number)
}

fn read_number(ad: &BTreeMap<String, String>, name: &str) -> Option<u64> {
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
        let nodes = DagProgress::parse(STATUS).expect("read");
        assert_eq!(
            (nodes.is_done, nodes.has_failed, nodes.held),
            (false, false, 1)
        );
        assert_eq!(nodes.held_nodes, ["train-0001"]);
        assert_eq!(
            nodes.steps["parse"],
            NodeCounts {
                done: 1,
                ..NodeCounts::default()
            }
        );
        assert_eq!(
            nodes.steps["train"],
            NodeCounts {
                at_work: 1,
                failed: 1,
                ..NodeCounts::default()
            }
        );
        assert!(
            DagProgress::parse(&STATUS.replace("DagStatus = 3", "DagStatus = 5"))
                .expect("read")
                .is_done
        );
        for damaged in ["", "[\n", "[\n  Type = \"DagStatus\";\n]\n", "\0"] {
            assert_eq!(DagProgress::parse(damaged), None);
        }
        // A file that is being overwritten may end anywhere.
        (0..STATUS.len()).for_each(|end| drop(DagProgress::parse(&STATUS[..end])));
    }
}
