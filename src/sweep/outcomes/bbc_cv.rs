//! Estimates the score of the best of many trials, corrected for the luck of the choice. The input
//! is every trial's predictions for rows that the trial had not seen.
//!
//! The best of many trials is the best partly by chance, so its own score is too good. BBC-CV
//! corrects this by drawing the rows with replacement many times. Each time it chooses a trial
//! again on the drawn rows, and scores this trial on the rows that were not drawn. The estimate is
//! the mean of these scores, and their percentiles are its interval (Tsamardinos, Greasidou and
//! Borboudakis 2018, "Bootstrapping the out-of-sample predictions for efficient and accurate
//! cross-validation", Machine Learning 107). Whole groups are drawn, because rows of one group are
//! not independent.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use poolcast_base::stats::{SampleGroups, f_measure, percentile_interval};
use poolcast_config::{Goal, Metric, MetricName, Threshold};
use poolcast_holds::training::{choose_threshold, target_score};
use poolcast_tables::RowTargets;

/// The true targets of predicted rows.
#[derive(Debug, Clone, Copy)]
pub struct TrueTargets<'a> {
    /// The class or the number of each row, `[n]`.
    pub targets: &'a RowTargets,
    /// The group of each row, `[n]`.
    pub groups: &'a [u64],
    /// The threshold for the F-measure of two classes.
    pub threshold: FMeasureThreshold,
}

/// The probability from which a row counts as the second of two classes, for the F-measure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FMeasureThreshold {
    /// A fixed threshold.
    At(f64),
    /// The threshold that is best on the rows of the choice.
    Chosen,
}

/// A value with the 2.5 % and 97.5 % quantiles of its bootstrap.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScoreEstimate {
    /// The value.
    pub value: f64,
    /// The 2.5 % quantile.
    pub low: f64,
    /// The 97.5 % quantile.
    pub high: f64,
}

/// The rows of one bootstrap sample, repeated as often as they were drawn, and the rows that were
/// not drawn.
struct Resample {
    drawn: Vec<usize>,
    left: Vec<usize>,
}

impl TrueTargets<'_> {
    /// Draws whole groups of rows with replacement.
    fn resamples(&self, count: usize, seed: u64) -> impl IndexedParallelIterator<Item = Resample> {
        let groups = SampleGroups::new(self.groups);
        (0..count).into_par_iter().map(move |number| {
            let mut times = vec![0; groups.count()];
            for group in groups.draw_groups(seed, "selection", number) {
                times[group] += 1;
            }

            let mut resample = Resample {
                drawn: Vec::new(),
                left: Vec::new(),
            };
            for (group, times) in times.into_iter().enumerate() {
                let rows = groups.samples(group);
                for _ in 0..times {
                    resample.drawn.extend_from_slice(rows);
                }
                if times == 0 {
                    resample.left.extend_from_slice(rows);
                }
            }
            resample
        })
    }

    /// The score of `predictions` `[n, width]` on `rows`. A chosen threshold is chosen on the same
    /// rows.
    fn score(&self, metric: &Metric, predictions: &[f64], rows: &[usize]) -> Option<f64> {
        if self.takes_f_measure(metric) {
            let threshold = self.f_measure_threshold(predictions, rows);
            return self.f_measure(predictions, rows, threshold);
        }
        let width = self.targets.width();
        let of_row = |row: &usize| &predictions[row * width..][..width];
        let predictions: Vec<f64> = rows.iter().flat_map(of_row).copied().collect();
        target_score(metric.name, &predictions, &self.targets.select_rows(rows))
    }

    fn takes_f_measure(&self, metric: &Metric) -> bool {
        metric.name == MetricName::ValidationFMeasure && self.targets.width() == 2
    }

    /// The threshold of the second class's probability; if it is chosen, then on `rows`.
    fn f_measure_threshold(&self, probabilities: &[f64], rows: &[usize]) -> f64 {
        match self.threshold {
            FMeasureThreshold::At(threshold) => threshold,
            FMeasureThreshold::Chosen => {
                let (second, labels) = self.second_class(probabilities, rows);
                choose_threshold(&second, &labels, Threshold::FMeasure)
            }
        }
    }

    fn f_measure(&self, probabilities: &[f64], rows: &[usize], threshold: f64) -> Option<f64> {
        let (second, labels) = self.second_class(probabilities, rows);
        f_measure(&second, &labels, threshold)
    }

    /// The probabilities of the second class for `rows`, and their labels: true for the second
    /// class.
    fn second_class(&self, probabilities: &[f64], rows: &[usize]) -> (Vec<f64>, Vec<bool>) {
        let second = rows.iter().map(|row| probabilities[2 * row + 1]).collect();
        let classes = self.targets.classes();
        let labels = rows.iter().map(|row| classes[*row] == 1).collect();
        (second, labels)
    }

    /// Returns true if `better` `[n, width]` is shown to have a better score than `worse`
    /// `[n, width]`: the 95 % interval of the difference, by groups, lies above 0.
    pub fn is_shown_better(
        &self,
        metric: &Metric,
        [better, worse]: [&[f64]; 2],
        resamples: usize,
        seed: u64,
    ) -> bool {
        let gains: Vec<f64> = self
            .resamples(resamples, seed)
            .filter_map(|rows| {
                let score = |predictions| self.score(metric, predictions, &rows.drawn);
                let difference = score(better)? - score(worse)?;
                Some(match metric.goal {
                    Goal::Maximize => difference,
                    Goal::Minimize => -difference,
                })
            })
            .collect();
        percentile_interval(gains, resamples).is_some_and(|(low, _)| low > 0.0)
    }

    /// The score of one trial's `predictions` `[n, width]`, with its interval. `None` if the score
    /// is not defined.
    pub fn interval(
        &self,
        metric: &Metric,
        predictions: &[f64],
        resamples: usize,
        seed: u64,
    ) -> Option<ScoreEstimate> {
        let all: Vec<usize> = (0..self.targets.row_count()).collect();
        let value = self.score(metric, predictions, &all)?;
        let values = self.resamples(resamples, seed);
        let values: Vec<f64> = values
            .filter_map(|rows| self.score(metric, predictions, &rows.drawn))
            .collect();
        let (low, high) = percentile_interval(values, resamples)?;
        Some(ScoreEstimate { value, low, high })
    }

    /// The corrected score of the best of `trials`, each given by its predictions `[n, width]` for
    /// the same rows. `None` if it is not defined.
    pub fn corrected(
        &self,
        metric: &Metric,
        trials: &[Vec<f64>],
        resamples: usize,
        seed: u64,
    ) -> Option<ScoreEstimate> {
        let draw = |rows: Resample| {
            let values = trials
                .iter()
                .filter_map(|trial| Some((trial, self.score(metric, trial, &rows.drawn)?)));
            let (best, _) = metric.goal.best(values, |(_, value)| *value)?;
            if self.takes_f_measure(metric) {
                let threshold = self.f_measure_threshold(best, &rows.drawn);
                return self.f_measure(best, &rows.left, threshold);
            }
            self.score(metric, best, &rows.left)
        };
        let values: Vec<f64> = self.resamples(resamples, seed).filter_map(draw).collect();
        let value = values.iter().sum::<f64>() / values.len() as f64;
        let (low, high) = percentile_interval(values, resamples)?;
        Some(ScoreEstimate { value, low, high })
    }
}

