//! Training loop of the networks: epochs with checkpoints, and early stopping on the evaluation
//! result.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Error, Result, ensure};
use rand::seq::SliceRandom as _;

use super::learning_state::{LearningEpoch, LearningState, watched_epochs};
use super::training_checkpoint::{CHECKPOINT_FORMAT, TargetWeights};
use poolcast_models::Device;
use poolcast_models::optim::{
    AdamSettings, Checkpoint, EarlyStopping, NonFiniteLoss, TrainingStopped, WatchedEpochs,
};
use poolcast_models::series::{BatchGradient, FrozenNetwork, NetworkSize, SeriesNetwork};

/// Settings for training a network.
#[derive(Debug, Clone)]
pub(super) struct LearningSettings {
    /// The rule that ends the training.
    pub(super) stopping: EarlyStopping,
    pub(super) learning_rate: f64,
    pub(super) batch_size: usize,
    pub(super) seed: u64,
}

/// A network's size and device, and the settings of its training.
#[derive(Debug, Clone, Copy)]
pub(super) struct NetworkTraining<'a> {
    pub(super) settings: &'a LearningSettings,
    pub(super) size: NetworkSize,
    pub(super) device: &'a Device,
}

/// Progress of a training.
#[derive(Debug)]
pub enum LearningUpdate<'a> {
    /// The training has learned from a batch.
    Batch {
        /// Current epoch, from 1.
        epoch: usize,
        /// Maximum number of epochs.
        epochs: usize,
        /// Finished batches of this epoch.
        batch: usize,
        /// Batches per epoch.
        batches: usize,
    },
    /// A pipeline is being fitted.
    Fit,
    /// One network of a mixture starts to learn alone, or resumes, or was already trained.
    Expert {
        /// Number of the network, from 1.
        expert: usize,
        /// Number of networks in the mixture.
        experts: usize,
    },
    /// All networks of the mixture start to learn jointly.
    Together,
    /// An epoch has ended.
    Epoch(&'a LearningEpoch),
}

/// Input of one gradient computation: a batch and the current network.
pub(super) struct LearningStep<'a> {
    pub(super) network: &'a SeriesNetwork,
    /// Target network, as of the last refresh; `None` if the task does not use one.
    pub(super) earlier: Option<&'a FrozenNetwork>,
    /// The samples of the batch.
    pub(super) rows: &'a [usize],
    /// Step number, counted over all epochs.
    pub(super) step: u64,
}

/// A learning problem: its samples, its gradient and its evaluation.
pub(super) struct LearningTask<'a> {
    /// The samples.
    pub(super) rows: &'a [usize],
    /// Computes the gradient of a batch.
    pub(super) gradient: &'a (dyn Fn(&LearningStep<'_>) -> Result<BatchGradient> + Sync),
    /// Evaluates the network on the windows that choose the epoch. Lower is better.
    pub(super) judge: &'a (dyn Fn(&FrozenNetwork) -> Result<f64> + Sync),
    /// Steps between two updates of the target network; `None` if the task does not use one.
    pub(super) refresh_steps: Option<u64>,
    pub(super) settings: &'a LearningSettings,
}

/// Checkpoint file and progress listener of a training.
pub(super) struct LearningWatch<'a> {
    /// Path of the checkpoint file.
    pub(super) checkpoint: &'a Path,
    /// Key that identifies this training.
    pub(super) key: &'a str,
    /// Interval of checkpoints within an epoch.
    pub(super) interval: Duration,
    /// Receives each batch and epoch, and may stop the training after a batch.
    pub(super) listener: &'a (dyn Fn(LearningUpdate<'_>) -> ControlFlow<()> + Sync),
}

impl<'a> LearningWatch<'a> {
    fn checkpoint(&self) -> Checkpoint<'a> {
        Checkpoint {
            path: self.checkpoint,
            key: self.key,
            format: &CHECKPOINT_FORMAT,
        }
    }
}

