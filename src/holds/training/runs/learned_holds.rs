//! Record of the holds a model learned from: the splits of its tensors, and the time at which the
//! last outcome was decided.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use poolcast_tensors::{Dataset, Split};

/// The holds that a model learned from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedHolds {
    /// Splits of the model's tensors that contain them.
    pub sides: Vec<Split>,
    /// Time at which the last of their outcomes was decided, in epoch ms.
    pub decided_ms: i64,
}

impl LearnedHolds {
    /// The holds of `sides` of `dataset`.
    pub fn new(dataset: &Dataset, sides: &[Split]) -> Result<LearnedHolds> {
        let mut decided_ms = i64::MIN;
        for &side in sides {
            let of_side: Vec<i64> = dataset.column(side, "outcome_time_ms")?;
            decided_ms = of_side.into_iter().fold(decided_ms, i64::max);
        }
        Ok(LearnedHolds {
            sides: sides.to_vec(),
            decided_ms,
        })
    }
}
