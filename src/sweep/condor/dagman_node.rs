//! Identifies the jobs of a DAG's node in the queue, from the information that DAGMan passes to the
//! node's script.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use poolcast_base::error::hinted;

/// The environment variable of DAGMan and its scripts with the id of DAGMan's own job.
const DAGMAN_ID_VARIABLE: &str = "CONDOR_ID";

/// The longest node name that is used in a file name, in bytes; longer names are truncated.
const MAX_NODE_NAME_BYTES: usize = 200;

/// A node of a DAG that DAGMan runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DagmanNode {
    /// The cluster of DAGMan's own job.
    pub dagman_cluster: i32,
    /// The node's name, like in `$JOB`.
    pub name: String,
}

impl DagmanNode {
    /// The node `name` of the DAGMan that has called this program.
    ///
    /// # Errors
    /// Fails if no DAGMan has called it.
    pub fn from_script(name: &str) -> Result<DagmanNode> {
        let id = std::env::var(DAGMAN_ID_VARIABLE).ok();
        let cluster = id.as_deref().and_then(cluster_of_id);
        let dagman_cluster = cluster.with_context(|| {
            hinted(
                format!("not called by DAGMan: {DAGMAN_ID_VARIABLE} is not the id of a job"),
                "`--dag` is for the SCRIPT HOLD of a DAG; at a prompt, type `poolcast advise JOB`",
            )
        })?;
        Ok(DagmanNode {
            dagman_cluster,
            name: name.to_owned(),
        })
    }

    /// A ClassAd expression that is true only for the jobs of this node.
    pub(super) fn constraint(&self) -> String {
        let name = self.name.replace('\\', r"\\").replace('"', "\\\"");
        format!(
            "DAGManJobId=={} && DAGNodeName==\"{name}\"",
            self.dagman_cluster
        )
    }

    /// The name of the file for the advice on the node's jobs, in the current directory. Characters
    /// that a file name should not have are replaced.
    pub fn advice_file(&self) -> PathBuf {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._+-".contains(c);
        let mut name: String = self
            .name
            .chars()
            .map(|c| if is_plain(c) { c } else { '_' })
            .collect();
        name.truncate(MAX_NODE_NAME_BYTES);
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
    fn constraint_names_the_node_and_its_dagman() {
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
    fn advice_file_stays_in_the_current_directory() {
        let file = |name: &str| node(name).advice_file().display().to_string();
        assert_eq!(file("splice+A-1.b"), "splice+A-1.b.advice");
        assert_eq!(file("../b/\u{1b}ä"), ".._b___.advice");
        assert_eq!(file(&"x".repeat(5000)).len(), 207);
    }

    #[test]
    fn dagman_id_must_be_a_job_id() {
        assert_eq!(cluster_of_id("14.0"), Some(14));
        for id in ["", "14", "x.0", "0.0", "-1.0", "99999999999.0"] {
            assert_eq!(cluster_of_id(id), None, "{id}");
        }
    }
}
