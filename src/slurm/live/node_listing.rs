//! Parser of `sinfo`. Its JSON is a list of nodes in Slurm 22.05, and a list of groups by partition
//! and state in later versions. Slurm that was built without JSON prints text.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use super::host_list::expand_hosts;
use super::node_resources::{GroupResources, NodeResources, NodeValues};
use poolcast_base::error::hinted;
use poolcast_base::output::cut;
use poolcast_provision::slurm_number::{SlurmError, SlurmWords, reject_errors};

/// The argument of `sinfo --Node --format`. It prints one row per node and partition.
pub(super) const SINFO_COLUMNS: &str = "%N|%T|%R";

/// The header of these columns.
const HEADS: &str = "NODELIST|STATE|PARTITION";

/// Maximum number of nodes in a listing; a node counts once per partition. A short text can name
/// very many nodes.
const MAX_NODES: usize = 1_000_000;

/// Maximum length of a list of nodes in a message, in columns.
const MAX_SHOWN_COLUMNS: usize = 80;

#[derive(Deserialize)]
struct NodeDocument {
    #[serde(default)]
    nodes: Option<Vec<ListedNode>>,
    #[serde(default)]
    sinfo: Option<Vec<NodeGroup>>,
    #[serde(default)]
    errors: Option<Vec<SlurmError>>,
}

#[derive(Deserialize)]
struct ListedNode {
    name: String,
    state: SlurmWords,
    #[serde(default)]
    state_flags: Vec<String>,
    partitions: Vec<String>,
    #[serde(flatten)]
    resources: NodeValues,
}

#[derive(Deserialize)]
struct NodeGroup {
    partition: GroupPartition,
    node: GroupState,
    nodes: GroupNodes,
    #[serde(flatten)]
    resources: GroupResources,
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
    /// Nodes that jobs use only in part.
    mixed: BTreeSet<String>,
    /// Nodes that a controller which has just started has not heard of yet, by partition.
    unheard: BTreeMap<String, usize>,
    /// What the nodes have, where it is listed.
    resources: BTreeMap<String, NodeResources>,
    /// Number of nodes that were added, once per partition.
    added: usize,
}

/// States and flags of nodes that accept jobs, in the words of `sinfo` and `scontrol`. Jobs start on
/// nodes that are powered down to save energy, which Slurm then powers up.
#[rustfmt::skip]
const USABLE_STATES: &[&str] = &[
    "ALLOC", "ALLOCATED", "CLOUD", "COMP", "COMPLETING", "DYNAMIC_NORM", "IDLE", "MIX", "MIXED", "PLANNED", "PLND",
    "POWERED_DOWN", "POWERING_UP", "POWER_SAVING", "POWER_UP",
];

/// Marks behind a state in text, of nodes that accept no jobs: they do not respond, are powered down
/// or rebooted, or are in maintenance.
const UNUSABLE_MARKS: &[char] = &['*', '%', '!', '$', '@', '^'];

/// The states of nodes between the start of the controller and their first answer. A node that does not answer has a
/// mark or a flag, too, and is later down.
const UNHEARD_STATES: &[&str] = &["UNK", "UNKNOWN"];

/// Returns true if the controller waits for the first answer of a node with these states and flags.
fn is_unheard(words: &[String]) -> bool {
    let is_named = |word: &String| UNHEARD_STATES.contains(&word.to_ascii_uppercase().as_str());
    words.iter().any(is_named) && !words.iter().any(|word| word.contains("RESPOND"))
}

/// Returns true if a node with these states and flags accepts jobs.
fn is_usable(words: &[String]) -> bool {
    words.iter().all(|word| {
        !word.ends_with(UNUSABLE_MARKS) && USABLE_STATES.contains(&state_name(word).as_str())
    })
}

impl NodeListing {
    /// Parses the output of `sinfo`, as JSON or as text with the columns above, or of
    /// `scontrol --oneliner show node`.
    ///
    /// # Errors
    /// Fails for invalid output; the error names the line and the field.
    pub fn parse(text: &[u8]) -> Result<NodeListing> {
        let printed = String::from_utf8_lossy(text);
        if printed.starts_with("NodeName=") {
            return NodeListing::parse_scontrol(&printed);
        }
        match printed.strip_prefix(HEADS) {
            Some(rows) => NodeListing::parse_node_text(rows),
            None => NodeListing::parse_node_json(text),
        }
    }

