//! Epochs as the training of holds judges them: their scores, the best one, and whether they are enough.

use super::epoch::{Epoch, PooledScores};
use crate::config::TrainingSettings;
use crate::training::scoring::RollingPredictions;
use poolcast_config::{Goal, Metric, MetricName};
use poolcast_models::optim::{EarlyStopping, WatchedEpochs};

/// Returns true if early stopping or the limit of epochs ends the training after `history`.
pub(crate) fn is_over(history: &[Epoch], settings: &TrainingSettings) -> bool {
    let rule = EarlyStopping {
        epochs: settings.epochs,
        threshold: settings.earlystop_threshold,
        min_delta: settings.earlystop_min_delta,
    };
    rule.is_over(&watched_epochs(history.iter(), &settings.metric))
}

/// Scores the epoch after `history` by the `predictions` that the models make after it. It is the
/// best epoch if no earlier epoch has an equal or better value of `metric`.
pub(crate) fn judge_epoch(
    history: &[Epoch],
    train_loss: f64,
    predictions: &RollingPredictions,
    metric: &Metric,
) -> Epoch {
    let PooledScores { loss, scores } = PooledScores::compute(predictions);
    let mut epoch = Epoch {
        epoch: history.len() + 1,
        train_loss,
        validation_loss: loss,
        validation: scores,
        is_best: false,
    };
    epoch.is_best = is_best(history, &epoch, metric);
    epoch
}

/// Returns true if `last`, the epoch after `history`, is better by the watched metric than every
/// epoch of `history`.
fn is_best(history: &[Epoch], last: &Epoch, metric: &Metric) -> bool {
    watched_epochs(history.iter().chain([last]), metric).is_last_best()
}

/// Reads the values of `metric` from `epochs`. If no epoch defines it, the validation loss is
/// watched instead. An example is the area under the curve of samples with only one outcome.
fn watched_epochs<'a>(
    epochs: impl Iterator<Item = &'a Epoch> + Clone,
    metric: &Metric,
) -> WatchedEpochs {
    let watched = |name, goal| WatchedEpochs {
        values: epochs.clone().map(|epoch| epoch.watched(name)).collect(),
        goal,
    };
    let chosen = watched(metric.name, metric.goal);
    if chosen.values.iter().any(Option::is_some) {
        return chosen;
    }
    watched(MetricName::ValidationLoss, Goal::Minimize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_base::stats::Scores;

    #[test]
    fn the_loss_decides_if_the_metric_is_undefined() {
        let metric = Metric {
            name: MetricName::ValidationRocAuc,
            goal: Goal::Maximize,
            reported: None,
            target: None,
        };
        let epoch = |validation_loss, roc_auc| Epoch {
            epoch: 1,
            train_loss: 0.0,
            validation_loss,
            validation: Scores {
                roc_auc,
                ..Scores::default()
            },
            is_best: false,
        };
        let history = [epoch(0.5, None), epoch(0.4, None)];
        assert!(is_best(&history, &epoch(0.3, None), &metric));
        assert!(!is_best(&history, &epoch(0.45, None), &metric));
        assert!(is_best(&history, &epoch(0.45, Some(0.5)), &metric));
    }
}