/// Trains the network, or resumes from the checkpoint. Returns all epochs, and the weights of the
/// best.
///
/// The result depends only on the task and the kind of device. It does not depend on the thread
/// count, nor on when a training was stopped or killed.
///
/// # Errors
/// Fails with [`TrainingStopped`] when the listener stops the training, after writing the
/// checkpoint. Fails with [`NonFiniteLoss`] when a loss is not finite.
pub(super) fn learn(
    task: &LearningTask<'_>,
    network: SeriesNetwork,
    watch: &LearningWatch<'_>,
) -> Result<(Vec<LearningEpoch>, Vec<f32>)> {
    ensure!(
        !task.rows.is_empty(),
        "the windows have no row to learn from"
    );
    let checkpoint = watch.checkpoint();
    let mut state = start_or_resume(checkpoint, network)?;
    let mut last_written = Instant::now();
    while !task
        .settings
        .stopping
        .is_over(&watched_epochs(&state.history))
    {
        learn_epoch(task, &mut state, watch, &mut last_written)?;

        let epoch = judge_epoch(task, &state)?;
        let is_best = epoch.is_best;
        state.end_epoch(epoch, is_best);
        checkpoint.write(&state)?;
        last_written = Instant::now();
        if let Some(epoch) = state.history.last() {
            // A request to stop is ignored here: the listener can repeat it after the next batch.
            let _ = (watch.listener)(LearningUpdate::Epoch(epoch));
        }
    }
    let best = state.networks.pop().context("there is no network")?.best;
    Ok((state.history, best))
}

/// Returns the state in the checkpoint, or the initial state of `network` if there is none.
fn start_or_resume(checkpoint: Checkpoint<'_>, network: SeriesNetwork) -> Result<LearningState> {
    if checkpoint.path.is_file() {
        return checkpoint.read(vec![network]);
    }
    let target = TargetWeights(network.flat_weights().to_vec());
    Ok(LearningState::new(vec![network], target))
}

/// Returns the current epoch with its evaluation result.
fn judge_epoch(task: &LearningTask<'_>, state: &LearningState) -> Result<LearningEpoch> {
    let judged_loss = (task.judge)(&state.networks[0].network.freeze()?)?;
    if !judged_loss.is_finite() {
        return Err(non_finite(state));
    }
    let losses = state.history.iter().map(|epoch| epoch.judged_loss);
    Ok(LearningEpoch {
        epoch: state.epoch(),
        train_loss: state.loss_sum / task.rows.len() as f64,
        judged_loss,
        is_best: WatchedEpochs::of_loss(losses.chain([judged_loss])).is_last_best(),
    })
}

fn non_finite(state: &LearningState) -> Error {
    let epoch = state.epoch();
    NonFiniteLoss { epoch }.into()
}

/// Trains to the end of the current epoch.
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
    let epoch = state.epoch();
    let order = shuffled(task.rows, settings.seed, epoch);
    let batches: Vec<&[usize]> = order.chunks(settings.batch_size).collect();
    // After a resume, the first batches of the epoch are already done.
    let mut earlier = earlier_network(task, state)?;

    for rows in batches.iter().skip(state.batch) {
        let at_work = &mut state.networks[0];
        let found = (task.gradient)(&LearningStep {
            network: &at_work.network,
            earlier: earlier.as_ref(),
            rows,
            step: at_work.adam.step,
        })?;
        let weights = at_work.network.flat_weights_mut();
        at_work.adam.step(weights, &found.values, &adam_settings);
        let step = at_work.adam.step;
        state.batch += 1;
        state.loss_sum += found.loss;
        if !state.loss_sum.is_finite() {
            return Err(non_finite(state));
        }
        // Q-learning: update the target network after a fixed number of steps.
        if task
            .refresh_steps
            .is_some_and(|steps| step.is_multiple_of(steps))
        {
            state.kept = TargetWeights(state.networks[0].network.flat_weights().to_vec());
            earlier = earlier_network(task, state)?;
        }

        let batch = state.batch;
        let batches = batches.len();
        let update = LearningUpdate::Batch {
            epoch,
            epochs: settings.stopping.epochs,
            batch,
            batches,
        };
        let stops = (watch.listener)(update).is_break();
        if stops || last_written.elapsed() >= watch.interval {
            watch.checkpoint().write(state)?;
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

/// Returns the sample order of an epoch. It follows from the seed and the epoch number.
fn shuffled(rows: &[usize], seed: u64, epoch: usize) -> Vec<usize> {
    let mut order = rows.to_vec();
    let mut generator = poolcast_base::seed::generator(seed, "shuffle", &[epoch as i64]);
    order.shuffle(&mut generator);
    order
}

/// Creates the target network, if the task uses one.
fn earlier_network(
    task: &LearningTask<'_>,
    state: &LearningState,
) -> Result<Option<FrozenNetwork>> {
    if task.refresh_steps.is_none() {
        return Ok(None);
    }
    let network = &state.networks[0].network;
    let network = SeriesNetwork::with_weights(*network.design(), &state.kept.0, network.device())?;
    Ok(Some(network.freeze()?))
}
