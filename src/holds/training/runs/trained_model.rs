//! Trained models of any kind: a network, a pipeline fitted to samples of logs, or an ensemble.
//! Opens a model and predicts samples and holds with it.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use super::ensemble_summary::EnsembleSummary;
use super::hold_encoder::EncodedHolds;
use super::learned_holds::LearnedHolds;
use super::learned_network::LearnedNetwork;
use super::pipeline_run::PipelineRun;
use super::run::TrainingRun;
use super::run_dir::{ENSEMBLE, FIT, MODEL_FILE};
use super::sample_features::{hold_features, sample_features};
use crate::training::scoring::Calibration;
use crate::training::scoring::RollingPredictions;
use crate::training::scoring::SuccessRates;
use poolcast_base::error::hinted;
use poolcast_base::stats::logit;
use poolcast_base::{files, manifest};
use poolcast_models::Device;
use poolcast_models::EngineChoice;
use poolcast_pipelines::{FittedPipeline, PIPELINE_FILE};
use poolcast_tables::FeatureTable;
use poolcast_tensors::{Dataset, Split, TensorSettings};

/// Maximum odds, for or against success, with which a member votes in an ensemble. The limit keeps
/// one member from outvoting all others.
const MAX_VOTE_ODDS: f64 = 500.0;

/// Maximum size of an ensemble's manifest, in bytes.
const MAX_MANIFEST_BYTES: u64 = 16 << 20;

/// An opened trained model of any kind.
#[derive(Debug)]
pub struct TrainedModel {
    /// Name of the architecture or of the pipeline, or `ensemble`.
    pub name: String,
    /// Digest of all inputs of the model.
    pub key: String,
    /// Settings of the tensors that the model takes.
    pub tensors: TensorSettings,
    /// Digest of the tensors that the model was trained on.
    pub tensors_key: String,
    /// Success rates by hold code on the samples that the model learned from.
    pub rates: SuccessRates,
    /// The holds that the model learned from.
    pub learned: LearnedHolds,
    /// Calibration of the model's logits.
    pub calibration: Calibration,
    /// Root seed.
    pub seed: u64,
    /// Name of the model's file.
    pub file: &'static str,
    /// SHA-256 of the model's file.
    pub sha256: String,
    /// Directory of the model.
    dir: PathBuf,
    predictor: Predictor,
}

/// The trained predictor itself.
#[derive(Debug)]
enum Predictor {
    Network(Box<LearnedNetwork>),
    Pipeline(Box<FittedPipeline>),
    /// Members, whose voted logits are averaged.
    Ensemble(Vec<TrainedModel>),
}

impl TrainedModel {
    /// Opens the run, the fitted pipeline, or the ensemble in `dir`.
    ///
    /// # Errors
    /// Fails when the training did not finish, when a file does not match its manifest, and for a
    /// pipeline that was fitted to tables.
    pub fn open(dir: &Path) -> Result<TrainedModel> {
        // An unreadable manifest is not reported here. `TrainingRun::open` below reads it whole and
        // reports the error.
        let format = manifest::format_name(dir).ok().flatten();
        if format.as_deref() == Some(FIT.name) {
            return Ok(TrainedModel::from_pipeline(dir, PipelineRun::open(dir)?));
        }
        if format.as_deref() == Some(ENSEMBLE.name) {
            return TrainedModel::open_ensemble(dir);
        }
        Ok(TrainedModel::from_network(dir, TrainingRun::open(dir)?))
    }

    fn from_network(dir: &Path, run: TrainingRun) -> TrainedModel {
        let summary = run.summary;
        TrainedModel {
            name: run.model.architecture.name().to_owned(),
            key: run.key,
            tensors: summary.tensors,
            tensors_key: summary.tensors_key,
            rates: summary.rates,
            learned: summary.learned,
            calibration: run.calibration,
            seed: summary.training.seed,
            file: MODEL_FILE,
            sha256: summary.model_sha256,
            dir: dir.to_owned(),
            predictor: Predictor::Network(Box::new(LearnedNetwork {
                model: run.model,
                static_range: summary.static_range,
            })),
        }
    }

    fn from_pipeline(dir: &Path, run: PipelineRun) -> TrainedModel {
        let samples = run.samples;
        TrainedModel {
            name: run.pipeline.pipeline.clone(),
            key: run.key,
            tensors: samples.tensors,
            tensors_key: samples.tensors_key,
            rates: samples.rates,
            learned: samples.learned,
            calibration: samples.calibration,
            seed: samples.seed,
            file: PIPELINE_FILE,
            sha256: run.pipeline_sha256,
            dir: dir.to_owned(),
            predictor: Predictor::Pipeline(Box::new(run.pipeline)),
        }
    }

    fn open_ensemble(dir: &Path) -> Result<TrainedModel> {
        let found = manifest::read::<EnsembleSummary>(dir, ENSEMBLE)?;
        let bytes = files::read_artefact(&dir.join(manifest::FILE), MAX_MANIFEST_BYTES)?;
        let EnsembleSummary {
            members, samples, ..
        } = found.body;
        let mut models = Vec::with_capacity(members.len());
        for member in members {
            // Nested ensembles are rejected, so that opening one always ends.
            let path = member.dir(dir);
            let is_ensemble = manifest::format_name(&path)?.as_deref() == Some(ENSEMBLE.name);
            let hint = "build the ensemble again with `poolcast sweep evaluate DIR`";
            let message = || format!("`{}` is not a member of its ensemble", path.display());
            ensure!(!is_ensemble, hinted(message(), hint));

            let model = TrainedModel::open(&path)?;
            // A replaced member would change the answers of the ensemble without notice.
            let is_same = model.sha256 == member.sha256 && model.tensors == samples.tensors;
            ensure!(is_same, hinted(message(), hint));
            models.push(model);
        }
        ensure!(
            !models.is_empty(),
            "the ensemble in `{}` has no members",
            dir.display()
        );

        Ok(TrainedModel {
            name: ENSEMBLE.name.to_owned(),
            key: found.key,
            tensors: samples.tensors,
            tensors_key: samples.tensors_key,
            rates: samples.rates,
            learned: samples.learned,
            calibration: samples.calibration,
            seed: samples.seed,
            file: manifest::FILE,
            sha256: manifest::sha256(&bytes),
            dir: dir.to_owned(),
            predictor: Predictor::Ensemble(models),
        })
    }

