//! The epochs of a training → for each time cut the epoch that the other cuts choose, and what the
//! cut's model predicted after it.
//!
//! The best of many epochs looks better than it is on the very predictions that chose it. Pipelines
//! have no epochs to choose from, so networks would look better beside them than they are. What is
//! known of a network is therefore pooled over the cuts as cross-validation has it: no prediction has
//! a part in the choice of its own epoch.

use super::early_stopping;
use super::epoch::Epoch;
use super::rolling_predictions::RollingPredictions;
use poolcast_config::Metric;

/// The epoch that is chosen for one cut.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CutChoice {
    /// All epochs so far, as the predictions after the other cuts judge them.
    pub(super) epochs: Vec<Epoch>,
    /// What the model of this cut said after the best of them, `[p]`.
    pub(super) logits: Vec<f32>,
}

impl CutChoice {
    /// Takes note of an epoch, after which the models predict `predictions`. This choice is that of
    /// the cut number `cut`. Where no other cut has predictions, it has to judge itself.
    pub(super) fn observe(
        &mut self,
        cut: usize,
        train_loss: f64,
        predictions: &RollingPredictions,
        metric: &Metric,
    ) {
        // A training that is repeated on all samples predicts none: a loss over none is NaN, which no
        // checkpoint could give back.
        if predictions.labels.is_empty() {
            return;
        }

        let others = predictions.select(|other| other != cut);
        let judges = if others.labels.is_empty() {
            predictions
        } else {
            &others
        };
        let epoch = early_stopping::judge_epoch(&self.epochs, train_loss, judges, metric);
        if epoch.is_best {
            self.logits = predictions.select(|other| other == cut).logits;
        }
        self.epochs.push(epoch);
    }
}

/// `predictions` with the logits of the epoch that was chosen for each cut.
pub(super) fn chosen_predictions(
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
    use super::super::rolling_predictions::RollingPrediction;
    use super::*;
    use poolcast_config::{Goal, MetricName};

    const LOSS: Metric = Metric {
        name: MetricName::ValidationLoss,
        goal: Goal::Minimize,
    };

    /// The predictions of cuts that say `logits` of two samples each, a success and a failure.
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
        let mut choices = vec![CutChoice::default(); epochs[0].len()];
        for epoch in epochs {
            for (cut, choice) in choices.iter_mut().enumerate() {
                choice.observe(cut, 0.5, &predictions(epoch), &LOSS);
            }
        }
        let last = predictions(epochs[epochs.len() - 1]);
        chosen_predictions(last, &choices).logits
    }

    #[test]
    fn the_other_cuts_choose_the_epoch() {
        // The first cut is best in epoch 2, the second in epoch 1: each gets what the other likes.
        let first = [[1.0, -1.0], [3.0, -3.0]];
        let second = [[2.0, -2.0], [0.5, -0.5]];
        assert_eq!(choose(&[&first, &second]), [1.0, -1.0, 0.5, -0.5]);
    }

    #[test]
    fn where_nothing_is_predicted_nothing_is_judged() {
        let mut choice = CutChoice::default();
        choice.observe(0, 0.5, &RollingPredictions::default(), &LOSS);
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
