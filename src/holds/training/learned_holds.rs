//! What a model learned from: which sides of its tensors, and when the last of their outcomes was
//! decided.

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::tensors::{Dataset, SplitSide};

/// The holds that a model learned from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedHolds {
    /// The sides of its tensors that they are on.
    pub sides: Vec<SplitSide>,
    /// When the last of their outcomes was decided, epoch ms.
    pub decided_ms: i64,
}

impl LearnedHolds {
    /// Those of some `sides` of `dataset`.
    pub fn new(dataset: &Dataset, sides: &[SplitSide]) -> Result<LearnedHolds> {
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
