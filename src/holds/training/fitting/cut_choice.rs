//! Choice of an epoch for each time cut by the other cuts, with the predictions of the cut's model
//! after that epoch.
//!
//! The best of many epochs looks better than it is on the very predictions that chose it. Pipelines
//! have no epochs to choose from, so this bias would favour networks in a comparison. The scores of
//! a network are therefore pooled over the cuts as in cross-validation: no prediction takes part in
//! the choice of its own epoch.

use super::epoch::Epoch;
use super::judged_epochs;
use crate::training::scoring::RollingPredictions;
use poolcast_config::Metric;

/// The epoch chosen for one cut.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct CutChoice {
    /// All epochs so far, scored on the predictions of the other cuts.
    pub(crate) epochs: Vec<Epoch>,
    /// Logits of this cut's model after the best of these epochs, `[p]`.
    pub(crate) logits: Vec<f32>,
}

impl CutChoice {
    /// Records an epoch with the models' `predictions` after it. `cut` is the index of this
    /// choice's cut. If no other cut has predictions, the cut judges itself. With `keeps_last`
    /// nobody chooses: the last epoch counts.
    pub(crate) fn observe(
        &mut self,
        cut: usize,
        train_loss: f64,
        predictions: &RollingPredictions,
        metric: &Metric,
        keeps_last: bool,
    ) {
        // A training that is repeated on all samples has no predictions. Its loss would be NaN,
        // which a checkpoint cannot store.
        if predictions.labels.is_empty() {
            return;
        }

        let others = predictions.select(|other| other != cut);
        let judges = if others.labels.is_empty() {
            predictions
        } else {
            &others
        };
        let mut epoch = judged_epochs::judge_epoch(&self.epochs, train_loss, judges, metric);
        epoch.is_best |= keeps_last;
        if epoch.is_best {
            self.logits = predictions.select(|other| other == cut).logits;
        }
        self.epochs.push(epoch);
    }
}

/// Returns `predictions` with the logits of the epoch that was chosen for each cut.
pub(crate) fn chosen_predictions(
    mut predictions: RollingPredictions,
    choices: &[CutChoice],
) -> RollingPredictions {
    let chosen = choices.iter().flat_map(|choice| &choice.logits);
    for (logit, chosen) in predictions.logits.iter_mut().zip(chosen) {
        *logit = *chosen;
    }
    predictions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::scoring::RollingPrediction;
    use poolcast_config::{Goal, MetricName};

    const LOSS: Metric = Metric {
        name: MetricName::ValidationLoss,
        goal: Goal::Minimize,
        reported: None,
        target: None,
    };

    /// Returns the predictions of cuts with these `logits`, for two samples each: a success and a
    /// failure.
    fn predictions(logits: &[[f32; 2]]) -> RollingPredictions {
        let mut predictions = RollingPredictions::default();
        for (cut, logits) in logits.iter().enumerate() {
            for (at, logit) in logits.iter().enumerate() {
                predictions.push(RollingPrediction {
                    sample: 2 * cut + at,
                    cluster: cut as u32,
                    cut,
                    logit: *logit,
                    label: at == 0,
                });
            }
        }
        predictions
    }

    fn choose(epochs: &[&[[f32; 2]]]) -> Vec<f32> {
        choose_or_keep(epochs, false)
    }

    fn choose_or_keep(epochs: &[&[[f32; 2]]], keeps_last: bool) -> Vec<f32> {
        let mut choices = vec![CutChoice::default(); epochs[0].len()];
        for epoch in epochs {
            for (cut, choice) in choices.iter_mut().enumerate() {
                choice.observe(cut, 0.5, &predictions(epoch), &LOSS, keeps_last);
            }
        }
        let last = predictions(epochs[epochs.len() - 1]);
        chosen_predictions(last, &choices).logits
    }

    #[test]
    fn the_other_cuts_choose_the_epoch() {
        // The first cut is best in epoch 2, the second in epoch 1. Each gets the best epoch of the
        // other.
        let first = [[1.0, -1.0], [3.0, -3.0]];
        let second = [[2.0, -2.0], [0.5, -0.5]];
        assert_eq!(choose(&[&first, &second]), [1.0, -1.0, 0.5, -0.5]);
        let kept = choose_or_keep(&[&first, &second], true);
        assert_eq!(kept, [2.0, -2.0, 0.5, -0.5]);
    }

    #[test]
    fn epochs_without_predictions_are_ignored() {
        let mut choice = CutChoice::default();
        choice.observe(0, 0.5, &RollingPredictions::default(), &LOSS, false);
        assert_eq!(choice, CutChoice::default());
    }

    #[test]
    fn a_cut_alone_chooses_for_itself() {
        assert_eq!(
            choose(&[&[[1.0, -1.0]], &[[3.0, -3.0]], &[[2.0, -2.0]]]),
            [3.0, -3.0]
        );
    }
}
