//! What a sampler knows of another trial.

use super::space::SearchPoint;

/// What is known of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedTrial {
    /// The point that it tries, or tried.
    pub point: SearchPoint,
    /// The value that it reached; `None` while the trial runs, and where it failed.
    pub value: Option<f64>,
}
