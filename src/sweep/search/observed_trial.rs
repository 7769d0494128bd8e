//! An earlier trial, as a sampler sees it.

use super::space::SearchPoint;

/// An earlier trial: its point and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedTrial {
    /// Point of the search space that the trial tries.
    pub point: SearchPoint,
    /// Value that the trial reached; `None` while it runs, and if it failed.
    pub value: Option<f64>,
}
