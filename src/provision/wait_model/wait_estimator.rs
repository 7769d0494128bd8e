//! Predicts how long a successor would wait, or how long after its predecessor's end it would
//! start. The predictor is a network on snapshots, or a set of pipelines on features.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use super::episodes::EpisodeSplit;
use super::expert_training::{ExpertTask, learn_experts};
use super::feature_pipelines::{FeaturePipelineTask, FeaturePipelines, FeatureRow, FeatureRows};
use super::learning_state::LearningEpoch;
use super::network_training::{LearningStep, LearningTask, LearningWatch, NetworkTraining, learn};
use super::submission_replay::gap_h;
use crate::model_inputs::{SNAPSHOT_COLUMNS, SNAPSHOTS};
use crate::samples::WaitSamples;
use poolcast_base::parallel::map_items;
use poolcast_base::stats::mean;
use poolcast_config::{WaitModelName, WaitModelTarget};
use poolcast_published::series::{
    BatchGradient, DropoutSeed, FrozenNetwork, SeriesDesign, SeriesKind, SeriesNetwork,
};
use poolcast_published::{ColumnScales, NetworkScales, ScaledNetwork, WaitLoss};
use poolcast_tables::NumberLoss;

/// Known inputs at a decision time.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeInputs<'a> {
    /// Features `[f]`.
    pub(super) features: &'a [f32],
    /// Snapshots `[144, 42]`.
    pub(super) snapshots: &'a [f32],
    /// Remaining time of the predecessor, in seconds.
    pub(super) left_s: i64,
}

impl TimeInputs<'_> {
    /// Returns the remaining time in hours.
    fn left_h(self) -> f64 {
        self.left_s as f64 / 3600.0
    }
}

/// A model that predicts a number.
#[derive(Debug)]
pub(super) struct WaitEstimator {
    /// The predicted quantity.
    pub(super) target: WaitModelTarget,
    pub(super) learned: EstimatorParts,
}

/// Predictor of an estimator.
#[derive(Debug)]
pub(super) enum EstimatorParts {
    /// Pipelines on the features.
    Features(FeaturePipelines),
    /// A network over the snapshots.
    Snapshots(ScaledNetwork),
}

impl WaitEstimator {
    /// Returns the number of parameters of the network; `None` for pipelines.
    pub(super) fn parameter_count(&self) -> Option<usize> {
        match &self.learned {
            EstimatorParts::Features(_) => None,
            EstimatorParts::Snapshots(network) => Some(network.parameter_count()),
        }
    }

    /// Returns true if the predictor reads snapshots.
    pub(super) fn takes_snapshots(&self) -> bool {
        matches!(self.learned, EstimatorParts::Snapshots(_))
    }

    /// Returns the number of gaps that a head on this estimator receives.
    pub(super) fn head_inputs(&self) -> usize {
        match &self.learned {
            EstimatorParts::Features(pipelines) => pipelines.len(),
            EstimatorParts::Snapshots(network) => network.inner_output_count(),
        }
    }

    /// Predicts one value per quantile, in hours.
    ///
    /// # Errors
    /// Fails for inputs of another shape.
    pub(super) fn outputs_h(&self, inputs: TimeInputs<'_>) -> Result<Vec<f64>> {
        match &self.learned {
            EstimatorParts::Features(pipelines) => {
                pipelines.outputs_h(inputs.features, inputs.left_h())
            }
            EstimatorParts::Snapshots(network) => network.outputs(inputs.snapshots),
        }
    }

