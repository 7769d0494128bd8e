//! Early stopping: decides whether the last epoch is the best and whether the training is over.

use super::epoch::{Epoch, PooledScores};
use super::settings::TrainingSettings;
use crate::training::scoring::RollingPredictions;
use poolcast_config::{Goal, Metric, MetricName};

/// Returns true if the training is over: after `epochs` epochs, or once the watched metric has not
/// improved for `earlystop_threshold` epochs. A value is an improvement if it is better than the
/// last improvement by more than `earlystop_min_delta`.
pub(crate) fn is_over(history: &[Epoch], settings: &TrainingSettings) -> bool {
    if history.len() >= settings.epochs {
        return true;
    }
    let watched = WatchedEpochs::new(history.iter().collect(), &settings.metric);
    watched.epochs_without_gain(settings.earlystop_min_delta) >= settings.earlystop_threshold
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
    let epochs = history.iter().chain([last]).collect();
    WatchedEpochs::new(epochs, metric).epochs_without_gain(0.0) == 0
}

/// Values of the watched metric per epoch, where they are defined.
struct WatchedEpochs {
    values: Vec<Option<f64>>,
    goal: Goal,
}

impl WatchedEpochs {
    /// Reads the values of `metric` from `epochs`. If no epoch defines it, the validation loss is
    /// watched instead. An example is the area under the curve of samples with only one outcome.
    fn new(epochs: Vec<&Epoch>, metric: &Metric) -> WatchedEpochs {
        let metric_values = |name| epochs.iter().map(|epoch| epoch.watched(name)).collect();
        let values: Vec<Option<f64>> = metric_values(metric.name);
        if values.iter().any(Option::is_some) {
            return WatchedEpochs {
                values,
                goal: metric.goal,
            };
        }
        WatchedEpochs {
            values: metric_values(MetricName::ValidationLoss),
            goal: Goal::Minimize,
        }
    }

    fn epochs_without_gain(self, min_delta: f64) -> usize {
        epochs_without_gain(self.values.into_iter(), self.goal, min_delta)
    }
}

/// The number of `values`, one per epoch, after the last improvement. A value is an improvement if
/// it is better by more than `min_delta` than the previous improvement.
fn epochs_without_gain(
    values: impl Iterator<Item = Option<f64>>,
    goal: Goal,
    min_delta: f64,
) -> usize {
    let mut best = None;
    let mut since = 0;
    for value in values {
        since += 1;
        if let Some(value) = value
            && best.is_none_or(|best| goal.is_gain(value, best, min_delta))
        {
            best = Some(value);
            since = 0;
        }
    }
    since
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_base::stats::Scores;

    #[test]
    fn gains_are_counted_against_the_last_one() {
        let minimize = |values: &[f64], min_delta| {
            epochs_without_gain(
                values.iter().map(|value| Some(*value)),
                Goal::Minimize,
                min_delta,
            )
        };
        assert_eq!(
            minimize(&[3.0, 2.0, 2.0, 2.5], 0.0),
            2,
            "as good is no gain"
        );
        assert_eq!(
            minimize(&[3.0, 2.75, 2.5, 2.25], 0.5),
            0,
            "small steps add up to a gain"
        );
        assert_eq!(
            minimize(&[3.0, 2.75, 2.5], 0.5),
            2,
            "by more, not by as much"
        );
        let maximize = |values: &[Option<f64>]| {
            epochs_without_gain(values.iter().copied(), Goal::Maximize, 0.0)
        };
        assert_eq!(maximize(&[None, Some(0.5), Some(0.4), None]), 2);
        assert_eq!((maximize(&[None, None]), maximize(&[])), (2, 0));
        assert_eq!(maximize(&[Some(f64::NEG_INFINITY), Some(0.1)]), 0);
    }

    #[test]
    fn the_loss_decides_if_the_metric_is_undefined() {
        let metric = Metric {
            name: MetricName::ValidationRocAuc,
            goal: Goal::Maximize,
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
