//! What the manifest of an ensemble says: which models answer together, and how what they say is
//! read.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::pipeline_run::SampleFit;

/// What an ensemble is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EnsembleSummary {
    /// Its members.
    pub members: Vec<EnsembleMember>,
    /// What they learned from, and how their mean is read.
    pub samples: SampleFit,
    /// SHA-256 of the file with what they predicted of rows that were not learned from.
    pub predictions_sha256: String,
}

/// One of the models that answer together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsembleMember {
    /// The trial that it comes from, counted from 1.
    pub trial: usize,
    /// The name of its architecture, or of the pipeline.
    pub model: String,
    /// SHA-256 of its file.
    pub sha256: String,
}

impl EnsembleMember {
    /// Where it stands in the ensemble in `dir`.
    pub fn dir(&self, dir: &Path) -> PathBuf {
        member_dir(dir, self.trial)
    }
}

/// Where the member that comes from `trial` stands in the ensemble in `dir`.
pub fn member_dir(dir: &Path, trial: usize) -> PathBuf {
    dir.join(format!("trial-{trial:04}"))
}
