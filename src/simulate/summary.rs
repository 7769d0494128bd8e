//! Summarizes a simulation by counts and by the best possible scores.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::hold_truth::SimulatedHold;
use htcondor_eventlog::HoldCode;
use poolcast_base::stats::Scores;

/// The summary of a simulation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulationSummary {
    /// Number of submitted jobs.
    pub jobs: u64,
    /// Number of records, without file headers.
    pub records: u64,
    /// Size of all generations, in bytes.
    pub bytes: u64,
    /// Number of rotated generations, without the live log.
    pub rotated: usize,
    /// Number of jobs held at least once.
    pub held_jobs: u64,
    /// Number of removed jobs.
    pub removed_jobs: u64,
    /// Number of holds.
    pub holds: u64,
    /// Holds by code, the most frequent first.
    pub by_code: Vec<CodeCount>,
    /// ROC-AUC of the true probabilities at the hold. A model can exceed it only by chance.
    pub best_roc_auc: Option<f64>,
    /// ROC-AUC of the true probabilities at the release.
    #[serde(default)]
    pub best_release_roc_auc: Option<f64>,
    /// ROC-AUC of the success rates by hold code, computed on the same holds.
    pub by_code_roc_auc: Option<f64>,
}

/// Outcome counts of the holds with one code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeCount {
    /// The hold reason code.
    pub hold_code: i32,
    /// The hold reason subcode.
    pub hold_subcode: i32,
    /// Number of holds.
    pub holds: u64,
    /// Number of released holds.
    pub released: u64,
    /// Number of released holds with an outcome in the log.
    pub known: u64,
    /// Number of successes among `known`.
    pub succeeded: u64,
}

impl SimulationSummary {
    /// Fills in the holds and scores from `cycles`.
    pub(super) fn count(mut self, cycles: &[SimulatedHold]) -> SimulationSummary {
        let mut by_code: BTreeMap<HoldCode, CodeCount> = BTreeMap::new();
        for cycle in cycles {
            let (hold_code, hold_subcode) = cycle.code;
            let count = by_code.entry(cycle.code).or_insert(CodeCount {
                hold_code,
                hold_subcode,
                ..CodeCount::default()
            });
            count.holds += 1;
            count.released += u64::from(cycle.truth.release_time_ms >= 0);
            count.known += u64::from(cycle.label.is_some());
            count.succeeded += u64::from(cycle.label == Some(true));
        }
        let known: Vec<(&SimulatedHold, bool)> = cycles
            .iter()
            .filter_map(|cycle| Some((cycle, cycle.label?)))
            .collect();
        let labels: Vec<bool> = known.iter().map(|(_, label)| *label).collect();
        let roc_auc = |score: &dyn Fn(&SimulatedHold) -> f64| {
            let scores: Vec<f64> = known.iter().map(|(cycle, _)| score(cycle)).collect();
            Scores::compute(&scores, &labels, 0.5).roc_auc
        };
        let rate = |code: &HoldCode| {
            by_code.get(code).map_or(0.0, |count| {
                count.succeeded as f64 / count.known.max(1) as f64
            })
        };
        self.best_roc_auc = roc_auc(&|cycle| cycle.truth.p_hold);
        self.best_release_roc_auc = roc_auc(&|cycle| cycle.truth.p_release.unwrap_or_default());
        self.by_code_roc_auc = roc_auc(&|cycle| rate(&cycle.code));
        self.holds = cycles.len() as u64;
        self.by_code = by_code.into_values().collect();
        self.by_code
            .sort_by_key(|count| std::cmp::Reverse(count.holds));
        self
    }
}
