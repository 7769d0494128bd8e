//! The training loop: epochs of batches in shuffled order, each with a gradient and an optimiser
//! step, until the learner's rule ends the training. A checkpoint is written after each epoch, at
//! intervals within an epoch, and when the learner stops the training.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::Result;
use rand::seq::SliceRandom as _;
use serde::Serialize;

use super::adam::AdamSettings;
use super::checkpoint::{Checkpoint, LearnerState};
use super::flat_network::FlatNetwork;
use super::stopped::{NonFiniteLoss, TrainError, TrainingStopped};
use super::training_state::TrainingState;
use crate::RateSchedule;

/// A learning problem: its rows, the gradient of its loss, and the evaluation of its networks.
pub trait Learner: Send {
    /// The networks that learn.
    type Network: FlatNetwork + Send;
    /// The result of an epoch.
    type Epoch: Clone + Serialize + Send;
    /// What the learner keeps in its checkpoint.
    type State: LearnerState + Send;

    /// The number of rows from which each network learns.
    fn row_counts(&self) -> Vec<usize>;

    /// Computes the sum of the losses of `rows`, and the gradient of their mean loss. The rows are
    /// indices below the row count of the network with the index `number`.
    ///
    /// # Errors
    /// Fails when the device fails.
    fn gradient(
        &mut self,
        state: &StateOf<Self>,
        number: usize,
        rows: &[usize],
    ) -> Result<LossGradient<'_>>;

    /// Evaluates the networks after an epoch.
    ///
    /// # Errors
    /// Fails with [`NonFiniteLoss`] if the evaluation is NaN or infinite.
    fn judge(
        &mut self,
        state: &mut StateOf<Self>,
        learned: &LearnedEpoch,
    ) -> Result<Self::Epoch, TrainError>;

    /// Returns true if an epoch, the last one, is the best so far.
    fn is_best(epoch: &Self::Epoch) -> bool;

    /// Returns true if the training is over after `history`.
    fn is_over(&self, history: &[Self::Epoch]) -> bool;

    /// Called before the first batch of an epoch, and when an epoch is resumed.
    fn begin_epoch(&mut self) {}

    /// Called after each batch. Breaks to stop the training.
    ///
    /// # Errors
    /// Fails when the device fails.
    fn after_batch(
        &mut self,
        state: &mut StateOf<Self>,
        progress: &BatchProgress,
    ) -> Result<ControlFlow<()>>;

    /// Called after each epoch, when its checkpoint is on disk.
    ///
    /// # Errors
    /// Fails when a file cannot be written.
    fn after_epoch(&mut self, history: &[Self::Epoch]) -> Result<()>;
}

/// The state of the training of a learner `L`.
pub type StateOf<L> =
    TrainingState<<L as Learner>::Network, <L as Learner>::Epoch, <L as Learner>::State>;

/// Loss and gradient of a batch.
#[derive(Debug)]
pub struct LossGradient<'a> {
    /// Sum of the losses of the rows.
    pub loss_sum: f64,
    /// Gradient of the mean loss, in the order of the network's flat vector.
    pub values: &'a [f32],
}

/// An epoch after its last batch.
#[derive(Debug, Clone, Copy)]
pub struct LearnedEpoch {
    /// Number of the epoch, from 1.
    pub epoch: usize,
    /// Mean loss of the rows, each measured before the step that learns from it.
    pub train_loss: f64,
    /// Rows learned from since the epoch began or was resumed.
    pub rows: usize,
}

/// Progress within an epoch.
#[derive(Debug, Clone, Copy)]
pub struct BatchProgress {
    /// Number of the current epoch, from 1.
    pub epoch: usize,
    /// Batches of this epoch so far.
    pub batch: usize,
    /// Batches in an epoch.
    pub batches: usize,
    /// Mean loss over the epoch so far.
    pub loss: f64,
}

/// The settings of a training loop, and its checkpoint, if it has one.
#[derive(Debug, Clone, Copy)]
pub struct TrainingLoop<'a> {
    /// Rows per step.
    pub batch_size: usize,
    /// Seed of the order of the rows.
    pub seed: u64,
    /// Settings of the optimiser.
    pub adam: AdamSettings,
    /// Course of the learning rate over `epochs` epochs.
    pub schedule: RateSchedule,
    /// Number of epochs of the schedule.
    pub epochs: usize,
    /// The checkpoint; `None` for a training in memory.
    pub checkpoint: Option<Checkpoint<'a>>,
    /// Interval between checkpoints within an epoch.
    pub interval: Duration,
}