    /// Returns the gaps that a head on this estimator receives, in hours. They are the gaps
    /// expected for a submission now, one per output; for a mixture, one per output of each of its
    /// networks.
    ///
    /// # Errors
    /// Fails for inputs of another shape.
    pub(super) fn expected_gaps_h(&self, inputs: TimeInputs<'_>) -> Result<Vec<f64>> {
        let mut predicted_h = match &self.learned {
            EstimatorParts::Features(_) => self.outputs_h(inputs)?,
            EstimatorParts::Snapshots(network) => network.inner_outputs(inputs.snapshots)?,
        };
        if self.target == WaitModelTarget::Wait {
            let left_h = inputs.left_h();
            predicted_h
                .iter_mut()
                .for_each(|predicted_h| *predicted_h -= left_h);
        }
        Ok(predicted_h)
    }
}

/// Training data and target of an estimator.
pub(super) struct EstimatorTask<'a> {
    pub(super) samples: &'a WaitSamples,
    pub(super) split: &'a EpisodeSplit,
    pub(super) target: WaitModelTarget,
    /// Quantiles of the wait; one output each.
    pub(super) quantiles: &'a [f64],
}

impl EstimatorTask<'_> {
    /// Returns the target of a row, in hours.
    pub(super) fn target_h(&self, row: usize) -> f64 {
        match self.target {
            WaitModelTarget::Wait => self.samples.wait_s[row] as f64 / 3600.0,
            WaitModelTarget::Reward => gap_h(self.samples, row),
        }
    }

    /// Returns the loss for a network of this kind. The losses for the reward are as published.
    fn loss(&self, kind: SeriesKind) -> WaitLoss {
        match (self.target, kind) {
            (WaitModelTarget::Wait, _) => WaitLoss::Pinball {
                quantiles: self.quantiles.to_vec(),
            },
            (WaitModelTarget::Reward, SeriesKind::Mixture) => WaitLoss::Squared,
            (WaitModelTarget::Reward, _) => WaitLoss::Absolute,
        }
    }

    /// Fits one pipeline per quantile of the wait, or one for the mean of the reward.
    ///
    /// # Errors
    /// Fails like [`FeaturePipelines::fit`].
    pub(super) fn learn_pipelines(
        &self,
        name: WaitModelName,
        parameters: &BTreeMap<String, Value>,
        seed: u64,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<WaitEstimator> {
        let samples = self.samples;
        let rows = self.split.learned_rows();
        let moment = |row: &usize| FeatureRow {
            features: samples.features(*row),
            left_h: samples.left_s[*row] as f64 / 3600.0,
        };
        let learned = FeatureRows {
            names: &samples.description.feature_names,
            rows: rows.iter().map(moment).collect(),
            targets_h: rows.iter().map(|row| self.target_h(*row)).collect(),
        };
        let pinball = |quantile: &f64| NumberLoss::Pinball {
            quantile: *quantile,
        };
        let (losses, has_left_column) = match self.target {
            WaitModelTarget::Wait => (self.quantiles.iter().map(pinball).collect(), false),
            WaitModelTarget::Reward => (vec![NumberLoss::Squared], true),
        };
        let task = FeaturePipelineTask {
            name,
            parameters,
            losses: &losses,
            has_left_column,
            seed,
            stop,
        };
        let pipelines = FeaturePipelines::fit(&task, &learned)?;
        Ok(WaitEstimator {
            target: self.target,
            learned: EstimatorParts::Features(pipelines),
        })
    }

    /// Trains a network. Keeps the epoch with the lowest mean loss on the held-back windows.
    ///
    /// # Errors
    /// Fails like [`learn`].
    pub(super) fn learn_network(
        &self,
        kind: SeriesKind,
        training: NetworkTraining<'_>,
        watch: &LearningWatch<'_>,
    ) -> Result<(WaitEstimator, Vec<LearningEpoch>)> {
        let settings = training.settings;
        let loss = self.loss(kind);
        let outputs = match self.target {
            WaitModelTarget::Wait => self.quantiles.len(),
            WaitModelTarget::Reward => 1,
        };
        let design = SeriesDesign {
            kind,
            size: training.size,
            frames: SNAPSHOTS,
            columns: SNAPSHOT_COLUMNS,
            outputs,
        };
        let rows = self.split.learned_rows();
        let snapshots = SnapshotRows {
            task: self,
            scales: self.scales(&rows),
            seed: settings.seed,
            loss,
        };

        let gradient = |step: &LearningStep<'_>| snapshots.gradient(step);
        let mut network = SeriesNetwork::new(design, settings.seed, training.device)?;
        // Once the joint training has begun, its checkpoint contains the result of the first stage.
        if kind == SeriesKind::Mixture && !watch.checkpoint.is_file() {
            let experts = ExpertTask {
                split: self.split,
                gradient: &gradient,
                mean_loss: &|rows, network| snapshots.mean_loss_h(rows, network),
                settings,
            };
            learn_experts(&experts, &mut network, watch)?;
        }

        let held_back = self.split.held_back_rows();
        let task = LearningTask {
            rows: &rows,
            gradient: &gradient,
            judge: &|network: &FrozenNetwork| snapshots.mean_loss_h(&held_back, network),
            refresh_steps: None,
            settings,
        };
        let (history, weights) = learn(&task, network, watch)?;
        let estimator = WaitEstimator {
            target: self.target,
            learned: EstimatorParts::Snapshots(ScaledNetwork::new(
                design,
                snapshots.scales,
                &weights,
            )?),
        };
        Ok((estimator, history))
    }

    fn scales(&self, rows: &[usize]) -> NetworkScales {
        let inputs = rows.iter().map(|row| self.samples.snapshots(*row));
        let targets = rows.iter().map(|row| vec![self.target_h(*row) as f32]);
        NetworkScales {
            inputs: ColumnScales::of(SNAPSHOT_COLUMNS, inputs),
            target: ColumnScales::of(1, targets),
        }
    }
}

