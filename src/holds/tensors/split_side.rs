//! The sides of a split: what is learned from, what is chosen by, and what is tested.

use serde::{Deserialize, Serialize};

/// A side of the split.
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
    /// All sides, earliest first.
    pub const ALL: [SplitSide; 3] = [SplitSide::Train, SplitSide::Validate, SplitSide::Test];

    /// The word in file names and reports.
    pub fn name(self) -> &'static str {
        match self {
            SplitSide::Train => "train",
            SplitSide::Validate => "validate",
            SplitSide::Test => "test",
        }
    }
}
