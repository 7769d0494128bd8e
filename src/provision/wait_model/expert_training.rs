//! The first stage of a mixture, as published: each of its networks learns by itself from a part of
//! the time, before all learn together with the gate.

use std::ops::ControlFlow;

use anyhow::Result;

use super::episodes::EpisodeSplit;
use super::network_training::{
    LearningSettings, LearningStep, LearningTask, LearningUpdate, LearningWatch, learn,
};
use super::training_checkpoint::expert_checkpoint_path;
use poolcast_models::series::{BatchGradient, FrozenNetwork, SeriesNetwork};

/// What the networks of a mixture learn.
pub(super) struct ExpertTask<'a> {
    pub(super) split: &'a EpisodeSplit,
    /// Finds the gradient of a batch.
    pub(super) gradient: &'a (dyn Fn(&LearningStep<'_>) -> Result<BatchGradient> + Sync),
    /// The mean loss of rows.
    pub(super) mean_loss: &'a (dyn Fn(&[usize], &FrozenNetwork) -> Result<f64> + Sync),
    pub(super) settings: &'a LearningSettings,
}

/// Lets each network of the mixture `network` learn by itself, from its checkpoint on where there is
/// one. Each keeps the epoch whose loss on the later windows of its part is least; one whose part has
/// fewer than two windows stays as it is.
///
/// # Errors
/// As [`learn`].
pub(super) fn learn_experts(
    task: &ExpertTask<'_>,
    network: &mut SeriesNetwork,
    watch: &LearningWatch<'_>,
) -> Result<()> {
    let experts = network.design().experts();
    for (expert, rows) in task.split.expert_rows(experts).iter().enumerate() {
        if rows.learned.is_empty() {
            continue;
        }
        // A wish to stop is heard after the next batch.
        let _ = (watch.listener)(LearningUpdate::Expert {
            expert: expert + 1,
            experts,
        });
        let learning = LearningTask {
            rows: &rows.learned,
            gradient: task.gradient,
            judge: &|network: &FrozenNetwork| (task.mean_loss)(&rows.judged, network),
            refresh_steps: None,
            settings: task.settings,
        };
        let checkpoint = expert_checkpoint_path(watch.checkpoint, expert);
        // Epochs are those of the whole mixture.
        let listener = |update: LearningUpdate<'_>| match update {
            LearningUpdate::Epoch(_) => ControlFlow::Continue(()),
            update => (watch.listener)(update),
        };
        let watch = LearningWatch {
            checkpoint: &checkpoint,
            key: watch.key,
            interval: watch.interval,
            listener: &listener,
        };
        let alone = network.expert(expert)?;
        let (design, device) = (*alone.design(), alone.device().clone());
        let (_, weights) = learn(&learning, alone, &watch)?;
        let learned = SeriesNetwork::with_weights(design, &weights, &device)?;
        network.set_expert(expert, &learned)?;
    }
    let _ = (watch.listener)(LearningUpdate::Together);
    Ok(())
}
