//! Finished trainings (runs): writes and opens the model and manifest in a run directory.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::learned_holds::LearnedHolds;
use super::learned_network::{LearnedNetwork, TrainedNetwork};
use super::metrics::{TrainingMetrics, TrainingStatus};
use super::model_file::{open_model, write_model};
use super::run_dir::{CHECKPOINT_FILE, METRICS_FILE, RUN_FORMAT};
use crate::config::TrainingSettings;
use crate::training::fitting::StaticRange;
use crate::training::fitting::judged_epochs;
use crate::training::fitting::{Epoch, PooledScores};
use crate::training::fitting::{shared_bit_count, static_feature_count};
use crate::training::scoring::Calibration;
use crate::training::scoring::SuccessRates;
use poolcast_base::error::{hinted, unavailable};
use poolcast_base::{files, manifest};
use poolcast_models::{Model, ModelShape};
use poolcast_tensors::{self as tensors, Dataset};

/// Hint for a run that cannot be used.
const RETRAIN: &str = "train it again into another directory with `poolcast train TENSORS -o RUN`";

/// Body of a run's manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunSummary {
    /// Shapes of the weights.
    pub shape: ModelShape,
    /// Settings of the tensors that the model takes.
    pub tensors: tensors::TensorSettings,
    /// Digest of the tensors that the model was trained on.
    pub tensors_key: String,
    /// Settings of the training.
    pub training: TrainingSettings,
    /// Success rates by hold code on the samples that the model learned from.
    pub rates: SuccessRates,
    /// The holds that the model learned from.
    pub learned: LearnedHolds,
    /// Range of the static features of those samples. Values outside are clipped to its ends.
    pub static_range: StaticRange,
    /// SHA-256 of the model's file.
    pub model_sha256: String,
    /// SHA-256 of the file with the predictions for samples that were not learned from.
    pub predictions_sha256: String,
    /// SHA-256 of the file `metrics.json`.
    pub metrics_sha256: String,
}

/// An opened run.
#[derive(Debug)]
pub struct TrainingRun {
    /// Body of the manifest.
    pub summary: RunSummary,
    /// Digest of all inputs of the run.
    pub key: String,
    /// The model, with the weights of the best epoch.
    pub model: Model,
    /// Calibration of the model's logits.
    pub calibration: Calibration,
    /// Metrics of the training.
    pub metrics: TrainingMetrics,
}

/// A training after its last epoch, ready to be written.
pub(crate) struct FinishedTraining<'a> {
    pub(crate) key: &'a str,
    pub(crate) dataset: &'a Dataset,
    pub(crate) settings: &'a TrainingSettings,
    /// Completed epochs.
    pub(crate) history: Vec<Epoch>,
    pub(crate) trained: TrainedNetwork,
    pub(crate) learned: LearnedHolds,
}

impl FinishedTraining<'_> {
    /// Writes the model, the predictions, the metrics and, last, the manifest. Returns the opened
    /// run.
    pub(crate) fn write(self, dir: &Path) -> Result<TrainingRun> {
        let FinishedTraining {
            dataset,
            settings,
            history,
            trained,
            ..
        } = self;
        let LearnedNetwork {
            model,
            static_range,
        } = trained.network;
        let predictions = trained.predictions;
        let status = end_status(&history, settings);
        let metrics = TrainingMetrics {
            judged: Some(PooledScores::compute(&predictions)),
            calibration: Some(Calibration::fit(&predictions, settings.threshold)),
            ..TrainingMetrics::new(status, &settings.metric, &history)
        };
        let model_sha256 = write_model(dir, &model)?;
        let predictions_sha256 = predictions.write(dir)?;
        metrics.write(dir)?;

        let summary = RunSummary {
            shape: model.shape,
            tensors: dataset.summary.settings.clone(),
            tensors_key: dataset.key.clone(),
            training: settings.clone(),
            rates: SuccessRates::learn(dataset, &self.learned.splits)?,
            learned: self.learned,
            static_range,
            model_sha256,
            predictions_sha256,
            metrics_sha256: metrics_sha256_of(dir)?,
        };
        // The manifest marks the run as complete, so it is written after all other files.
        manifest::write(dir, RUN_FORMAT, self.key, &summary)?;
        TrainingRun::open(dir)
    }
}

impl TrainingRun {
    /// Opens the run in `dir`.
    ///
    /// # Errors
    /// Fails when the training did not finish, when this program knows other static features, and
    /// when the model's file or the metrics file does not match the manifest.
    pub fn open(dir: &Path) -> Result<TrainingRun> {
        let is_unfinished =
            dir.join(CHECKPOINT_FILE).exists() && !dir.join(manifest::FILE).exists();
        ensure!(
            !is_unfinished,
            unavailable(
                format!("the training in `{}` has not finished", dir.display()),
                "continue it with `poolcast train --resume`"
            )
        );

        let found = manifest::read::<RunSummary>(dir, RUN_FORMAT)?;
        let summary = found.body;
        let architecture = summary
            .training
            .architecture()
            .with_context(|| format!("cannot use `{}`", dir.display()))?;
        let known = static_feature_count(architecture, &summary.tensors);
        ensure!(
            summary.shape.s == known,
            unavailable(
                format!(
                    "the model uses {}, but this version computes {known}",
                    poolcast_base::output::counted(summary.shape.s, "static feature")
                ),
                RETRAIN
            )
        );
        let shared_bits = shared_bit_count(architecture, &summary.tensors);
        ensure!(
            summary.shape.shared_bits == shared_bits,
            hinted(
                format!(
                    "the model of `{}` reads {} of what each job shares, but its tensors have {shared_bits}",
                    dir.display(),
                    poolcast_base::output::counted(summary.shape.shared_bits, "bit")
                ),
                RETRAIN
            )
        );
        ensure!(
            summary.static_range.is_of(known),
            "the manifest of `{}` has ranges of other static features",
            dir.display()
        );
        let RunSummary {
            shape,
            model_sha256,
            ..
        } = &summary;
        let model = open_model(dir, architecture, *shape, model_sha256, RETRAIN)?;
        let (metrics, calibration) = open_metrics(dir, &summary.metrics_sha256)?;
        Ok(TrainingRun {
            summary,
            key: found.key,
            model,
            calibration,
            metrics,
        })
    }
}

/// The status of a training that ended with this history and left a model.
fn end_status(history: &[Epoch], settings: &TrainingSettings) -> TrainingStatus {
    if history.len() >= settings.epochs {
        TrainingStatus::Finished
    } else if judged_epochs::is_over(history, settings) {
        TrainingStatus::StoppedEarly
    } else {
        TrainingStatus::TerminatedEarly
    }
}

fn metrics_sha256_of(dir: &Path) -> Result<String> {
    Ok(manifest::sha256(&files::read_artefact(
        &dir.join(METRICS_FILE),
        1 << 30,
    )?))
}

/// Reads `metrics.json` and checks it against the manifest.
fn open_metrics(dir: &Path, sha256: &str) -> Result<(TrainingMetrics, Calibration)> {
    let metrics = TrainingMetrics::read(dir)?;
    let is_known = metrics_sha256_of(dir)? == sha256;
    let calibration = metrics.calibration.filter(|_| is_known).with_context(|| {
        hinted(
            format!(
                "`{}` does not match its manifest",
                dir.join(METRICS_FILE).display()
            ),
            RETRAIN,
        )
    })?;
    Ok((metrics, calibration))
}
