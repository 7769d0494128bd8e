//! First training stage of a mixture, as published: each expert network learns alone from its own
//! time range. Afterwards all of them learn jointly with the gate.

use std::ops::ControlFlow;

use anyhow::Result;

use super::episodes::EpisodeSplit;
use super::network_training::{
    LearningSettings, LearningStep, LearningTask, LearningUpdate, LearningWatch, learn,
};
use super::training_checkpoint::expert_checkpoint_path;
use poolcast_published::series::{BatchGradient, FrozenNetwork, SeriesNetwork};

/// Input of the first stage.
pub(super) struct ExpertTask<'a> {
    pub(super) split: &'a EpisodeSplit,
    /// Computes the gradient of a batch.
    pub(super) gradient: &'a (dyn Fn(&LearningStep<'_>) -> Result<BatchGradient> + Sync),
    /// Computes the mean loss of rows.
    pub(super) mean_loss: &'a (dyn Fn(&[usize], &FrozenNetwork) -> Result<f64> + Sync),
    pub(super) settings: &'a LearningSettings,
}

/// Trains each network of the mixture `network` alone, or resumes from its checkpoint. Each keeps
/// the epoch with the lowest loss on the later windows of its part. A network whose part has fewer
/// than two windows stays unchanged.
///
/// # Errors
/// Fails like [`learn`].
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
        // A request to stop is ignored here: the listener can repeat it after the next batch.
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
        // Do not report the epochs of one expert: the caller counts epochs of the whole mixture.
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
