//! Early stopping: decides whether the last epoch is the best and whether a training is over.

use poolcast_config::Goal;

/// The rule that ends a training.
#[derive(Debug, Clone, Copy)]
pub struct EarlyStopping {
    /// Maximum number of epochs.
    pub epochs: usize,
    /// Epochs without improvement after which a training is over.
    pub threshold: usize,
    /// Change of the metric that an improvement must exceed.
    pub min_delta: f64,
}

impl EarlyStopping {
    /// Returns true if the training is over: after the maximum number of epochs, or once the
    /// watched metric has not improved for too many of them.
    pub fn is_over(&self, watched: &WatchedEpochs) -> bool {
        watched.values.len() >= self.epochs
            || watched.epochs_without_gain(self.min_delta) >= self.threshold
    }
}

/// Values of the watched metric, one per epoch. `None` where the metric is undefined.
#[derive(Debug, Clone)]
pub struct WatchedEpochs {
    /// Values in the order of the epochs.
    pub values: Vec<Option<f64>>,
    /// Direction in which the metric improves.
    pub goal: Goal,
}

impl WatchedEpochs {
    /// Values of a loss that is defined after every epoch.
    pub fn of_loss(losses: impl Iterator<Item = f64>) -> WatchedEpochs {
        WatchedEpochs {
            values: losses.map(Some).collect(),
            goal: Goal::Minimize,
        }
    }

    /// Returns true if the last epoch is better than every earlier one.
    pub fn is_last_best(&self) -> bool {
        self.epochs_without_gain(0.0) == 0
    }

    /// The number of epochs after the last improvement. A value is an improvement if it is better
    /// by more than `min_delta` than the previous improvement.
    fn epochs_without_gain(&self, min_delta: f64) -> usize {
        let mut best = None;
        let mut since = 0;
        for value in &self.values {
            since += 1;
            if let Some(value) = *value
                && best.is_none_or(|best| self.goal.is_gain(value, best, min_delta))
            {
                best = Some(value);
                since = 0;
            }
        }
        since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_counted_against_the_last_one() {
        let minimize = |values: &[f64], min_delta| {
            WatchedEpochs::of_loss(values.iter().copied()).epochs_without_gain(min_delta)
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
            let watched = WatchedEpochs {
                values: values.to_vec(),
                goal: Goal::Maximize,
            };
            watched.epochs_without_gain(0.0)
        };
        assert_eq!(maximize(&[None, Some(0.5), Some(0.4), None]), 2);
        assert_eq!((maximize(&[None, None]), maximize(&[])), (2, 0));
        assert_eq!(maximize(&[Some(f64::NEG_INFINITY), Some(0.1)]), 0);
    }

    #[test]
    fn a_training_is_over_at_its_limit_or_without_gains() {
        let rule = EarlyStopping {
            epochs: 4,
            threshold: 2,
            min_delta: 0.0,
        };
        let is_over =
            |losses: &[f64]| rule.is_over(&WatchedEpochs::of_loss(losses.iter().copied()));
        assert!(!is_over(&[]) && !is_over(&[1.0, 2.0]));
        assert!(is_over(&[1.0, 2.0, 1.0]), "two epochs without a gain");
        assert!(!is_over(&[3.0, 2.0, 1.0]) && is_over(&[4.0, 3.0, 2.0, 1.0]));
    }
}
