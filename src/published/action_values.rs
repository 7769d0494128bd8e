//! Action values (submit now, or wait) learned by deep Q-learning (Mnih et al. 2015) with a replay
//! memory and a target network.
//!
//! The problem is optimal stopping. The samples contain the cost of a submission in each row.
//! Waiting costs nothing and leads to the next row. So the memory has both actions of each row, and
//! no simulator is needed. Rewards are not discounted: an episode is finite, and an interruption
//! costs the same at any time.

use anyhow::Result;

use super::column_scales::ColumnScales;
use super::scaled_network::{NetworkScales, ScaledNetwork};
use super::series::{BatchGradient, FrozenNetwork, SeriesDesign, SeriesKind, SeriesNetwork};
use poolcast_base::stats::gap_cost_h;
use poolcast_config::WaitModelSize;

/// Output index of each action.
const KEEP_WAITING: usize = 0;
const SUBMIT: usize = 1;

/// A network for the values of both actions. A value is a negative cost, in hours.
#[derive(Debug)]
pub struct ActionValues {
    /// Network with an output for each action.
    pub network: ScaledNetwork,
}

impl ActionValues {
    /// Returns true if submitting is worth at least as much as waiting.
    ///
    /// # Errors
    /// Fails for features of another length.
    pub fn submits(&self, features: &[f32], left_s: i64) -> Result<bool> {
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

/// Rows at which a decision is possible. The last row of each episode is at the predecessor's end.
#[derive(Clone, Copy)]
pub struct ReplayRows<'a> {
    /// Returns the features of a row.
    pub features: &'a (dyn Fn(usize) -> &'a [f32] + Sync),
    /// Remaining time of the predecessor in each row, in seconds.
    pub left_s: &'a [i64],
    /// Gap after a submission in each row, in seconds.
    pub gap_s: &'a [i64],
}

impl ReplayRows<'_> {
    fn network_input(&self, row: usize) -> Vec<f32> {
        network_input((self.features)(row), self.left_s[row])
    }

    /// Returns the value of a submission in `row`, in hours.
    fn value_h(&self, row: usize, cost_ratio: f64) -> f32 {
        -gap_cost_h(cost_ratio, self.gap_s[row] as f64 / 3600.0) as f32
    }
}

/// Replay memory: input and submission cost of each row at which a decision is possible.
pub struct ReplayMemory<'a> {
    rows: ReplayRows<'a>,
    scales: NetworkScales,
    cost_ratio: f64,
}

impl<'a> ReplayMemory<'a> {
    /// Steps between two updates of the target network.
    pub const REFRESH_STEPS: u64 = 100;

    /// Creates the memory, with the scales of the rows `learned`. An input has `columns` numbers.
    pub fn new(
        rows: ReplayRows<'a>,
        learned: &[usize],
        columns: usize,
        cost_ratio: f64,
    ) -> ReplayMemory<'a> {
        let inputs = learned.iter().map(|row| rows.network_input(*row));
        let values = learned
            .iter()
            .map(|row| vec![rows.value_h(*row, cost_ratio)]);
        ReplayMemory {
            rows,
            scales: NetworkScales {
                inputs: ColumnScales::of(columns, inputs),
                target: ColumnScales::of(1, values),
            },
            cost_ratio,
        }
    }

    /// Returns the design of a network for the values.
    pub fn design(&self, size: WaitModelSize) -> SeriesDesign {
        SeriesDesign {
            kind: SeriesKind::Dense,
            size,
            frames: 1,
            columns: self.scales.inputs.column_count(),
            outputs: 2,
        }
    }

    /// Returns the values that the network with these weights has learned.
    ///
    /// # Errors
    /// Fails if `weights` do not fit the design.
    pub fn learned(self, size: WaitModelSize, weights: &[f32]) -> Result<ActionValues> {
        let network = ScaledNetwork::new(self.design(size), self.scales, weights)?;
        Ok(ActionValues { network })
    }

    fn input(&self, row: usize) -> Vec<f32> {
        let mut input = self.rows.network_input(row);
        self.scales.inputs.normalise(&mut input);
        input
    }

    /// Returns the value of a submission, normalised.
    fn submission_value(&self, row: usize) -> f32 {
        let mut value = [self.rows.value_h(row, self.cost_ratio)];
        self.scales.target.normalise(&mut value);
        value[0]
    }

    /// Returns the normalised value of waiting in `row`. If the predecessor has ended in the next
    /// row, the successor is submitted there in any case.
    fn continuation_value(&self, row: usize, earlier: &FrozenNetwork) -> Result<f32> {
        let next = row + 1;
        if self.rows.left_s[next] == 0 {
            return Ok(self.submission_value(next));
        }
        let values = earlier.outputs(&self.input(next))?;
        Ok(values[KEEP_WAITING].max(values[SUBMIT]))
    }

    /// Returns the gradient of a batch. The loss is the distance of both values from their targets.
    /// `earlier` is the target network.
    ///
    /// # Errors
    /// Fails if the networks are not of the memory's design.
    pub fn gradient(
        &self,
        rows: &[usize],
        network: &SeriesNetwork,
        earlier: Option<&FrozenNetwork>,
    ) -> Result<BatchGradient> {
        let inputs: Vec<Vec<f32>> = rows.iter().map(|row| self.input(*row)).collect();
        let mut targets = Vec::with_capacity(inputs.len());
        for row in rows {
            let continue_value = match earlier {
                Some(earlier) => self.continuation_value(*row, earlier)?,
                None => self.submission_value(*row),
            };
            targets.push([continue_value, self.submission_value(*row)]);
        }
        let slices: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        network.gradient(&slices, None, &|place, outputs, slopes| {
            huber_slopes(outputs, &targets[place], slopes)
        })
    }

    /// Returns true if `network` finds submitting in `row` worth at least as much as waiting.
    pub fn submits(&self, row: usize, network: &FrozenNetwork) -> bool {
        let values = network.outputs(&self.input(row));
        values.is_ok_and(|values| values[SUBMIT] >= values[KEEP_WAITING])
    }
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
