//! Predictions of a training's models for samples that they did not learn from, and the file that
//! stores them beside the run.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::training::runs::{PREDICTIONS_FILE, PREDICTIONS_FORMAT, check_predictions};
use poolcast_base::manifest;
use poolcast_base::shard::{self, Shard, ShardColumn};
use poolcast_base::stats::sigmoid;

/// Logits of the models of several time cuts, pooled `[p]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RollingPredictions {
    /// Indices of the samples, over train, validate and test.
    pub samples: Vec<u32>,
    /// Clusters of the samples' jobs, by their number within the tensors.
    pub clusters: Vec<u32>,
    /// Indices of the cuts whose models made the predictions.
    pub cuts: Vec<u32>,
    /// Logits, before any calibration.
    pub logits: Vec<f32>,
    /// True for samples that ended in success.
    pub labels: Vec<bool>,
}

/// The prediction of one cut's model for one sample.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "the fields are those of RollingPredictions")]
pub struct RollingPrediction {
    pub sample: usize,
    pub cluster: u32,
    pub cut: usize,
    pub logit: f32,
    pub label: bool,
}

impl RollingPredictions {
    /// Adds the prediction of one cut's model for one sample.
    pub fn push(&mut self, prediction: RollingPrediction) {
        self.samples.push(prediction.sample as u32);
        self.clusters.push(prediction.cluster);
        self.cuts.push(prediction.cut as u32);
        self.logits.push(prediction.logit);
        self.labels.push(prediction.label);
    }

    /// Selects the predictions of the cuts for which `is_wanted` returns true.
    pub(crate) fn select(&self, is_wanted: impl Fn(usize) -> bool) -> RollingPredictions {
        let mut selected = RollingPredictions::default();
        for prediction in self.iter().filter(|prediction| is_wanted(prediction.cut)) {
            selected.push(prediction);
        }
        selected
    }

    /// The predictions, one by one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RollingPrediction> {
        (0..self.samples.len()).map(|at| RollingPrediction {
            sample: self.samples[at] as usize,
            cluster: self.clusters[at],
            cut: self.cuts[at] as usize,
            logit: self.logits[at],
            label: self.labels[at],
        })
    }

    /// The uncalibrated probabilities of success.
    pub fn probabilities(&self) -> Vec<f64> {
        let probability = |logit: &f32| sigmoid(f64::from(*logit));
        self.logits.iter().map(probability).collect()
    }

    /// The uncalibrated probabilities of failure and success, `[p, 2]`.
    pub fn class_probabilities(&self) -> Vec<f64> {
        let both = |success: f64| [1.0 - success, success];
        self.probabilities().into_iter().flat_map(both).collect()
    }

    /// Writes the predictions to the run in `dir`. Returns the digest of the file.
    pub fn write(&self, dir: &Path) -> Result<String> {
        let labels: Vec<u8> = self.labels.iter().map(|label| u8::from(*label)).collect();
        let columns = vec![
            ("sample".to_owned(), ShardColumn::vector(&self.samples)),
            ("cluster".to_owned(), ShardColumn::vector(&self.clusters)),
            ("cut".to_owned(), ShardColumn::vector(&self.cuts)),
            ("logit".to_owned(), ShardColumn::vector(&self.logits)),
            ("label".to_owned(), ShardColumn::vector(&labels)),
        ];
        let bytes = shard::encode(PREDICTIONS_FORMAT, &(), columns)?;
        poolcast_base::files::write_atomic(&dir.join(PREDICTIONS_FILE), &bytes)?;
        Ok(manifest::sha256(&bytes))
    }

    /// Reads the predictions of the run in `dir`.
    ///
    /// # Errors
    /// Fails when the file is missing or does not match the manifest.
    pub fn read(dir: &Path) -> Result<RollingPredictions> {
        let shard = Shard::open(&dir.join(PREDICTIONS_FILE), PREDICTIONS_FORMAT)?;
        check_predictions(dir, shard.bytes())?;
        let labels: &[u8] = shard.column("label")?;
        let predictions = RollingPredictions {
            samples: shard.column("sample")?.to_vec(),
            clusters: shard.column("cluster")?.to_vec(),
            cuts: shard.column("cut")?.to_vec(),
            logits: shard.column("logit")?.to_vec(),
            labels: labels.iter().map(|label| *label == 1).collect(),
        };
        let lengths = [
            predictions.clusters.len(),
            predictions.cuts.len(),
            predictions.logits.len(),
            predictions.labels.len(),
        ];
        ensure!(
            lengths == [predictions.samples.len(); 4],
            "the columns of `{}` have different lengths",
            shard.path().display()
        );
        Ok(predictions)
    }
}
