//! The loop in which networks learn: one epoch after the other, with a checkpoint on the way, until
//! what they are judged by improves no more.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Error, Result, ensure};
use rand::seq::SliceRandom as _;
use serde::Serialize;

use super::learning_state::{LearningEpoch, LearningState};
use super::training_checkpoint::{read_checkpoint, write_checkpoint};
use poolcast_models::series::{BatchGradient, FrozenNetwork, SeriesNetwork};
use poolcast_models::optim::{AdamSettings, NonFiniteLoss, TrainingStopped};

/// How a network learns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct LearningSettings {
    /// The most epochs.
    pub(super) epochs: usize,
    /// It ends after so many epochs that did not improve.
    pub(super) earlystop_threshold: usize,
    /// What improves by no more than this is no improvement.
    pub(super) earlystop_min_delta: f64,
    pub(super) learning_rate: f64,
    pub(super) batch_size: usize,
    pub(super) seed: u64,
}

/// How far a training is.
#[derive(Debug)]
pub enum LearningUpdate<'a> {
    /// It has learned from a batch.
    Batch {
        /// The epoch at work, counted from 1.
        epoch: usize,
        /// How many there are at most.
        epochs: usize,
        /// Batches of this epoch so far.
        batch: usize,
        /// Batches in an epoch.
        batches: usize,
    },
    /// A pipeline is at work.
    Fit,
    /// One of the networks of a mixture begins to learn by itself, unless it has done so before.
    Expert {
        /// Which, counted from 1.
        expert: usize,
        /// How many there are.
        experts: usize,
    },
    /// They begin to learn together.
    Together,
    /// An epoch has ended.
    Epoch(&'a LearningEpoch),
}

/// What a network learns from a batch.
pub(super) struct LearningStep<'a> {
    pub(super) network: &'a SeriesNetwork,
    /// The network as it was some steps ago, where that is asked for.
    pub(super) earlier: Option<&'a FrozenNetwork>,
    /// The samples of the batch.
    pub(super) rows: &'a [usize],
    /// Counted over all epochs.
    pub(super) step: u64,
}

/// What is to be learned.
pub(super) struct LearningTask<'a> {
    /// The samples.
    pub(super) rows: &'a [usize],
    /// Finds the gradient of a batch.
    pub(super) gradient: &'a (dyn Fn(&LearningStep<'_>) -> Result<BatchGradient> + Sync),
    /// What comes of the windows that are held back; less is better.
    pub(super) judge: &'a (dyn Fn(&FrozenNetwork) -> Result<f64> + Sync),
    /// After how many steps the earlier network is that of now; `None` where nobody asks for it.
    pub(super) refresh_steps: Option<u64>,
    pub(super) settings: &'a LearningSettings,
}

/// Where checkpoints are, and who watches.
pub(super) struct LearningWatch<'a> {
    /// The file of the checkpoint.
    pub(super) checkpoint: &'a Path,
    /// What tells this training from all others.
    pub(super) key: &'a str,
    /// How often a checkpoint is written within an epoch.
    pub(super) interval: Duration,
    /// Hears of each batch and epoch, and may stop the training after a batch.
    pub(super) listener: &'a (dyn Fn(LearningUpdate<'_>) -> ControlFlow<()> + Sync),
}

/// Learns, from the checkpoint on where there is one; returns the epochs, and the weights of the best.
///
/// The result depends on the task and the kind of device alone: not on threads, and not on where a
/// training was stopped or killed.
///
/// # Errors
/// Fails with [`TrainingStopped`] when the listener wants no more, the checkpoint being written, and
/// with [`NonFiniteLoss`].
pub(super) fn learn(
    task: &LearningTask<'_>,
    network: SeriesNetwork,
    watch: &LearningWatch<'_>,
) -> Result<(Vec<LearningEpoch>, Vec<f32>)> {
    ensure!(
        !task.rows.is_empty(),
        "the windows have no row to learn from"
    );
    let mut state = read_checkpoint(watch.checkpoint, watch.key, network)?;
    let mut last_written = Instant::now();
    while !is_over(&state.history, task.settings) {
        learn_epoch(task, &mut state, watch, &mut last_written)?;

        let judged_loss = (task.judge)(&state.network.freeze()?)?;
        if !judged_loss.is_finite() {
            return Err(non_finite(&state));
        }
        state.end_epoch(task.rows.len(), judged_loss);
        write_checkpoint(watch.checkpoint, watch.key, &state)?;
        last_written = Instant::now();
        if let Some(epoch) = state.history.last() {
            // A wish to stop is heard again after the next batch, if there is one.
            let _ = (watch.listener)(LearningUpdate::Epoch(epoch));
        }
    }
    Ok((state.history, state.best))
}

