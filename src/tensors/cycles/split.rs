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
pub enum Split {
    Train,
    Validate,
    Test,
}

impl Split {
    /// All splits, earliest first.
    pub const ALL: [Split; 3] = [Split::Train, Split::Validate, Split::Test];

    /// The name in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Validate => "validate",
            Split::Test => "test",
        }
    }
}