/// The learning problem of a network: normalised rows, and the loss.
struct SnapshotRows<'a> {
    task: &'a EstimatorTask<'a>,
    scales: NetworkScales,
    seed: u64,
    loss: WaitLoss,
}

impl SnapshotRows<'_> {
    fn input(&self, row: usize) -> Vec<f32> {
        let mut input = self.task.samples.snapshots(row);
        self.scales.inputs.normalise(&mut input);
        input
    }

    /// Returns the normalised target of a row.
    fn target(&self, row: usize) -> f64 {
        let mut target = [self.task.target_h(row) as f32];
        self.scales.target.normalise(&mut target);
        f64::from(target[0])
    }

    fn gradient(&self, step: &LearningStep<'_>) -> Result<BatchGradient> {
        let inputs: Vec<Vec<f32>> = map_items(step.rows, |row| self.input(*row));
        let slices: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        let dropout = DropoutSeed {
            seed: self.seed,
            step: step.step,
        };
        let rows = step.rows;
        let mut found =
            step.network
                .gradient(&slices, Some(dropout), &|place, outputs, slopes| {
                    self.loss.slopes(outputs, self.target(rows[place]), slopes)
                })?;
        found.loss *= self.loss_unit();
        Ok(found)
    }

    /// Returns the value of a normalised loss of 1, in hours or squared hours.
    fn loss_unit(&self) -> f64 {
        let deviation = self.scales.target.deviation();
        match self.loss {
            WaitLoss::Squared => deviation * deviation,
            WaitLoss::Absolute | WaitLoss::Pinball { .. } => deviation,
        }
    }

    /// Returns the mean loss of `rows`, in hours or squared hours.
    fn mean_loss_h(&self, rows: &[usize], network: &FrozenNetwork) -> Result<f64> {
        let losses = map_items(rows, |row| {
            let outputs = network.outputs(&self.input(*row))?;
            let mut slopes = vec![0.0; outputs.len()];
            Ok(self.loss.slopes(&outputs, self.target(*row), &mut slopes))
        });
        let losses: Vec<f64> = losses.into_iter().collect::<Result<_>>()?;
        Ok(mean(&losses) * self.loss_unit())
    }
}