fn non_finite(state: &LearningState) -> Error {
    let epoch = state.history.len() + 1;
    NonFiniteLoss { epoch }.into()
}

/// Whether the last improvement was too long ago, or all epochs are done.
fn is_over(history: &[LearningEpoch], settings: &LearningSettings) -> bool {
    let mut best = f64::INFINITY;
    let mut since = 0;
    for epoch in history {
        since += 1;
        if epoch.judged_loss < best - settings.earlystop_min_delta {
            best = epoch.judged_loss;
            since = 0;
        }
    }
    history.len() >= settings.epochs || since >= settings.earlystop_threshold
}

/// What is left of an epoch.
fn learn_epoch(
    task: &LearningTask<'_>,
    state: &mut LearningState,
    watch: &LearningWatch<'_>,
    last_written: &mut Instant,
) -> Result<()> {
    let settings = task.settings;
    let adam_settings = AdamSettings {
        learning_rate: settings.learning_rate,
        weight_decay: 0.0,
        clip_grad_norm: 0.0,
    };
    let epoch = state.history.len() + 1;
    let order = shuffled(task.rows, settings.seed, epoch);
    let batches: Vec<&[usize]> = order.chunks(settings.batch_size).collect();
    let mut earlier = earlier_network(task, state)?;

    for rows in batches.iter().skip(state.batch) {
        let found = (task.gradient)(&LearningStep {
            network: &state.network,
            earlier: earlier.as_ref(),
            rows,
            step: state.adam.step,
        })?;
        let weights = state.network.flat_weights_mut();
        state.adam.step(weights, &found.values, &adam_settings);
        state.batch += 1;
        state.loss_sum += found.loss;
        if !state.loss_sum.is_finite() {
            return Err(non_finite(state));
        }
        if task
            .refresh_steps
            .is_some_and(|steps| state.adam.step.is_multiple_of(steps))
        {
            state.earlier = state.network.flat_weights().to_vec();
            earlier = earlier_network(task, state)?;
        }

        let batch = state.batch;
        let batches = batches.len();
        let update = LearningUpdate::Batch {
            epoch,
            epochs: settings.epochs,
            batch,
            batches,
        };
        let stops = (watch.listener)(update).is_break();
        if stops || last_written.elapsed() >= watch.interval {
            write_checkpoint(watch.checkpoint, watch.key, state)?;
            *last_written = Instant::now();
        }
        if stops {
            let stopped = TrainingStopped {
                epoch,
                batch,
                batches,
            };
            return Err(stopped.into());
        }
    }
    Ok(())
}

/// The order in which an epoch goes through the samples. It follows from seed and epoch.
fn shuffled(rows: &[usize], seed: u64, epoch: usize) -> Vec<usize> {
    let mut order = rows.to_vec();
    let mut generator = poolcast_base::seed::generator(seed, "shuffle", &[epoch as i64]);
    order.shuffle(&mut generator);
    order
}

fn earlier_network(
    task: &LearningTask<'_>,
    state: &LearningState,
) -> Result<Option<FrozenNetwork>> {
    if task.refresh_steps.is_none() {
        return Ok(None);
    }
    let design = *state.network.design();
    let network = SeriesNetwork::with_weights(design, &state.earlier, state.network.device())?;
    Ok(Some(network.freeze()?))
}