    /// Members of an ensemble. Empty for a model of another kind.
    #[cfg(test)]
    pub(crate) fn members(&self) -> &[TrainedModel] {
        match &self.predictor {
            Predictor::Ensemble(members) => members,
            Predictor::Network(_) | Predictor::Pipeline(_) => &[],
        }
    }

    /// The vote of this model as a member of an ensemble: its calibrated `logit`, clamped to
    /// [`MAX_VOTE_ODDS`].
    pub(crate) fn voted_logit(&self, logit: f32) -> f32 {
        let most = MAX_VOTE_ODDS.ln();
        let read = f64::from(logit) / self.calibration.temperature;
        read.clamp(-most, most) as f32
    }

    /// Reads the predictions for samples that were not learned from.
    ///
    /// # Errors
    /// Fails when the file is missing or does not match the manifest.
    pub fn rolling_predictions(&self) -> Result<RollingPredictions> {
        RollingPredictions::read(&self.dir)
    }

    /// Returns the model with its networks computed by `engine` on `device`.
    ///
    /// # Errors
    /// Fails when the engine does not support the architecture or the device.
    pub fn computed_by(self, engine: EngineChoice, device: &Device) -> Result<TrainedModel> {
        let predictor = match self.predictor {
            Predictor::Network(network) => Predictor::Network(Box::new(LearnedNetwork {
                model: network.model.computed_by(engine, device)?,
                static_range: network.static_range,
            })),
            Predictor::Ensemble(members) => {
                let computed = |member: TrainedModel| member.computed_by(engine, device);
                Predictor::Ensemble(members.into_iter().map(computed).collect::<Result<_>>()?)
            }
            pipeline @ Predictor::Pipeline(_) => pipeline,
        };
        Ok(TrainedModel { predictor, ..self })
    }

    /// The logits of the samples of one split, `[n]`.
    pub(crate) fn split_logits(&self, dataset: &Dataset, split: Split) -> Result<Vec<f32>> {
        match &self.predictor {
            Predictor::Network(network) => network.split_logits(dataset, split),
            Predictor::Pipeline(pipeline) => {
                success_logits(pipeline, &sample_features(dataset, split)?)
            }
            Predictor::Ensemble(members) => {
                mean_logits(members, |member| member.split_logits(dataset, split))
            }
        }
    }

    /// The logits of `holds`, `[n]`.
    pub(crate) fn hold_logits(&self, holds: &EncodedHolds) -> Result<Vec<f32>> {
        match &self.predictor {
            Predictor::Network(network) => network.hold_logits(holds),
            Predictor::Pipeline(pipeline) => {
                let table = hold_features(&self.tensors, &holds.codes, &holds.statics);
                success_logits(pipeline, &table)
            }
            Predictor::Ensemble(members) => {
                mean_logits(members, |member| member.hold_logits(holds))
            }
        }
    }

    /// Returns true if the model uses static features.
    pub(crate) fn takes_statics(&self) -> bool {
        match &self.predictor {
            Predictor::Network(network) => network.model.shape.s > 0,
            Predictor::Pipeline(_) => true,
            Predictor::Ensemble(members) => members.iter().any(TrainedModel::takes_statics),
        }
    }
}

impl TrainedModel {
    /// Returns true if the model reads outcome tokens.
    pub(crate) fn takes_tokens(&self) -> bool {
        match &self.predictor {
            Predictor::Network(network) => network.model.architecture.takes_tokens(),
            Predictor::Pipeline(_) => false,
            Predictor::Ensemble(members) => members.iter().any(TrainedModel::takes_tokens),
        }
    }
}

/// The mean over `members` of their voted logits, `[n]`.
fn mean_logits(
    members: &[TrainedModel],
    logits_of: impl Fn(&TrainedModel) -> Result<Vec<f32>>,
) -> Result<Vec<f32>> {
    let mut voted = Vec::with_capacity(members.len());
    for member in members {
        let mut logits = logits_of(member)?;
        for logit in &mut logits {
            *logit = member.voted_logit(*logit);
        }
        voted.push(logits);
    }
    Ok(mean_of_columns(&voted))
}

/// The row-wise mean of columns of equal length.
pub(crate) fn mean_of_columns(columns: &[Vec<f32>]) -> Vec<f32> {
    let rows = columns.first().map_or(0, Vec::len);
    let mut means = Vec::with_capacity(rows);
    for row in 0..rows {
        let sum: f32 = columns.iter().map(|column| column[row]).sum();
        means.push(sum / columns.len() as f32);
    }
    means
}

/// The logit of success, the second of two classes, that `pipeline` predicts for each row.
fn success_logits(pipeline: &FittedPipeline, table: &FeatureTable) -> Result<Vec<f32>> {
    let probabilities = pipeline.predict(table)?;
    Ok(probabilities
        .chunks_exact(2)
        .map(|both| logit(both[1]))
        .collect())
}
