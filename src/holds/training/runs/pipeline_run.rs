//! The directory of a fitted pipeline: the scores in its manifest, and the facts about the samples
//! of logs that it was fitted to, if any.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::learned_holds::LearnedHolds;
use super::run_dir::FIT;
use crate::training::scoring::Calibration;
use crate::training::scoring::SuccessRates;
use crate::training::scoring::TargetScores;
use poolcast_base::error::hinted;
use poolcast_base::{files, manifest};
use poolcast_config::MetricName;
use poolcast_pipelines::{FittedPipeline, PIPELINE_FILE};
use poolcast_tensors::TensorSettings;

/// Scores of a fit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitScores {
    /// Scores of each fold, or of the rows after each time cut.
    pub folds: Vec<TargetScores>,
    /// Mean over the folds. `None` without folds.
    pub mean: Option<TargetScores>,
    /// Scores of the rows after all time cuts together. `None` without time cuts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rolling: Option<TargetScores>,
    /// Scores of the held-out rows. `None` without such rows.
    pub validation: Option<TargetScores>,
    /// Scores of further rows, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evaluation: BTreeMap<String, TargetScores>,
}

impl FitScores {
    /// The scores that judge a trial: over all time cuts, else the mean over the folds, else on the
    /// held-out rows. If there are folds, the held-out rows have no influence on the choice.
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

/// Facts about the samples of logs that a pipeline was fitted to, with the calibration.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SampleFit {
    /// Settings of the tensors that the pipeline takes.
    pub tensors: TensorSettings,
    /// Digest of the tensors.
    pub tensors_key: String,
    /// Success rates by hold code on the samples that the pipeline learned from.
    pub rates: SuccessRates,
    /// The holds that the pipeline learned from.
    pub learned: LearnedHolds,
    /// Calibration of the pipeline's logits.
    pub calibration: Calibration,
    /// Root seed.
    pub seed: u64,
}

/// Body of a fit's manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FitSummary {
    /// Scores of the fit.
    #[serde(flatten)]
    pub scores: FitScores,
    /// Facts about the samples. `None` for a pipeline that was fitted to tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleFit>,
    /// SHA-256 of the pipeline's file.
    pub pipeline_sha256: String,
    /// SHA-256 of the file with the predictions for rows that were not learned from.
    pub predictions_sha256: String,
}

/// An opened pipeline that was fitted to samples of logs.
#[derive(Debug)]
pub struct PipelineRun {
    /// Digest of all inputs of the fit.
    pub key: String,
    /// Facts about the samples that it was fitted to.
    pub samples: SampleFit,
    /// The fitted pipeline.
    pub pipeline: FittedPipeline,
    /// SHA-256 of the pipeline's file.
    pub pipeline_sha256: String,
}

impl PipelineRun {
    /// Opens the fit in `dir`.
    ///
    /// # Errors
    /// Fails when the pipeline was fitted to tables, when its model was removed, and when its file
    /// does not match the manifest.
    pub fn open(dir: &Path) -> Result<PipelineRun> {
        let found = manifest::read::<FitSummary>(dir, FIT)?;
        let Some(samples) = found.body.samples else {
            anyhow::bail!(hinted(
                format!("`{}` was fitted to a table, not to logs", dir.display()),
                "use `poolcast predict` for the rows of a table"
            ));
        };
        let path = dir.join(PIPELINE_FILE);
        let pipeline = FittedPipeline::open(dir)?;
        ensure!(
            pipeline_sha256(dir)? == found.body.pipeline_sha256,
            hinted(
                format!("`{}` does not match its manifest", path.display()),
                "fit it again with `poolcast sweep run`"
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

/// The SHA-256 of the pipeline's file in `dir`.
///
/// # Errors
/// Fails when the file does not exist.
pub fn pipeline_sha256(dir: &Path) -> Result<String> {
    let bytes = files::read_artefact(&dir.join(PIPELINE_FILE), 1 << 32)?;
    Ok(manifest::sha256(&bytes))
}