#[cfg(test)]
mod tests {
    use rand::Rng as _;

    use super::*;
    use poolcast_config::Goal;
    use poolcast_tables::{NumberLoss, RowClasses, RowNumbers};

    const METRIC: Metric = Metric {
        name: MetricName::ValidationRocAuc,
        goal: Goal::Maximize,
        reported: None,
        target: None,
    };

    fn two_classes(y: &[u32]) -> RowTargets {
        RowTargets::Classes(RowClasses {
            names: ["no", "yes"].map(str::to_owned).to_vec(),
            y: y.to_vec(),
        })
    }

    /// Fifty trials over 200 rows. Each predicts the truth with weight `strength`, and noise with
    /// the remaining weight.
    fn trials(strength: f64, seed: u64) -> (Vec<u32>, Vec<Vec<f64>>) {
        let mut random = poolcast_base::seed::generator(seed, "noise", &[]);
        let y: Vec<u32> = (0..200).map(|_| random.random_range(0..2)).collect();
        let trials = (0..50).map(|_| {
            let chance = |class: &u32| {
                strength * f64::from(*class) + (1.0 - strength) * random.random::<f64>()
            };
            y.iter()
                .map(chance)
                .collect::<Vec<f64>>()
                .into_iter()
                .flat_map(|p| [1.0 - p, p])
                .collect()
        });
        let trials = trials.collect();
        (y, trials)
    }

    #[test]
    fn corrected_score_of_the_best_guess_is_chance() {
        let (mut naive, mut honest) = (0.0, 0.0);
        for seed in 0..5 {
            let (y, trials) = trials(0.0, seed);
            let groups: Vec<u64> = (0..200).collect();
            let truth = TrueTargets {
                targets: &two_classes(&y),
                groups: &groups,
                threshold: FMeasureThreshold::At(0.5),
            };
            let all: Vec<usize> = (0..200).collect();
            let best = trials
                .iter()
                .filter_map(|trial| truth.score(&METRIC, trial, &all))
                .fold(0.0, f64::max);
            let corrected = truth.corrected(&METRIC, &trials, 200, 1).expect("defined");
            assert!(corrected.low < 0.5 && corrected.high > 0.5, "{corrected:?}");
            naive += best / 5.0;
            honest += corrected.value / 5.0;
        }
        assert!(naive > 0.57, "the best looks better than a guess: {naive}");
        assert!((honest - 0.5).abs() < 0.025, "and is none: {honest}");
    }