    fn parse_scontrol(text: &str) -> Result<NodeListing> {
        let mut listing = NodeListing::default();
        for row in text.lines().filter(|row| !row.trim().is_empty()) {
            let value = |key: &str| {
                let mut pairs = row.split_ascii_whitespace();
                pairs.find_map(|pair| pair.strip_prefix(key)?.strip_prefix('='))
            };
            let (Some(name), Some(state)) = (value("NodeName"), value("State")) else {
                bail!(
                    "`{}` is not a row of `scontrol --oneliner show node`",
                    cut(row, MAX_SHOWN_COLUMNS)
                );
            };
            let words: Vec<String> = state.split('+').map(str::to_owned).collect();
            let partitions = value("Partitions").unwrap_or_default();
            for partition in partitions.split(',').filter(|name| !name.is_empty()) {
                listing.add(partition, name, &words)?;
            }
            if let Some(resources) = NodeResources::from_scontrol(value) {
                listing.resources.insert(name.to_owned(), resources);
            }
        }
        Ok(listing)
    }

    fn parse_node_text(rows: &str) -> Result<NodeListing> {
        let mut listing = NodeListing::default();
        for row in rows.lines().filter(|row| !row.trim().is_empty()) {
            let fields: Vec<&str> = row.split('|').map(str::trim).collect();
            let [node, state, partition] = fields[..] else {
                bail!("`{row}` is not a row of `sinfo`");
            };
            listing.add(partition, node, &[state.to_owned()])?;
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
        reject_errors("sinfo", document.errors.as_deref().unwrap_or_default())?;
        let mut listing = NodeListing::default();
        match (document.nodes, document.sinfo) {
            (Some(nodes), _) => {
                for node in nodes {
                    let words = [node.state.all(), &node.state_flags].concat();
                    for partition in &node.partitions {
                        listing.add(partition, &node.name, &words)?;
                    }
                    if let Some(resources) = node.resources.resources() {
                        listing.resources.insert(node.name, resources);
                    }
                }
            }
            (None, Some(groups)) => {
                for group in groups {
                    for list in &group.nodes.nodes {
                        listing.add(&group.partition.name, list, group.node.state.all())?;
                        if let Some(resources) = group.resources.of_each_node() {
                            for name in expand_hosts(list).unwrap_or_default() {
                                listing.resources.insert(name, resources.clone());
                            }
                        }
                    }
                }
            }
            (None, None) => {
                bail!(anyhow::anyhow!("it has neither `nodes` nor `sinfo`").context(hint()))
            }
        }
        Ok(listing)
    }

    /// Adds the nodes `list` of `partition`. `words` are their state and its flags.
    fn add(&mut self, partition: &str, list: &str, words: &[String]) -> Result<()> {
        // A partition without usable nodes exists, too.
        let nodes = self.partitions.entry(partition.to_owned()).or_default();
        let is_unheard = is_unheard(words);
        if !is_unheard && !is_usable(words) {
            return Ok(());
        }
        let hosts = expand_hosts(list);
        let hosts = hosts.with_context(|| {
            format!("`{}` is not a list of nodes", cut(list, MAX_SHOWN_COLUMNS))
        })?;
        if is_unheard {
            *self.unheard.entry(partition.to_owned()).or_default() += hosts.len();
            return Ok(());
        }
        self.added += hosts.len();
        ensure!(
            self.added <= MAX_NODES,
            "it lists more than {MAX_NODES} nodes"
        );
        if words.iter().any(|word| state_name(word) == "MIXED") {
            self.mixed.extend(hosts.iter().cloned());
        }
        nodes.extend(hosts);
        Ok(())
    }

    /// Returns a usable node of `partition` that jobs use only in part, so that jobs can share
    /// it.
    pub fn mixed_host(&self, partition: &str) -> Option<&str> {
        let hosts = self.partitions.get(partition)?;
        hosts.intersection(&self.mixed).next().map(String::as_str)
    }

    /// Returns the number of nodes of `partition` that a controller which has just started has not heard of yet.
    pub fn count_unheard(&self, partition: &str) -> usize {
        self.unheard.get(partition).copied().unwrap_or(0)
    }

    /// Returns the usable nodes of `partition`; `None` if there is no such partition.
    pub fn hosts_in_partition(&self, partition: &str) -> Option<&BTreeSet<String>> {
        self.partitions.get(partition)
    }

    /// Returns what the node `name` has, if this is listed.
    pub(super) fn resources(&self, name: &str) -> Option<&NodeResources> {
        self.resources.get(name)
    }

    /// Returns the names of all partitions.
    pub fn partitions(&self) -> impl Iterator<Item = &str> {
        self.partitions.keys().map(String::as_str)
    }
}

/// Returns the upper-case name of a node's state. Text output appends marks to it, for example if a
/// node does not respond or saves power.
fn state_name(word: &str) -> String {
    let name = word.trim_end_matches(|mark: char| !mark.is_ascii_alphabetic());
    name.to_ascii_uppercase()
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
        let listing = NodeListing::parse(groups.as_bytes()).expect("read");
        assert_eq!(listing.mixed_host("all"), Some("n1"));
        for state in ["FAILING", "ERROR", "UNKNOWN", "RESERVED", "MAINTENANCE"] {
            let none_free = groups.replace("\"MIXED\"", &format!("\"IDLE\", \"{state}\""));
            assert_eq!(usable(&none_free, "all").as_deref(), Some(""), "{state}");
        }

        let text = "NODELIST|STATE|PARTITION\nn1|allocated|all\nn1|allocated|short\nn2|drained|all\nn3|idle*|all\nn4|idle~|all\nn5|failg|all\nn6|resv|all\nn7|unk|all\n";
        assert_eq!(usable(text, "all").as_deref(), Some("n1 n4"));
        assert_eq!(usable(text, "short").as_deref(), Some("n1"));
    }

