//! The state of a training between two batches.

use super::adam::Adam;
use super::flat_network::FlatNetwork;

/// A network in training, with its optimiser.
#[derive(Debug)]
pub struct NetworkState<N> {
    /// The network.
    pub network: N,
    /// Its optimiser.
    pub adam: Adam,
    /// Weights of the best epoch so far, in the order of the network's flat vector.
    pub best: Vec<f32>,
}

impl<N: FlatNetwork> NetworkState<N> {
    /// The state before the first batch.
    pub fn new(network: N) -> NetworkState<N> {
        NetworkState {
            adam: Adam::new(network.flat_weights().len()),
            best: network.flat_weights().to_vec(),
            network,
        }
    }
}

/// Everything that a training needs to continue: networks `N`, epochs `E`, and what else its
/// learner keeps, `K`. The only randomness of the loop is the order of an epoch's rows, which
/// depends only on the seed and the epoch. The state of that generator is therefore the epoch and
/// the position in it.
#[derive(Debug)]
pub struct TrainingState<N, E, K> {
    /// The networks, which learn one after another in each epoch.
    pub networks: Vec<NetworkState<N>>,
    /// Completed epochs.
    pub history: Vec<E>,
    /// What else the learner keeps in its checkpoint.
    pub learner: K,
    /// Batches that the current epoch has learned from, over all networks in their order.
    pub batch: usize,
    /// Sum of the losses of the rows of these batches.
    pub loss_sum: f64,
}

impl<N: FlatNetwork, E, K> TrainingState<N, E, K> {
    /// The state before the first batch.
    pub fn new(networks: Vec<N>, learner: K) -> TrainingState<N, E, K> {
        TrainingState {
            networks: networks.into_iter().map(NetworkState::new).collect(),
            history: Vec::new(),
            learner,
            batch: 0,
            loss_sum: 0.0,
        }
    }

    /// The number of the current epoch, from 1.
    pub fn epoch(&self) -> usize {
        self.history.len() + 1
    }

    /// Completes the current epoch. If it is the best, keeps a copy of its weights.
    pub fn end_epoch(&mut self, epoch: E, is_best: bool) {
        if is_best {
            for state in &mut self.networks {
                state.best.copy_from_slice(state.network.flat_weights());
            }
        }
        self.history.push(epoch);
        self.batch = 0;
        self.loss_sum = 0.0;
    }

    /// Gives every network the weights of its best epoch.
    pub fn restore_best(&mut self) {
        for NetworkState { network, best, .. } in &mut self.networks {
            network.flat_weights_mut().copy_from_slice(best);
        }
    }
}
