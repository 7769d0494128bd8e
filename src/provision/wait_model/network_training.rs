//! Training loop of the networks: epochs with checkpoints, and early stopping on the evaluation
//! result.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::learning_state::{LearningEpoch, LearningState, watched_epochs};
use super::training_checkpoint::{CHECKPOINT_FORMAT, TargetWeights};
use poolcast_config::WaitModelSize;
use poolcast_models::optim::{
    AdamSettings, BatchProgress, Checkpoint, EarlyStopping, LearnedEpoch, Learner, LossGradient,
    NonFiniteLoss, TrainError, TrainingLoop, WatchedEpochs,
};
use poolcast_models::{AlignedFloats, Device, RateSchedule};
use poolcast_published::series::{BatchGradient, FrozenNetwork, SeriesNetwork};

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
    pub(super) size: WaitModelSize,
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

/// Trains the network, or resumes from the checkpoint. Returns all epochs, and the weights of the
/// best.
///
/// The result depends only on the task and the kind of device. It does not depend on the thread
/// count, nor on when a training was stopped or killed.
///
/// # Errors
/// Fails with [`TrainingStopped`] when the listener stops the training, after writing the
/// checkpoint. Fails with [`NonFiniteLoss`] when a loss is not finite.
///
/// [`TrainingStopped`]: poolcast_models::optim::TrainingStopped
pub(super) fn learn(
    task: &LearningTask<'_>,
    network: SeriesNetwork,
    watch: &LearningWatch<'_>,
) -> Result<(Vec<LearningEpoch>, Vec<f32>)> {
    ensure!(
        !task.rows.is_empty(),
        "the windows have no row to learn from"
    );
    let checkpoint = Checkpoint {
        path: watch.checkpoint,
        key: watch.key,
        format: &CHECKPOINT_FORMAT,
    };
    let mut state = start_or_resume(checkpoint, network)?;
    let training = TrainingLoop {
        batch_size: task.settings.batch_size,
        seed: task.settings.seed,
        adam: AdamSettings {
            learning_rate: task.settings.learning_rate,
            weight_decay: 0.0,
            clip_grad_norm: 0.0,
        },
        schedule: RateSchedule::Constant,
        epochs: task.settings.stopping.epochs,
        checkpoint: Some(checkpoint),
        interval: watch.interval,
    };
    let mut learner = TaskLearner {
        task,
        watch,
        target: None,
        gradient: AlignedFloats::default(),
    };
    training.train(&mut learner, &mut state)?;
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

/// A learning problem in training, with one network.
struct TaskLearner<'a> {
    task: &'a LearningTask<'a>,
    watch: &'a LearningWatch<'a>,
    /// Target network; `None` if the task does not use one, and after an update of its weights.
    target: Option<FrozenNetwork>,
    /// Gradient of the last batch.
    gradient: AlignedFloats,
}

impl Learner for TaskLearner<'_> {
    type Network = SeriesNetwork;
    type Epoch = LearningEpoch;
    type State = TargetWeights;

    fn row_counts(&self) -> Vec<usize> {
        vec![self.task.rows.len()]
    }

    fn gradient(
        &mut self,
        state: &LearningState,
        number: usize,
        rows: &[usize],
    ) -> Result<LossGradient<'_>> {
        if self.task.refresh_steps.is_some() && self.target.is_none() {
            self.target = Some(target_network(state)?);
        }
        let rows: Vec<usize> = rows.iter().map(|&row| self.task.rows[row]).collect();
        let at_work = &state.networks[number];
        let found = (self.task.gradient)(&LearningStep {
            network: &at_work.network,
            earlier: self.target.as_ref(),
            rows: &rows,
            step: at_work.adam.step,
        })?;
        self.gradient = found.values;
        Ok(LossGradient {
            loss_sum: found.loss,
            values: &self.gradient,
        })
    }

    fn judge(
        &mut self,
        state: &mut LearningState,
        learned: &LearnedEpoch,
    ) -> Result<LearningEpoch, TrainError> {
        let LearnedEpoch {
            epoch, train_loss, ..
        } = *learned;
        let judged_loss = (self.task.judge)(&state.networks[0].network.freeze()?)?;
        if !judged_loss.is_finite() {
            return Err(NonFiniteLoss { epoch }.into());
        }
        let losses = state.history.iter().map(|epoch| epoch.judged_loss);
        Ok(LearningEpoch {
            epoch,
            train_loss,
            judged_loss,
            is_best: WatchedEpochs::of_loss(losses.chain([judged_loss])).is_last_best(),
        })
    }

    fn is_best(epoch: &LearningEpoch) -> bool {
        epoch.is_best
    }

    fn is_over(&self, history: &[LearningEpoch]) -> bool {
        let stopping = &self.task.settings.stopping;
        stopping.is_over(&watched_epochs(history))
    }

    fn after_batch(
        &mut self,
        state: &mut LearningState,
        progress: &BatchProgress,
    ) -> Result<ControlFlow<()>> {
        // Q-learning: update the target network after a fixed number of steps.
        let at_work = &state.networks[0];
        let steps = self.task.refresh_steps;
        if steps.is_some_and(|steps| at_work.adam.step.is_multiple_of(steps)) {
            state.learner = TargetWeights(at_work.network.flat_weights().to_vec());
            self.target = None;
        }
        Ok((self.watch.listener)(LearningUpdate::Batch {
            epoch: progress.epoch,
            epochs: self.task.settings.stopping.epochs,
            batch: progress.batch,
            batches: progress.batches,
        }))
    }

    fn after_epoch(&mut self, history: &[LearningEpoch]) -> Result<()> {
        if let Some(epoch) = history.last() {
            // A request to stop is ignored here: the listener can repeat it after the next batch.
            let _ = (self.watch.listener)(LearningUpdate::Epoch(epoch));
        }
        Ok(())
    }
}

/// Creates the target network.
fn target_network(state: &LearningState) -> Result<FrozenNetwork> {
    let network = &state.networks[0].network;
    let target =
        SeriesNetwork::with_weights(*network.design(), &state.learner.0, network.device())?;
    target.freeze()
}
