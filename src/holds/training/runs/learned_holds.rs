//! Record of the holds a model learned from: the splits of its tensors, and the time at which the
//! last outcome was decided.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use poolcast_tensors::{Dataset, Split};

/// The holds that a model learned from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedHolds {
    /// Splits of the model's tensors that contain them.
    #[serde(rename = "sides")]
    pub splits: Vec<Split>,
    /// Time at which the last of their outcomes was decided, in epoch ms.
    pub decided_ms: i64,
}

impl LearnedHolds {
    /// The holds of `splits` of `dataset`.
    pub fn new(dataset: &Dataset, splits: &[Split]) -> Result<LearnedHolds> {
        let mut decided_ms = i64::MIN;
        for &split in splits {
            let of_split: Vec<i64> = dataset.column(split, "outcome_time_ms")?;
            decided_ms = of_split.into_iter().fold(decided_ms, i64::max);
        }
        Ok(LearnedHolds {
            splits: splits.to_vec(),
            decided_ms,
        })
    }
}