    /// States that a controller prints in the seconds after its start.
    #[test]
    fn nodes_that_a_new_controller_has_not_heard_of_are_counted() {
        let unheard = |text: &str| {
            let listing = NodeListing::parse(text.as_bytes()).expect("read");
            listing.count_unheard("all")
        };
        let rows = "n1|unknown|all\nn2|unk|all\nn3|idle|all\nn4|unknown|other\n";
        let text = format!("{HEADS}\n{rows}");
        assert_eq!(unheard(&text), 2);
        let silent = format!("{HEADS}\nn1|unk*|all\nn2|down*|all\nn3|idle*|all\n");
        assert_eq!(unheard(&silent), 0);
        let nodes = r#"{"nodes": [{"name": "n1", "state": "unknown", "state_flags": [], "partitions": ["all"]},
            {"name": "n2", "state": "unknown", "state_flags": ["NOT_RESPONDING"], "partitions": ["all"]}]}"#;
        assert_eq!(unheard(nodes), 1);
        let groups = r#"{"sinfo": [{"partition": {"name": "all"}, "node": {"state": ["UNKNOWN"]}, "nodes": {"nodes": ["n[1-3]"]}}]}"#;
        assert_eq!(unheard(groups), 3);
        let one = "NodeName=n1 State=UNKNOWN Partitions=all\n";
        assert_eq!(unheard(one), 1);
    }

    #[test]
    fn short_texts_that_name_very_many_nodes_are_rejected() {
        let groups = |count: usize| {
            let rows = (0..count).map(|row| format!("c{row}n[1-200000]|idle|all\n"));
            let text = format!("{HEADS}\n{}", rows.collect::<String>());
            NodeListing::parse(text.as_bytes())
        };
        let nodes = groups(1).expect("read");
        assert_eq!(
            nodes.hosts_in_partition("all").map(BTreeSet::len),
            Some(200_000)
        );
        let error = groups(100).expect_err("rejected");
        assert_eq!(error.to_string(), "it lists more than 1000000 nodes");
    }

    #[test]
    fn invalid_listings_are_rejected_with_the_field() {
        for (text, named) in [
            ("{\"nodes\": [{\"name\": \"n1\"", "EOF while parsing"),
            (
                "{\"nodes\": [{\"name\": \"n1\", \"partitions\": []}]}",
                "missing field `state`",
            ),
            (
                r#"{"nodes": [], "errors": [{"error": "Zero Bytes were transmitted"}]}"#,
                "Zero Bytes were transmitted",
            ),
            ("{\"jobs\": []}", "neither `nodes` nor `sinfo`"),
        ] {
            let error = NodeListing::parse(text.as_bytes()).expect_err("refused");
            let said = poolcast_base::error::render(&error);
            assert!(said.contains(named), "{said}");
            let is_answer = !text.contains("errors");
            assert_eq!(said.contains("hint: write it with `sinfo"), is_answer);
        }
    }
}
