//! The splits: train for learning, validate for choosing a model, and test for scoring it.

use serde::{Deserialize, Serialize};

/// One of the splits.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words say it")]
pub enum SplitSide {
    Train,
    Validate,
    Test,
}

impl SplitSide {
    /// All splits, earliest first.
    pub const ALL: [SplitSide; 3] = [SplitSide::Train, SplitSide::Validate, SplitSide::Test];

    /// The name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            SplitSide::Train => "train",
            SplitSide::Validate => "validate",
            SplitSide::Test => "test",
        }
    }
}
