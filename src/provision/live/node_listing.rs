//! Parser of `sinfo`. Its JSON is a list of nodes in Slurm 22.05, and a list of groups by partition
//! and state in later versions. Slurm that was built without JSON prints text.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;

use super::host_list::expand_hosts;
use crate::slurm_number::SlurmWords;
use poolcast_base::error::hinted;
use poolcast_base::output::cut;

/// The argument of `sinfo --Node --format`. It prints one row per node and partition.
pub(super) const SINFO_COLUMNS: &str = "%N|%T|%R";

/// The header of these columns.
const HEADS: &str = "NODELIST|STATE|PARTITION";

/// Maximum length of a list of nodes in a message, in columns.
const MAX_SHOWN_COLUMNS: usize = 80;

#[derive(Deserialize)]
struct NodeDocument {
    #[serde(default)]
    nodes: Option<Vec<ListedNode>>,
    #[serde(default)]
    sinfo: Option<Vec<NodeGroup>>,
}

#[derive(Deserialize)]
struct ListedNode {
    name: String,
    state: SlurmWords,
    #[serde(default)]
    state_flags: Vec<String>,
    partitions: Vec<String>,
}

#[derive(Deserialize)]
struct NodeGroup {
    partition: GroupPartition,
    node: GroupState,
    nodes: GroupNodes,
}

#[derive(Deserialize)]
struct GroupPartition {
    name: String,
}

#[derive(Deserialize)]
struct GroupState {
    state: SlurmWords,
}

#[derive(Deserialize)]
struct GroupNodes {
    nodes: Vec<String>,
}

/// The usable nodes of a cluster, by partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeListing {
    partitions: BTreeMap<String, BTreeSet<String>>,
}

/// States in which a node accepts no further jobs.
const UNUSABLE_STATES: [&str; 9] = [
    "DOWN",
    "DRAIN",
    "DRAINED",
    "DRAINING",
    "FAIL",
    "FUTURE",
    "MAINT",
    "MAINTENANCE",
    "NOT_RESPONDING",
];

impl NodeListing {
    /// Parses the output of `sinfo`, as JSON or as text with the columns above.
    ///
    /// # Errors
    /// Fails for invalid output; the error names the line and the field.
    pub fn parse(text: &[u8]) -> Result<NodeListing> {
        let printed = String::from_utf8_lossy(text);
        match printed.strip_prefix(HEADS) {
            Some(rows) => NodeListing::parse_node_text(rows),
            None => NodeListing::parse_node_json(text),
        }
    }

    fn parse_node_text(rows: &str) -> Result<NodeListing> {
        let mut listing = NodeListing::default();
        for row in rows.lines().filter(|row| !row.trim().is_empty()) {
            let fields: Vec<&str> = row.split('|').map(str::trim).collect();
            let [node, state, partition] = fields[..] else {
                bail!("`{row}` is not a row of `sinfo`");
            };
            listing.add(partition, node, is_usable(&[state.to_owned()]))?;
        }
        Ok(listing)
    }

    fn parse_node_json(text: &[u8]) -> Result<NodeListing> {
        let hint = || {
            hinted(
                "this is not the JSON of a known version of `sinfo`",
                "write it with `sinfo --all --json`",
            )
        };
        let document: NodeDocument = serde_json::from_slice(text).with_context(hint)?;
        let mut listing = NodeListing::default();
        match (document.nodes, document.sinfo) {
            (Some(nodes), _) => {
                for node in nodes {
                    let is_usable = is_usable(node.state.all()) && is_usable(&node.state_flags);
                    for partition in &node.partitions {
                        listing.add(partition, &node.name, is_usable)?;
                    }
                }
            }
            (None, Some(groups)) => {
                for group in groups {
                    let is_usable = is_usable(group.node.state.all());
                    for list in &group.nodes.nodes {
                        listing.add(&group.partition.name, list, is_usable)?;
                    }
                }
            }
            (None, None) => {
                bail!(anyhow::anyhow!("it has neither `nodes` nor `sinfo`").context(hint()))
            }
        }
        Ok(listing)
    }

