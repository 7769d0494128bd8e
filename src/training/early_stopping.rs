//! The epochs so far → whether the last one is the best, and whether the training is over.

use super::epoch::Epoch;
use super::settings::TrainingSettings;
use crate::config::{Goal, Metric};

/// Whether the training is over: after `epochs`, or once the watched metric has not improved for
/// `earlystop_threshold` of them. An improvement is by more than `earlystop_min_delta` against the
/// last one.
pub(super) fn is_over(history: &[Epoch], settings: &TrainingSettings) -> bool {
    if history.len() >= settings.epochs {
        return true;
    }
    let watched = watched_values(history, &settings.metric);
    let goal = settings.metric.goal;
    epochs_without_gain(watched, goal, settings.earlystop_min_delta) >= settings.earlystop_threshold
}

/// Whether an epoch in which the watched metric has the value `last`, if any, is better than all of
/// `history`.
pub(super) fn is_best(history: &[Epoch], last: Option<f64>, metric: &Metric) -> bool {
    let watched = watched_values(history, metric).chain([last]);
    epochs_without_gain(watched, metric.goal, 0.0) == 0
}

/// The watched metric of each epoch, where it is defined.
fn watched_values(history: &[Epoch], metric: &Metric) -> impl Iterator<Item = Option<f64>> {
    let name = metric.name;
    history.iter().map(move |epoch| epoch.watched(name))
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
}
