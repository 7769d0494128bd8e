//! Record of the holds a model learned from: the splits of its tensors.

use serde::{Deserialize, Serialize};

use poolcast_tensors::Split;

/// The holds that a model learned from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LearnedHolds {
    /// Splits of the model's tensors that contain them.
    #[serde(rename = "sides")]
    pub splits: Vec<Split>,
}
