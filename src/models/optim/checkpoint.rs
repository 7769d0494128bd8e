//! Checkpoints: one file with everything that a training needs to resume as if it had never
//! stopped. The file is replaced atomically.

use std::path::Path;

use anyhow::{Result, ensure};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::adam::Adam;
use super::flat_network::FlatNetwork;
use super::training_state::{NetworkState, TrainingState};
use poolcast_base::error::hinted;
use poolcast_base::shard::{self, ArtefactFormat, Shard, ShardColumn};

/// The format of a kind of checkpoint.
#[derive(Debug, Clone, Copy)]
pub struct CheckpointFormat {
    /// Name and version of the file.
    pub artefact: ArtefactFormat,
    /// Names of the vectors in the file.
    pub layout: CheckpointLayout,
    /// End of the message that a checkpoint belongs to another training.
    pub other_training: &'static str,
    /// Hint for this message.
    pub hint: &'static str,
}

/// Names of the vectors in a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointLayout {
    /// One network with one part: a vector's name is its group.
    SingleNetwork,
    /// A vector's name has the number of its network, its group and its part.
    NumberedNetworks,
}

/// What a learner keeps in its checkpoint besides the networks and the position in the training.
pub trait LearnerState: Sized {
    /// The part that is written as JSON.
    type Notes: Serialize + DeserializeOwned;

    /// The part that is written as JSON.
    fn notes(&self) -> Self::Notes;

    /// The vectors, with their names in the file.
    fn columns(&self) -> Vec<(String, &[f32])>;

    /// Reads both parts. `networks` is the number of networks of the training.
    ///
    /// # Errors
    /// Fails when a part is missing or has another size.
    fn read(notes: Self::Notes, shard: &Shard, networks: usize) -> Result<Self>;
}

/// Contents of a checkpoint apart from its vectors.
#[derive(Serialize, Deserialize)]
struct CheckpointNotes<E, N> {
    key: String,
    #[serde(flatten)]
    steps: OptimiserSteps,
    history: Vec<E>,
    #[serde(flatten)]
    learner: N,
    batch: usize,
    loss_sum: f64,
}

/// Optimiser steps taken.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OptimiserSteps {
    /// Steps of the only network.
    Step(u64),
    /// Steps of each network.
    Steps(Vec<u64>),
}

/// Training and progress of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointSummary {
    /// Key of the training.
    pub key: String,
    /// Completed epochs.
    pub epochs: usize,
}

impl CheckpointSummary {
    /// Reads the checkpoint at `path`. `None` without a readable checkpoint.
    pub fn read(path: &Path, format: &CheckpointFormat) -> Option<CheckpointSummary> {
        #[derive(Deserialize)]
        struct KeyAndHistory {
            key: String,
            history: Vec<IgnoredAny>,
        }
        let shard = Shard::open(path, format.artefact).ok()?;
        let notes: KeyAndHistory = shard.notes().ok()?;
        Some(CheckpointSummary {
            key: notes.key,
            epochs: notes.history.len(),
        })
    }
}

/// The checkpoint file of one training.
#[derive(Debug, Clone, Copy)]
pub struct Checkpoint<'a> {
    /// Path of the file.
    pub path: &'a Path,
    /// Digest of everything that determines the result of the training.
    pub key: &'a str,
    /// Format of the file.
    pub format: &'a CheckpointFormat,
}

impl Checkpoint<'_> {
    /// Writes the `state` of the training.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn write<N: FlatNetwork, E: Clone + Serialize, K: LearnerState>(
        &self,
        state: &TrainingState<N, E, K>,
    ) -> Result<()> {
        let steps = state.networks.iter().map(|state| state.adam.step);
        let notes = CheckpointNotes {
            key: self.key.to_owned(),
            steps: match self.format.layout {
                CheckpointLayout::SingleNetwork => OptimiserSteps::Step(steps.sum()),
                CheckpointLayout::NumberedNetworks => OptimiserSteps::Steps(steps.collect()),
            },
            history: state.history.clone(),
            learner: state.learner.notes(),
            batch: state.batch,
            loss_sum: state.loss_sum,
        };

        let mut vectors = Vec::new();
        for (number, state) in state.networks.iter().enumerate() {
            let groups = [
                ("weights", state.network.flat_weights()),
                ("first", &state.adam.first),
                ("second", &state.adam.second),
                ("best", &state.best),
            ];
            for (group, flat) in groups {
                for (part, vector) in state.network.split(flat) {
                    vectors.push((self.column(number, group, part), vector));
                }
            }
        }
        let vectors = vectors
            .iter()
            .map(|(name, vector)| (name.clone(), &**vector));
        let columns = vectors.chain(state.learner.columns());
        let columns = columns.map(|(name, vector)| (name, ShardColumn::vector(vector)));
        shard::write(self.path, self.format.artefact, &notes, columns.collect())
    }

    /// Reads the state of the training and replaces the weights of `networks`.
    ///
    /// # Errors
    /// Fails when the checkpoint belongs to a training with another key.
    pub fn read<N: FlatNetwork, E: DeserializeOwned, K: LearnerState>(
        &self,
        networks: Vec<N>,
    ) -> Result<TrainingState<N, E, K>> {
        let shard = Shard::open(self.path, self.format.artefact)?;
        let notes: CheckpointNotes<E, K::Notes> = shard.notes()?;
        let steps = match notes.steps {
            OptimiserSteps::Step(step) => vec![step],
            OptimiserSteps::Steps(steps) => steps,
        };
        ensure!(
            notes.key == self.key && steps.len() == networks.len(),
            hinted(
                format!("`{}` {}", self.path.display(), self.format.other_training),
                self.format.hint
            )
        );

        let learner = K::read(notes.learner, &shard, networks.len())?;
        let mut states = Vec::with_capacity(networks.len());
        for ((number, mut network), step) in networks.into_iter().enumerate().zip(steps) {
            let group =
                |group| network.join(|part: &str| shard.column(&self.column(number, group, part)));
            let weights = group("weights")?;
            let adam = Adam {
                first: group("first")?,
                second: group("second")?,
                step,
            };
            let best = group("best")?.to_vec();
            network.flat_weights_mut().copy_from_slice(&weights);
            states.push(NetworkState {
                network,
                adam,
                best,
            });
        }
        Ok(TrainingState {
            networks: states,
            history: notes.history,
            learner,
            batch: notes.batch,
            loss_sum: notes.loss_sum,
        })
    }

    /// The name of a vector of a network.
    fn column(&self, number: usize, group: &str, part: &str) -> String {
        match self.format.layout {
            CheckpointLayout::SingleNetwork => group.to_owned(),
            CheckpointLayout::NumberedNetworks => format!("{number}/{group}/{part}"),
        }
    }
}
