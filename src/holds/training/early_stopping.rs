//! The epochs so far → whether the last one is the best, and whether the training is over.

use super::epoch::{Epoch, PooledScores};
use super::rolling_predictions::RollingPredictions;
use super::settings::TrainingSettings;
use poolcast_config::{Goal, Metric, MetricName};

/// Whether the training is over: after `epochs`, or once the watched metric has not improved for
/// `earlystop_threshold` of them. An improvement is by more than `earlystop_min_delta` against the
/// last one.
pub(super) fn is_over(history: &[Epoch], settings: &TrainingSettings) -> bool {
    if history.len() >= settings.epochs {
        return true;
    }
    let watched = WatchedEpochs::new(history.iter().collect(), &settings.metric);
    watched.epochs_without_gain(settings.earlystop_min_delta) >= settings.earlystop_threshold
}

/// The epoch after `history`, judged by what the models predict after it. It is the best if no epoch
/// before has a value of `metric` as good.
pub(super) fn judge_epoch(
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

/// Whether `last`, the epoch after `history`, is better than all of that by the watched metric.
fn is_best(history: &[Epoch], last: &Epoch, metric: &Metric) -> bool {
    let epochs = history.iter().chain([last]).collect();
    WatchedEpochs::new(epochs, metric).epochs_without_gain(0.0) == 0
}

/// The watched metric of each epoch, where it is defined.
struct WatchedEpochs {
    values: Vec<Option<f64>>,
    goal: Goal,
}

impl WatchedEpochs {
    /// The values of `metric`. Where it is defined for none, as the area under the curve of samples
    /// with one outcome, the validation loss is watched in its place.
    fn new(epochs: Vec<&Epoch>, metric: &Metric) -> WatchedEpochs {
        let of_epochs = |name| epochs.iter().map(|epoch| epoch.watched(name)).collect();
        let values: Vec<Option<f64>> = of_epochs(metric.name);
        if values.iter().any(Option::is_some) {
            return WatchedEpochs {
                values,
                goal: metric.goal,
            };
        }
        WatchedEpochs {
            values: of_epochs(MetricName::ValidationLoss),
            goal: Goal::Minimize,
        }
    }

    fn epochs_without_gain(self, min_delta: f64) -> usize {
        epochs_without_gain(self.values.into_iter(), self.goal, min_delta)
    }
}

/// How many of `values`, one an epoch, came after the last improvement: a value that was better by
/// more than `min_delta` than the improvement before it.
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
    use poolcast_base::stats::Scores;
    use super::*;

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
    fn where_the_metric_is_never_defined_the_loss_decides() {
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
