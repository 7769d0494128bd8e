//! Hold cycles and counts → what a simulation came to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::hold_truth::SimulatedHold;
use htcondor_eventlog::HoldCode;
use poolcast_base::stats::Scores;

/// What was simulated.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulationSummary {
    /// Jobs submitted.
    pub jobs: u64,
    /// Records, headers left out.
    pub records: u64,
    /// Bytes of all generations.
    pub bytes: u64,
    /// Generations beside the live log.
    pub rotated: usize,
    /// Jobs held at least once.
    pub held_jobs: u64,
    /// Jobs removed.
    pub removed_jobs: u64,
    /// Holds.
    pub holds: u64,
    /// Holds by code, the most frequent first.
    pub by_code: Vec<CodeCount>,
    /// The ROC-AUC of the planted probabilities at the hold: no model can do better, but for luck.
    pub best_roc_auc: Option<f64>,
    /// The same at the release.
    #[serde(default)]
    pub best_release_roc_auc: Option<f64>,
    /// The ROC-AUC of the success rates by hold code, of these very holds.
    pub by_code_roc_auc: Option<f64>,
}

/// What became of the holds of one code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodeCount {
    /// The hold reason code.
    pub hold_code: i32,
    /// The hold reason subcode.
    pub hold_subcode: i32,
    /// Holds.
    pub holds: u64,
    /// Those released.
    pub released: u64,
    /// Those released of which the log tells what happened next.
    pub known: u64,
    /// Those of them that ended well.
    pub succeeded: u64,
}

impl SimulationSummary {
    /// Fills in what `cycles` tell.
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
