//! The manifest of an ensemble: its members, and the calibration of their mean.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::pipeline_run::SampleFit;

/// Body of an ensemble's manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct EnsembleSummary {
    /// Members of the ensemble.
    pub members: Vec<EnsembleMember>,
    /// Facts about the samples that the members learned from, with the calibration of their mean.
    pub samples: SampleFit,
    /// SHA-256 of the file with the members' predictions for rows that were not learned from.
    pub predictions_sha256: String,
}

/// A member of an ensemble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnsembleMember {
    /// Number of the trial that trained it, from 1.
    pub trial: usize,
    /// Name of the architecture or of the pipeline.
    pub model: String,
    /// SHA-256 of the member's file.
    pub sha256: String,
}

impl EnsembleMember {
    /// The directory of the member in the ensemble in `dir`.
    pub fn dir(&self, dir: &Path) -> PathBuf {
        member_dir(dir, self.trial)
    }
}

/// The directory, in the ensemble in `dir`, of the member trained by `trial`.
pub fn member_dir(dir: &Path, trial: usize) -> PathBuf {
    dir.join(format!("trial-{trial:04}"))
}
