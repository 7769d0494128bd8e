//! Trains the action values of `dqn` on the learned windows.

use anyhow::Result;

use super::episodes::{Episode, EpisodeSplit};
use super::learning_state::LearningEpoch;
use super::network_training::{LearningStep, LearningTask, LearningWatch, NetworkTraining, learn};
use super::submission_replay::replayed_gaps_h;
use crate::samples::WaitSamples;
use poolcast_base::stats::{gap_cost_h, mean};
use poolcast_published::series::{FrozenNetwork, SeriesNetwork};
use poolcast_published::{ActionValues, ReplayMemory, ReplayRows};

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
    let replay = ReplayRows {
        features: &|row| samples.features(row),
        left_s: &samples.left_s,
        gap_s: &samples.gap_s,
    };
    let columns = samples.description.feature_names.len() + 1;
    let memory = ReplayMemory::new(replay, &rows, columns, cost_ratio);
    let cost_h = |episodes: &[Episode], network: &FrozenNetwork| {
        let gaps_h = replayed_gaps_h(samples, episodes, |row| memory.submits(row, network));
        let costs_h = gaps_h.iter().map(|gap_h| gap_cost_h(cost_ratio, *gap_h));
        mean(&costs_h.collect::<Vec<f64>>())
    };

    let task = LearningTask {
        rows: &rows,
        gradient: &|step: &LearningStep<'_>| memory.gradient(step.rows, step.network, step.earlier),
        judge: &|network: &FrozenNetwork| Ok(cost_h(&split.held_back, network)),
        refresh_steps: Some(ReplayMemory::REFRESH_STEPS),
        settings: training.settings,
    };
    let design = memory.design(training.size);
    let network = SeriesNetwork::new(design, training.settings.seed, training.device)?;
    let (history, weights) = learn(&task, network, watch)?;
    Ok((memory.learned(training.size, &weights)?, history))
}
