//! A trained model of any kind, open: a network or a pipeline that was fitted to samples of logs,
//! and what it says of samples and of holds.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::answer_thresholds::AnswerThresholds;
use super::baselines::SuccessRates;
use super::calibration::Calibration;
use super::learned_holds::LearnedHolds;
use super::pipeline_run::PipelineRun;
use super::rolling_predictions::RollingPredictions;
use super::run::TrainingRun;
use super::run_dir::{FIT, MODEL_FILE};
use super::samples::SplitSamples;
use super::score::score_samples;
use super::scores::logit;
use super::static_range::StaticRange;
use crate::manifest;
use crate::models::{Device, Model, SampleBatch};
use crate::pipelines::{FittedPipeline, PIPELINE_FILE};
use crate::tables::{FeatureTable, hold_features, sample_features};
use crate::tensors::{Dataset, SplitSide, TensorSettings};

/// A trained model of any kind.
#[derive(Debug)]
pub struct TrainedModel {
    /// The name of its architecture, or of the pipeline.
    pub name: String,
    /// The digest of everything it was made from.
    pub key: String,
    /// How the samples were made that it knows.
    pub tensors: TensorSettings,
    /// The digest of the tensors it was trained on.
    pub tensors_key: String,
    /// Success by hold code on the samples that it learned from.
    pub rates: SuccessRates,
    /// What those are.
    pub learned: LearnedHolds,
    /// How its logits are read.
    pub calibration: Calibration,
    /// The root seed.
    pub seed: u64,
    /// The name of its file.
    pub file: &'static str,
    /// SHA-256 of its file.
    pub sha256: String,
    /// Where it is.
    dir: PathBuf,
    learner: Learner,
}

/// What was trained.
#[derive(Debug)]
enum Learner {
    Network(Box<LearnedNetwork>),
    Pipeline(Box<FittedPipeline>),
}

/// A network, and between what the static features lay that it has seen.
#[derive(Debug)]
struct LearnedNetwork {
    model: Model,
    static_range: StaticRange,
}

/// Holds as they are encoded for a model: `n` of them.
#[derive(Debug, Clone, Copy)]
pub struct EncodedHolds<'a> {
    /// `[n, m, j]`.
    pub codes: &'a [u8],
    /// `[n, s]`; empty for a model that takes none.
    pub statics: &'a [f32],
}

impl TrainedModel {
    /// Opens the run, or the fit of a pipeline, in `dir`.
    ///
    /// # Errors
    /// Fails when the training did not finish, when a file is not the one its manifest speaks of,
    /// and for a pipeline that was fitted to tables.
    pub fn open(dir: &Path) -> Result<TrainedModel> {
        // What is wrong with a manifest that cannot be read is said where it is read whole.
        let format = manifest::format_name(dir).ok().flatten();
        if format.as_deref() == Some(FIT.name) {
            return Ok(TrainedModel::from_pipeline(dir, PipelineRun::open(dir)?));
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
            learner: Learner::Network(Box::new(LearnedNetwork {
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
            learner: Learner::Pipeline(Box::new(run.pipeline)),
        }
    }

    /// From which probability on its answers were right with each of `precisions`, on holds that
    /// came after what was learned.
    ///
    /// # Errors
    /// Fails when what it predicted of them is not there.
    pub fn answer_thresholds<const N: usize>(
        &self,
        precisions: [f64; N],
    ) -> Result<[AnswerThresholds; N]> {
        let predictions = self.rolling_predictions()?;
        let find = |precision| AnswerThresholds::find(&predictions, &self.calibration, precision);
        Ok(precisions.map(find))
    }

    /// What was predicted of samples that were not learned from.
    ///
    /// # Errors
    /// Fails when that is not there, or is not what the manifest speaks of.
    pub fn rolling_predictions(&self) -> Result<RollingPredictions> {
        RollingPredictions::read(&self.dir)
    }

    /// The same with its network, if it is one, on `device`.
    pub fn on_device(self, device: &Device) -> TrainedModel {
        let learner = match self.learner {
            Learner::Network(network) => Learner::Network(Box::new(LearnedNetwork {
                model: network.model.on_device(device),
                static_range: network.static_range,
            })),
            pipeline => pipeline,
        };
        TrainedModel { learner, ..self }
    }

    /// The logits of the samples of one side, `[n]`.
    pub(super) fn side_logits(&self, dataset: &Dataset, side: SplitSide) -> Result<Vec<f32>> {
        match &self.learner {
            Learner::Network(network) => {
                let LearnedNetwork {
                    model,
                    static_range,
                } = &**network;
                let samples = SplitSamples::new(dataset, &[side], model.shape)?;
                score_samples(model, &samples, static_range)
            }
            Learner::Pipeline(pipeline) => {
                success_logits(pipeline, &sample_features(dataset, side)?)
            }
        }
    }

    /// The logits of some holds, `[n]`.
    pub(super) fn hold_logits(&self, holds: &EncodedHolds<'_>) -> Result<Vec<f32>> {
        match &self.learner {
            Learner::Network(network) => {
                let LearnedNetwork {
                    model,
                    static_range,
                } = &**network;
                let mut statics = holds.statics.to_vec();
                static_range.clip(&mut statics);
                model.logits(&SampleBatch::new(&model.shape, holds.codes, &statics)?)
            }
            Learner::Pipeline(pipeline) => {
                let table = hold_features(&self.tensors, holds.codes, holds.statics);
                success_logits(pipeline, &table)
            }
        }
    }

    /// Whether static features have a part in what it says.
    pub(super) fn takes_statics(&self) -> bool {
        match &self.learner {
            Learner::Network(network) => network.model.shape.s > 0,
            Learner::Pipeline(_) => true,
        }
    }
}

/// What `pipeline` says of success, the second of two classes, for each row.
fn success_logits(pipeline: &FittedPipeline, table: &FeatureTable) -> Result<Vec<f32>> {
    let probabilities = pipeline.probabilities(table)?;
    Ok(probabilities
        .chunks_exact(2)
        .map(|both| logit(both[1]))
        .collect())
}
