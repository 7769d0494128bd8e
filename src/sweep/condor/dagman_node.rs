//! What DAGMan tells a script of a node → which jobs of the queue are the node's.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use poolcast_base::error::hinted;

/// In the environment of DAGMan and its scripts: the id of DAGMan's own job.
const DAGMAN_ID_VARIABLE: &str = "CONDOR_ID";

/// The longest name of a node that a file is named after whole; longer ones are cut.
const MOST_NAME_BYTES: usize = 200;

/// A node of a DAG that DAGMan runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DagmanNode {
    /// The cluster of DAGMan's own job.
    pub dagman_cluster: i32,
    /// The node's name, as `$JOB` has it.
    pub name: String,
}

impl DagmanNode {
    /// The node `name` of the DAGMan that has called this program.
    ///
    /// # Errors
    /// Fails where no DAGMan has.
    pub fn of_script(name: &str) -> Result<DagmanNode> {
        let id = std::env::var(DAGMAN_ID_VARIABLE).ok();
        let cluster = id.as_deref().and_then(cluster_of_id);
        let dagman_cluster = cluster.with_context(|| {
            hinted(
                format!("no DAGMan has called this: {DAGMAN_ID_VARIABLE} names no job"),
                "the SCRIPT HOLD of a DAG calls it; at a prompt, type `poolcast advise JOB`",
            )
        })?;
        Ok(DagmanNode {
            dagman_cluster,
            name: name.to_owned(),
        })
    }

    /// What is true of the node's jobs alone, as a ClassAd expression.
    pub(super) fn constraint(&self) -> String {
        let name = self.name.replace('\\', r"\\").replace('"', "\\\"");
        format!(
            "DAGManJobId=={} && DAGNodeName==\"{name}\"",
            self.dagman_cluster
        )
    }

    /// The file here that gets the advice on the node's jobs. What a file's name should not have is
    /// replaced.
    pub fn advice_file(&self) -> PathBuf {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        let mut name: String = self
            .name
            .chars()
            .map(|c| if is_plain(c) { c } else { '_' })
            .collect();
        name.truncate(MOST_NAME_BYTES);
        PathBuf::from(format!("{name}.advice"))
    }
}

fn cluster_of_id(id: &str) -> Option<i32> {
    let (cluster, _) = id.split_once('.')?;
    cluster.parse().ok().filter(|cluster| *cluster > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str) -> DagmanNode {
        DagmanNode {
            dagman_cluster: 14,
            name: name.to_owned(),
        }
    }

    #[test]
    fn the_jobs_of_a_node_are_told_by_its_name_and_its_dagman() {
        assert_eq!(
            node("A").constraint(),
            "DAGManJobId==14 && DAGNodeName==\"A\""
        );
        assert_eq!(
            node(r#"a\" || true || ""#).constraint(),
            r#"DAGManJobId==14 && DAGNodeName=="a\\\" || true || \"""#
        );
    }

    #[test]
    fn the_advice_stands_here_whatever_the_node_is_called() {
        let file = |name: &str| node(name).advice_file().display().to_string();
        assert_eq!(file("splice+A-1.b"), "splice+A-1.b.advice");
        assert_eq!(file("../b/\u{1b}ä"), ".._b___.advice");
        assert_eq!(file(&"x".repeat(5000)).len(), 207);
    }

    #[test]
    fn the_id_of_dagman_is_that_of_a_job() {
        assert_eq!(cluster_of_id("14.0"), Some(14));
        for id in ["", "14", "x.0", "0.0", "-1.0", "99999999999.0"] {
            assert_eq!(cluster_of_id(id), None, "{id}");
        }
    }
}
