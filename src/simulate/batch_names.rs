//! A user's habit and a cluster → the name of its batch, as people and DAGMan give them.

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

const CAMPAIGNS: [&str; 10] = [
    "thesis",
    "param-sweep",
    "docking-7",
    "lensing_scan",
    "prod_2026",
    "mc_batch",
    "ocean",
    "run2",
    "test",
    "calibration",
];
/// What the nodes of a DAG do.
pub(super) const NODE_STAGES: [&str; 4] = ["prep", "fit", "merge", "plot"];

/// How a user calls batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchNaming {
    /// Not at all.
    Nothing,
    /// Many clusters have one of these two names, whatever their faults are.
    Campaigns([&'static str; 2]),
    /// DAGMan submits, and names batches after the file of the DAG and its own job.
    Dags,
}

/// The node of a DAG that a cluster is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DagPlace {
    /// The cluster of DAGMan's own job.
    pub(super) dagman_cluster: u32,
    /// The number of the node.
    pub(super) node: u32,
}

impl BatchNaming {
    pub(super) fn new(rng: &mut ChaCha8Rng) -> BatchNaming {
        let first = rng.random_range(0..CAMPAIGNS.len());
        let second = rng.random_range(0..CAMPAIGNS.len());
        match rng.random_range(0..100) {
            0..35 => BatchNaming::Nothing,
            35..80 => BatchNaming::Campaigns([CAMPAIGNS[first], CAMPAIGNS[second]]),
            _ => BatchNaming::Dags,
        }
    }

    /// The name of the batch of a cluster.
    pub(super) fn batch_name(&self, dag: Option<DagPlace>, rng: &mut ChaCha8Rng) -> Option<String> {
        match (self, dag) {
            (BatchNaming::Campaigns(names), _) => {
                let is_first = rng.random::<f64>() < 0.7;
                Some(names[usize::from(!is_first)].to_owned())
            }
            (BatchNaming::Dags, Some(dag)) => Some(dag.batch_name()),
            _ => None,
        }
    }
}

impl DagPlace {
    /// What DAGMan calls the batch of its nodes.
    fn batch_name(&self) -> String {
        format!(
            "wf{:02}.dag+{}",
            self.dagman_cluster % 13,
            self.dagman_cluster
        )
    }

    /// The name of the node.
    pub(super) fn node_name(&self) -> String {
        let stage = NODE_STAGES[self.node as usize % NODE_STAGES.len()];
        format!("{stage}_{:02}", self.node)
    }
}