    fn add(&mut self, partition: &str, list: &str, is_usable: bool) -> Result<()> {
        // A partition without usable nodes exists, too.
        let nodes = self.partitions.entry(partition.to_owned()).or_default();
        if is_usable {
            let hosts = expand_hosts(list);
            nodes.extend(hosts.with_context(|| {
                format!("`{}` is not a list of nodes", cut(list, MAX_SHOWN_COLUMNS))
            })?);
        }
        Ok(())
    }

    /// Returns the usable nodes of `partition`; `None` if there is no such partition.
    pub fn hosts_in_partition(&self, partition: &str) -> Option<&BTreeSet<String>> {
        self.partitions.get(partition)
    }

    /// Returns the names of all partitions.
    pub fn partitions(&self) -> impl Iterator<Item = &str> {
        self.partitions.keys().map(String::as_str)
    }
}

fn is_usable(words: &[String]) -> bool {
    let is_bad = |word: &String| {
        let word = word.to_ascii_uppercase();
        // Text output appends marks to a state, for example if a node does not respond or saves
        // power.
        let name = word.trim_end_matches(|mark: char| !mark.is_ascii_alphabetic());
        UNUSABLE_STATES.contains(&name) || word.ends_with('*')
    };
    !words.iter().any(is_bad)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usable(text: &str, partition: &str) -> Option<String> {
        let listing = NodeListing::parse(text.as_bytes()).expect("read");
        let nodes = listing.hosts_in_partition(partition)?;
        Some(nodes.iter().cloned().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn nodes_are_read_from_json_and_text() {
        let nodes = r#"{"nodes": [
            {"name": "n1", "state": "allocated", "state_flags": [], "partitions": ["all", "short"]},
            {"name": "n2", "state": "idle", "state_flags": ["DRAIN"], "partitions": ["all"]},
            {"name": "n3", "state": "down", "state_flags": [], "partitions": ["old"]},
            {"name": "n4", "state": ["IDLE"], "partitions": ["all"]}]}"#;
        assert_eq!(usable(nodes, "all").as_deref(), Some("n1 n4"));
        assert_eq!(usable(nodes, "short").as_deref(), Some("n1"));
        assert_eq!(usable(nodes, "old").as_deref(), Some(""));
        assert_eq!(usable(nodes, "none"), None);

        let groups = r#"{"sinfo": [
            {"partition": {"name": "all"}, "node": {"state": ["MIXED"]}, "nodes": {"nodes": ["n1", "n[3-4]"]}},
            {"partition": {"name": "all"}, "node": {"state": ["IDLE", "DRAIN"]}, "nodes": {"nodes": ["n2"]}}], "errors": []}"#;
        assert_eq!(usable(groups, "all").as_deref(), Some("n1 n3 n4"));

        let text = "NODELIST|STATE|PARTITION\nn1|allocated|all\nn1|allocated|short\nn2|drained|all\nn3|idle*|all\nn4|idle~|all\n";
        assert_eq!(usable(text, "all").as_deref(), Some("n1 n4"));
        assert_eq!(usable(text, "short").as_deref(), Some("n1"));
    }

    #[test]
    fn invalid_listings_are_rejected_with_the_field() {
        for (text, named) in [
            ("{\"nodes\": [{\"name\": \"n1\"", "EOF while parsing"),
            (
                "{\"nodes\": [{\"name\": \"n1\", \"partitions\": []}]}",
                "missing field `state`",
            ),
            ("{\"jobs\": []}", "neither `nodes` nor `sinfo`"),
        ] {
            let error = NodeListing::parse(text.as_bytes()).expect_err("refused");
            let said = poolcast_base::error::render(&error);
            assert!(
                said.contains(named) && said.contains("hint: write it with `sinfo"),
                "{said}"
            );
        }
    }
}
