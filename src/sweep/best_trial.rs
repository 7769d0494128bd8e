//! What came of trials → the best of them so far.

use serde::{Deserialize, Serialize};

use super::outcome::{TrialOutcome, TrialOutcomes};
use super::trial_row::TrialRow;
use poolcast_config::Metric;

/// The best trial so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct BestTrial {
    /// Counted from 1.
    pub trial: usize,
    /// The value it is chosen by.
    pub value: f64,
}

impl BestTrial {
    /// The best of `outcomes`, the first of equals; `None` where none has a value.
    pub(super) fn among<'a>(
        metric: &Metric,
        outcomes: impl IntoIterator<Item = &'a TrialOutcome>,
    ) -> Option<BestTrial> {
        let ranked = outcomes
            .into_iter()
            .filter_map(|outcome| Some((outcome.trial, outcome.rank()?)));
        let (trial, (value, _)) = ranked.min_by(|a, b| metric.goal.order(a.1, b.1))?;
        Some(BestTrial { trial, value })
    }
}

/// The best of `outcomes`, the first of equals; `None` where none has a value.
pub fn best_outcome(metric: &Metric, outcomes: &TrialOutcomes) -> Option<BestTrial> {
    BestTrial::among(metric, outcomes.all())
}

/// The best of `rows`, the first of equals; `None` where none has a value.
pub fn best_trial(metric: &Metric, rows: &[TrialRow]) -> Option<BestTrial> {
    BestTrial::among(metric, TrialOutcomes::from_rows(rows.to_vec()).all())
}