    #[test]
    fn correction_keeps_scores_without_luck() {
        let (y, trials) = trials(0.3, 1);
        let targets = two_classes(&y);
        let groups: Vec<u64> = (0..200).collect();
        let truth = TrueTargets {
            targets: &targets,
            groups: &groups,
            threshold: FMeasureThreshold::At(0.5),
        };
        let corrected = truth
            .corrected(&METRIC, &trials[..1], 400, 1)
            .expect("defined");
        let own = truth
            .interval(&METRIC, &trials[0], 400, 1)
            .expect("defined");
        assert!(
            (corrected.value - own.value).abs() < 0.01,
            "with one trial nothing is chosen"
        );
        assert!(own.low < own.value && own.value < own.high && own.high - own.low > 0.05);
        let of_pairs: Vec<u64> = (0..200).map(|row| row / 20).collect();
        let wider = TrueTargets {
            groups: &of_pairs,
            ..truth
        }
        .interval(&METRIC, &trials[0], 400, 1)
        .expect("defined");
        assert_ne!(
            (wider.low, wider.high),
            (own.low, own.high),
            "whole groups are drawn"
        );
        let one_class = TrueTargets {
            targets: &two_classes(&[0; 200]),
            ..truth
        };
        assert_eq!(one_class.corrected(&METRIC, &trials, 20, 1), None);
    }

    #[test]
    fn only_a_clear_difference_shows_that_a_trial_is_better() {
        let groups: Vec<u64> = (0..200).collect();
        let is_shown = |metric: &Metric, [better, worse]: [f64; 2]| {
            let (y, strong) = trials(better, 1);
            let (_, weak) = trials(worse, 1);
            let truth = TrueTargets {
                targets: &two_classes(&y),
                groups: &groups,
                threshold: FMeasureThreshold::At(0.5),
            };
            truth.is_shown_better(metric, [&strong[0], &weak[1]], 400, 1)
        };
        assert!(is_shown(&METRIC, [0.5, 0.0]));
        assert!(!is_shown(&METRIC, [0.0, 0.5]), "the other one is better");
        assert!(!is_shown(&METRIC, [0.3, 0.3]), "both are as good");
        let loss = Metric {
            name: MetricName::ValidationLoss,
            goal: Goal::Minimize,
            reported: None,
            target: None,
        };
        assert!(is_shown(&loss, [0.5, 0.0]));
        assert!(!is_shown(&loss, [0.0, 0.5]));
    }

    /// The F-measure at 0.5 is 0 for a model that expects no success, no matter how well the model
    /// ranks.
    #[test]
    fn chosen_threshold_maximizes_the_f_measure() {
        let y: Vec<u32> = (0..200).map(|row| u32::from(row % 4 == 0)).collect();
        let targets = two_classes(&y);
        let groups: Vec<u64> = (0..200).collect();
        let timid: Vec<f64> = y
            .iter()
            .flat_map(|class| if *class == 1 { [0.6, 0.4] } else { [0.8, 0.2] })
            .collect();
        let metric = Metric {
            name: MetricName::ValidationFMeasure,
            goal: Goal::Maximize,
            reported: None,
            target: None,
        };
        let with_threshold = |threshold| TrueTargets {
            targets: &targets,
            groups: &groups,
            threshold,
        };
        let fixed = with_threshold(FMeasureThreshold::At(0.5)).interval(&metric, &timid, 50, 1);
        assert_eq!(fixed.expect("defined").value, 0.0);
        let chosen = with_threshold(FMeasureThreshold::Chosen);
        assert_eq!(
            chosen
                .interval(&metric, &timid, 50, 1)
                .expect("defined")
                .value,
            1.0
        );
        let trials = [timid.clone(), vec![0.5; 400]];
        let corrected = chosen.corrected(&metric, &trials, 50, 1).expect("defined");
        assert_eq!(corrected.value, 1.0);
    }

    /// The best of many random guesses around the mean looks better than the mean, but is not.
    #[test]
    fn corrected_score_of_the_best_numeric_guess_is_not_inflated() {
        let mut random = poolcast_base::seed::generator(2, "noise", &[]);
        let y: Vec<f64> = (0..200).map(|_| random.random_range(-1.0..1.0)).collect();
        let guess = |_| (0..200).map(|_| random.random_range(-0.5..0.5)).collect();
        let trials: Vec<Vec<f64>> = (0..50).map(guess).collect();
        let metric = Metric {
            name: MetricName::ValidationR2,
            goal: Goal::Maximize,
            reported: None,
            target: None,
        };
        let groups: Vec<u64> = (0..200).collect();
        let truth = TrueTargets {
            targets: &RowTargets::Numbers(RowNumbers {
                y,
                loss: NumberLoss::Squared,
            }),
            groups: &groups,
            threshold: FMeasureThreshold::At(0.5),
        };
        let values = trials
            .iter()
            .filter_map(|trial| truth.interval(&metric, trial, 50, 1));
        let best = values.map(|found| found.value).fold(-9.0, f64::max);
        let corrected = truth.corrected(&metric, &trials, 200, 1).expect("defined");
        assert!(corrected.value < best - 0.05, "{corrected:?}, and {best}");
        assert!((corrected.value + 0.25).abs() < 0.1, "{corrected:?}");
    }
}
