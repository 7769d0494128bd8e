//! Chooses batch names for clusters, as users and DAGMan would.

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
/// Stages that the nodes of a DAG are named after.
pub(super) const NODE_STAGES: [&str; 4] = ["prep", "fit", "merge", "plot"];

/// A user's habit of naming batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchNaming {
    /// Gives batches no names.
    Nothing,
    /// Uses one of two names for many clusters, regardless of their faults.
    Campaigns([&'static str; 2]),
    /// Submits through DAGMan, which names batches after the DAG file and its own job.
    Dags,
}

/// The position of a cluster in a DAG.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DagPosition {
    /// Cluster id of DAGMan's own job.
    pub(super) dagman_cluster: u32,
    /// Index of the node in the DAG.
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

    /// Returns the batch name of a cluster; `None` if it has none.
    pub(super) fn batch_name(
        &self,
        dag: Option<DagPosition>,
        rng: &mut ChaCha8Rng,
    ) -> Option<String> {
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

impl DagPosition {
    /// The batch name that DAGMan gives to its nodes.
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
