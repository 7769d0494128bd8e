//! Action values (submit now, or wait) learned by deep Q-learning (Mnih et al. 2015) with a replay
//! memory and a target network.
//!
//! The problem is optimal stopping. The samples contain the cost of a submission in each row.
//! Waiting costs nothing and leads to the next row. So the memory has both actions of each row, and
//! no simulator is needed. Rewards are not discounted: an episode is finite, and an interruption
//! costs the same at any time.

use anyhow::Result;

use super::column_scales::ColumnScales;
use super::episodes::{Episode, EpisodeSplit};
use super::learning_state::LearningEpoch;
use super::network_training::{LearningStep, LearningTask, LearningWatch, NetworkTraining, learn};
use super::scaled_network::{NetworkScales, ScaledNetwork};
use super::submission_replay::{gap_cost_h, gap_h, replayed_gaps_h};
use crate::samples::WaitSamples;
use poolcast_base::stats::mean;
use poolcast_models::series::{
    BatchGradient, FrozenNetwork, SeriesDesign, SeriesKind, SeriesNetwork,
};

/// Training steps between two updates of the target network.
const REFRESH_STEPS: u64 = 100;

/// Output index of each action.
const KEEP_WAITING: usize = 0;
const SUBMIT: usize = 1;

/// A network for the values of both actions. A value is a negative cost, in hours.
#[derive(Debug)]
pub(super) struct ActionValues {
    pub(super) network: ScaledNetwork,
}

impl ActionValues {
    /// Returns true if submitting is worth at least as much as waiting.
    pub(super) fn submits(&self, features: &[f32], left_s: i64) -> Result<bool> {
        let values = self.network.outputs(&network_input(features, left_s))?;
        Ok(values[SUBMIT] >= values[KEEP_WAITING])
    }
}

/// Builds the network's input: the features, then the predecessor's remaining time in hours.
fn network_input(features: &[f32], left_s: i64) -> Vec<f32> {
    let mut input = features.to_vec();
    input.push(left_s as f32 / 3600.0);
    input
}

/// Replay memory: input and submission cost of each row at which a decision is possible.
struct ReplayMemory<'a> {
    samples: &'a WaitSamples,
    scales: NetworkScales,
    cost_ratio: f64,
}

impl ReplayMemory<'_> {
    fn input(&self, row: usize) -> Vec<f32> {
        let mut input = network_input(self.samples.features(row), self.samples.left_s[row]);
        self.scales.inputs.normalise(&mut input);
        input
    }

    /// Returns the value of a submission, normalised.
    fn submission_value(&self, row: usize) -> f32 {
        let mut value = [value_h(self.samples, row, self.cost_ratio)];
        self.scales.target.normalise(&mut value);
        value[0]
    }

    /// Returns the normalised value of waiting in `row`. If the predecessor has ended in the next
    /// row, the successor is submitted there in any case.
    fn continuation_value(&self, row: usize, earlier: &FrozenNetwork) -> Result<f32> {
        let next = row + 1;
        if self.samples.left_s[next] == 0 {
            return Ok(self.submission_value(next));
        }
        let values = earlier.outputs(&self.input(next))?;
        Ok(values[KEEP_WAITING].max(values[SUBMIT]))
    }

    /// Returns the gradient of a batch. The loss is the distance of both values from their targets.
    fn gradient(&self, step: &LearningStep<'_>) -> Result<BatchGradient> {
        let inputs: Vec<Vec<f32>> = step.rows.iter().map(|row| self.input(*row)).collect();
        let mut targets = Vec::with_capacity(inputs.len());
        for row in step.rows {
            let continue_value = match step.earlier {
                Some(earlier) => self.continuation_value(*row, earlier)?,
                None => self.submission_value(*row),
            };
            targets.push([continue_value, self.submission_value(*row)]);
        }
        let slices: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        step.network
            .gradient(&slices, None, &|place, outputs, slopes| {
                huber_slopes(outputs, &targets[place], slopes)
            })
    }

    /// Returns the mean cost of `episodes`, in hours.
    fn cost_h(&self, episodes: &[Episode], network: &FrozenNetwork) -> Result<f64> {
        let submits = |row: usize| {
            let values = network.outputs(&self.input(row));
            values.is_ok_and(|values| values[SUBMIT] >= values[KEEP_WAITING])
        };
        let gaps_h = replayed_gaps_h(self.samples, episodes, submits);
        let costs_h = gaps_h
            .iter()
            .map(|gap_h| gap_cost_h(self.cost_ratio, *gap_h));
        Ok(mean(&costs_h.collect::<Vec<f64>>()))
    }
}

/// Returns the value of a submission in `row`, in hours.
fn value_h(samples: &WaitSamples, row: usize, cost_ratio: f64) -> f32 {
    -gap_cost_h(cost_ratio, gap_h(samples, row)) as f32
}

/// Computes Huber's loss: quadratic near the target, so that values settle, and linear far from it.
/// Writes the derivatives to `slopes`.
fn huber_slopes(outputs: &[f32], targets: &[f32], slopes: &mut [f32]) -> f64 {
    let mut sum = 0.0;
    for ((output, target), slope) in outputs.iter().zip(targets).zip(slopes) {
        let error = output - target;
        *slope = error.clamp(-1.0, 1.0);
        let size = f64::from(error.abs());
        sum += if size <= 1.0 {
            0.5 * size * size
        } else {
            size - 0.5
        };
    }
    sum
}

/// Learns from the learned episodes of `split`. Keeps the weights of the epoch whose decisions cost
/// least on the held-back ones.
///
/// # Errors
/// Fails like [`learn`].
pub(super) fn learn_action_values(
    samples: &WaitSamples,
    split: &EpisodeSplit,
    cost_ratio: f64,
    training: NetworkTraining<'_>,
    watch: &LearningWatch<'_>,
) -> Result<(ActionValues, Vec<LearningEpoch>)> {
    let mut rows = Vec::new();
    for episode in &split.learned {
        // The last row is at the predecessor's end: nothing is left to decide there.
        rows.extend(episode.running..episode.rows.end - 1);
    }
    let columns = samples.description.feature_names.len() + 1;
    let inputs = rows
        .iter()
        .map(|row| network_input(samples.features(*row), samples.left_s[*row]));
    let values = rows
        .iter()
        .map(|row| vec![value_h(samples, *row, cost_ratio)]);
    let memory = ReplayMemory {
        samples,
        scales: NetworkScales {
            inputs: ColumnScales::of(columns, inputs),
            target: ColumnScales::of(1, values),
        },
        cost_ratio,
    };

    let design = SeriesDesign {
        kind: SeriesKind::Dense,
        size: training.size,
        frames: 1,
        columns,
        outputs: 2,
    };
    let task = LearningTask {
        rows: &rows,
        gradient: &|step: &LearningStep<'_>| memory.gradient(step),
        judge: &|network: &FrozenNetwork| memory.cost_h(&split.held_back, network),
        refresh_steps: Some(REFRESH_STEPS),
        settings: training.settings,
    };
    let network = SeriesNetwork::new(design, training.settings.seed, training.device)?;
    let (history, weights) = learn(&task, network, watch)?;
    let network = ScaledNetwork::new(design, memory.scales, &weights)?;
    Ok((ActionValues { network }, history))
}