impl TrainingLoop<'_> {
    /// Trains from `state` until the learner's rule ends the training.
    ///
    /// The result depends only on the learner and on the settings. It does not depend on the thread
    /// count, nor on when a training was stopped or killed.
    ///
    /// # Errors
    /// Fails with [`TrainError::Stopped`] when the learner stops the training, after writing the
    /// checkpoint. Fails with [`TrainError::NonFinite`] when a loss is not finite.
    pub fn train<L: Learner>(
        &self,
        learner: &mut L,
        state: &mut StateOf<L>,
    ) -> Result<(), TrainError> {
        let mut last_written = Instant::now();
        while !learner.is_over(&state.history) {
            // Runs inside the thread pool. A thread outside the pool would hand over each batch and
            // sleep until the batch is done.
            let epoch = rayon::scope(|_| {
                learner.begin_epoch();
                let learned = self.train_epoch(learner, state, &mut last_written)?;
                learner.judge(state, &learned)
            })?;
            let is_best = L::is_best(&epoch);
            state.end_epoch(epoch, is_best);
            self.write_checkpoint(state)?;
            last_written = Instant::now();
            learner.after_epoch(&state.history)?;
        }
        Ok(())
    }

    /// Trains each network to the end of the current epoch, from the batch at which `state` is.
    fn train_epoch<L: Learner>(
        &self,
        learner: &mut L,
        state: &mut StateOf<L>,
        last_written: &mut Instant,
    ) -> Result<LearnedEpoch, TrainError> {
        let epoch = state.epoch();
        let counts = learner.row_counts().into_iter();
        let orders: Vec<Vec<usize>> = counts
            .map(|count| shuffled_rows(count, self.seed, epoch))
            .collect();
        let batches = network_batches(&orders, self.batch_size);

        // A resumed epoch has learned from its earlier batches, so the mean loss counts them.
        let resumed = state.batch.min(batches.len());
        let rows_before: usize = batches[..resumed].iter().map(|(_, rows)| rows.len()).sum();
        let mut rows_seen = rows_before;
        for (number, rows) in &batches[resumed..] {
            let gradient = learner.gradient(state, *number, rows)?;
            let at_work = &mut state.networks[*number];
            let weights = at_work.network.flat_weights_mut();
            let steps = self.epochs * orders[*number].len().div_ceil(self.batch_size);
            let factor = self.schedule.factor(at_work.adam.step, steps);
            let adam = self.adam.with_rate_factor(factor);
            at_work.adam.step(weights, gradient.values, &adam);

            state.batch += 1;
            state.loss_sum += gradient.loss_sum;
            if !state.loss_sum.is_finite() {
                return Err(NonFiniteLoss { epoch }.into());
            }

            rows_seen += rows.len();
            let progress = BatchProgress {
                epoch,
                batch: state.batch,
                batches: batches.len(),
                loss: state.loss_sum / rows_seen as f64,
            };
            let stops = learner.after_batch(state, &progress)?.is_break();
            if stops || last_written.elapsed() >= self.interval {
                self.write_checkpoint(state)?;
                *last_written = Instant::now();
            }
            if stops {
                return Err(progress.stopped().into());
            }
        }
        Ok(LearnedEpoch {
            epoch,
            train_loss: state.loss_sum / rows_seen as f64,
            rows: rows_seen - rows_before,
        })
    }

    fn write_checkpoint<N, E, K>(&self, state: &TrainingState<N, E, K>) -> Result<()>
    where
        N: FlatNetwork,
        E: Clone + Serialize,
        K: LearnerState,
    {
        self.checkpoint
            .map_or(Ok(()), |checkpoint| checkpoint.write(state))
    }
}

/// Cuts the rows of each network into batches of at most `size` rows, beside the number of the network.
fn network_batches(orders: &[Vec<usize>], size: usize) -> Vec<(usize, &[usize])> {
    let numbered = orders.iter().enumerate();
    numbered
        .flat_map(|(number, order)| order.chunks(size).map(move |rows| (number, rows)))
        .collect()
}

impl BatchProgress {
    fn stopped(&self) -> TrainingStopped {
        TrainingStopped {
            epoch: self.epoch,
            batch: self.batch,
            batches: self.batches,
        }
    }
}

/// Shuffles the indices of `count` rows. The order depends only on the seed and the epoch.
fn shuffled_rows(count: usize, seed: u64, epoch: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    let mut generator = poolcast_base::seed::generator(seed, "shuffle", &[epoch as i64]);
    order.shuffle(&mut generator);
    order
}
