//! The directory of a fitted pipeline: what its manifest says of the fit, and of the samples of logs
//! if it was fitted to such.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::baselines::SuccessRates;
use super::calibration::Calibration;
use super::learned_holds::LearnedHolds;
use super::run_dir::FIT;
use super::target_scores::TargetScores;
use poolcast_config::MetricName;
use poolcast_base::error::hinted;
use poolcast_pipelines::{FittedPipeline, PIPELINE_FILE};
use crate::tensors::TensorSettings;
use poolcast_base::{files, manifest};

/// What a fit came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitScores {
    /// Of each fold, or of what followed each time cut.
    pub folds: Vec<TargetScores>,
    /// The mean over folds, if there are any.
    pub mean: Option<TargetScores>,
    /// Of what followed all time cuts together, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling: Option<TargetScores>,
    /// Of the rows held out, if there are any.
    pub validation: Option<TargetScores>,
    /// Of further rows, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evaluation: BTreeMap<String, TargetScores>,
}

impl FitScores {
    /// The scores that a trial is judged by: those of all time cuts, the mean over the folds, else
    /// those of the rows held out. Where there are folds, the latter have no part in the choice.
    pub fn judged(&self) -> Option<&TargetScores> {
        self.rolling
            .as_ref()
            .or(self.mean.as_ref())
            .or(self.validation.as_ref())
    }

    /// The value that a sweep chooses by.
    pub fn watched(&self, name: MetricName) -> Option<f64> {
        self.judged()?.watched(name)
    }
}

/// What a pipeline that was fitted to samples of logs says of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SampleFit {
    /// How the samples were made that the pipeline knows.
    pub tensors: TensorSettings,
    /// The digest of the tensors.
    pub tensors_key: String,
    /// Success by hold code on the samples that were learned from.
    pub rates: SuccessRates,
    /// What those are.
    pub learned: LearnedHolds,
    /// How its probabilities are read.
    pub calibration: Calibration,
    /// The root seed.
    pub seed: u64,
}

/// What a fit says of itself in its manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FitSummary {
    /// What it came to.
    #[serde(flatten)]
    pub scores: FitScores,
    /// What it was fitted to, if that were samples of logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleFit>,
    /// SHA-256 of the pipeline's file.
    pub pipeline_sha256: String,
    /// SHA-256 of the file with what was predicted of rows that were not learned from.
    pub predictions_sha256: String,
}

/// A pipeline that was fitted to samples of logs, open.
#[derive(Debug)]
pub struct PipelineRun {
    /// The digest of everything it was made from.
    pub key: String,
    /// What it was fitted to.
    pub samples: SampleFit,
    /// The pipeline.
    pub pipeline: FittedPipeline,
    /// SHA-256 of its file.
    pub pipeline_sha256: String,
}

impl PipelineRun {
    /// Opens the fit in `dir`.
    ///
    /// # Errors
    /// Fails when it was fitted to tables, when its model was removed, and when that is not the one
    /// that the manifest speaks of.
    pub fn open(dir: &Path) -> Result<PipelineRun> {
        let found = manifest::read::<FitSummary>(dir, FIT)?;
        let Some(samples) = found.body.samples else {
            anyhow::bail!(hinted(
                format!("`{}` was fitted to a table, and not to logs", dir.display()),
                "`poolcast predict` asks it about rows of a table"
            ));
        };
        let path = dir.join(PIPELINE_FILE);
        let pipeline = FittedPipeline::open(dir)?;
        ensure!(
            pipeline_sha256(dir)? == found.body.pipeline_sha256,
            hinted(
                format!(
                    "`{}` is not the pipeline that its manifest speaks of",
                    path.display()
                ),
                "fit it anew with `poolcast sweep run`"
            )
        );
        Ok(PipelineRun {
            key: found.key,
            samples,
            pipeline,
            pipeline_sha256: found.body.pipeline_sha256,
        })
    }
}

/// SHA-256 of the file of the pipeline in `dir`.
///
/// # Errors
/// Fails when there is none.
pub fn pipeline_sha256(dir: &Path) -> Result<String> {
    let bytes = files::read_artefact(&dir.join(PIPELINE_FILE), 1 << 32)?;
    Ok(manifest::sha256(&bytes))
}
