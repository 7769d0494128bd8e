//! Calibrates the odds of an answer model by the outcomes of its earlier answers.
//!
//! The calibration is Venn-ABERS (Vovk and Petej, Venn-Abers Predictors, UAI 2014): two isotonic
//! regressions, one with the new case added as a failure and one with it added as a success.

use serde::{Deserialize, Serialize};

use super::answer_limits::SettledAnswer;

/// Number of steps of equal width into which the odds are divided.
const STEPS: usize = 200;
/// Minimum number of outcomes that a calibration is learned from.
const MIN_ANSWERS: usize = 100;
/// Minimum number of moments of a rehearsal that a calibration is learned from, and that show whether a member helps.
pub(crate) const MIN_MOMENTS: usize = 6;

/// Maps the odds of a model to the share of its earlier answers with such odds that succeeded.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AnswerCalibration {
    /// Calibrated probability of each step of odds. Empty: the odds stay as they are.
    probabilities: Vec<f64>,
}

impl AnswerCalibration {
    /// Learns from `settled` answers. Returns a calibration that changes nothing if there are too
    /// few.
    pub(crate) fn fit(settled: &[SettledAnswer]) -> AnswerCalibration {
        let moments = settled
            .chunk_by(|one, next| one.moment == next.moment)
            .count();
        if settled.len() < MIN_ANSWERS || moments < MIN_MOMENTS {
            return AnswerCalibration::default();
        }

        let steps = OutcomeSteps::new(settled);
        let mut highest = 0.0_f64;
        let mut probabilities = Vec::with_capacity(STEPS);
        for step in 0..STEPS {
            let as_failure = steps.fitted_with(step, 0.0);
            let as_success = steps.fitted_with(step, 1.0);
            let merged = as_success / (1.0 - as_failure + as_success);
            // Rounding must not reverse the order of two answers.
            highest = highest.max(merged);
            probabilities.push(highest);
        }
        AnswerCalibration { probabilities }
    }

    /// Returns the calibrated probability for the odds `uncalibrated`.
    pub fn probability(&self, uncalibrated: f64) -> f64 {
        let calibrated = self.probabilities.get(step_of(uncalibrated));
        calibrated.copied().unwrap_or(uncalibrated)
    }

    /// Returns true if the calibration could have come from [`AnswerCalibration::fit`].
    pub(super) fn is_valid(&self) -> bool {
        let steps = &self.probabilities;
        let is_probability = |step: &f64| (0.0..=1.0).contains(step);
        (steps.is_empty() || steps.len() == STEPS) && steps.iter().all(is_probability)
    }
}

/// The calibrations that were learned at the moments of a rehearsal, in order of time.
#[derive(Debug, Default)]
pub(crate) struct CalibrationTrials {
    /// The calibration of each moment. `None` where the model was not asked.
    at_moment: Vec<Option<AnswerCalibration>>,
}

impl CalibrationTrials {
    /// Learns a calibration at `moment` from the answers that are `settled` by then. Returns it if
    /// the calibrations of earlier moments came nearer to the outcomes than the odds themselves, or
    /// else the calibration that changes nothing.
    pub(crate) fn learn(&mut self, moment: u32, settled: &[SettledAnswer]) -> AnswerCalibration {
        let learned = AnswerCalibration::fit(settled);
        let is_better = self.gain(settled) > 0.0;
        self.at_moment.resize(moment as usize, None);
        self.at_moment.push(Some(learned.clone()));
        if is_better {
            learned
        } else {
            AnswerCalibration::default()
        }
    }

    /// Returns the decrease of the Brier score by the calibrations of earlier moments, each applied
    /// to the answers of its moment, summed over the moments.
    fn gain(&self, settled: &[SettledAnswer]) -> f64 {
        let moments = settled.chunk_by(|one, next| one.moment == next.moment);
        let gain_of = |answers: &[SettledAnswer]| {
            let calibration = self.at_moment.get(answers[0].moment as usize)?.as_ref()?;
            let gain = answers.iter().map(|answer| {
                let outcome = if answer.is_success { 1.0 } else { 0.0 };
                let calibrated = calibration.probability(answer.probability);
                (answer.probability - outcome).powi(2) - (calibrated - outcome).powi(2)
            });
            Some(gain.sum::<f64>() / answers.len() as f64)
        };
        moments.filter_map(gain_of).sum()
    }
}

/// Returns the index of the step that `odds` are in.
fn step_of(odds: f64) -> usize {
    ((odds * STEPS as f64) as usize).min(STEPS - 1)
}

/// Outcomes by steps of odds.
struct OutcomeSteps {
    /// Weight, and weight of the successes, of each step.
    steps: Vec<(f64, f64)>,
}

impl OutcomeSteps {
    /// Sums `settled`, which are in order of their moments. Jobs of one cluster asked about at one
    /// moment tend to end alike, so all of them weigh as much as the root of their number.
    fn new(settled: &[SettledAnswer]) -> OutcomeSteps {
        let mut steps = vec![(0.0, 0.0); STEPS];
        for moment in settled.chunk_by(|one, next| one.moment == next.moment) {
            let mut sizes = std::collections::HashMap::new();
            for answer in moment {
                *sizes.entry(answer.cluster).or_insert(0_u32) += 1;
            }
            for answer in moment {
                let weight = 1.0 / f64::from(sizes[&answer.cluster]).sqrt();
                let sums = &mut steps[step_of(answer.probability)];
                sums.0 += weight;
                sums.1 += if answer.is_success { weight } else { 0.0 };
            }
        }
        OutcomeSteps { steps }
    }

    /// Returns the isotonic fit at `step` after one more case there, with the value `outcome`.
    /// Source: the pool-adjacent-violators algorithm (Ayer et al. 1955).
    fn fitted_with(&self, step: usize, outcome: f64) -> f64 {
        // Blocks of steps with equal fits: weight, weight of the successes, and the last step.
        let mut blocks: Vec<(f64, f64, usize)> = Vec::new();
        for (at, &(weight, successes)) in self.steps.iter().enumerate() {
            let added = if at == step { 1.0 } else { 0.0 };
            if weight + added == 0.0 {
                continue;
            }
            let mut block = (weight + added, successes + added * outcome, at);
            while let Some(before) =
                blocks.pop_if(|before| before.1 * block.0 >= block.1 * before.0)
            {
                block = (before.0 + block.0, before.1 + block.1, at);
            }
            blocks.push(block);
        }
        let after = blocks.partition_point(|block| block.2 < step);
        let (weight, successes, _) = blocks[after];
        successes / weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn answer(moment: u32, cluster: i32, probability: f64, is_success: bool) -> SettledAnswer {
        SettledAnswer {
            moment,
            cause: 0,
            cluster: (0, cluster),
            probability,
            is_success,
        }
    }

    #[test]
    fn odds_that_are_too_low_are_raised() {
        // Odds of 0.6 to 0.7 succeed in 19 of 20 cases, odds of 0.1 to 0.2 in 1 of 20.
        let settled: Vec<SettledAnswer> = (0..4_000)
            .map(|at| {
                let is_high = at % 2 == 0;
                let odds = if is_high { 0.6 } else { 0.1 } + f64::from(at % 97) / 1000.0;
                answer(at as u32 / 200, at, odds, (at / 2 % 20 == 0) != is_high)
            })
            .collect();
        let calibration = AnswerCalibration::fit(&settled);
        let high = calibration.probability(0.65);
        let low = calibration.probability(0.15);
        assert!((0.93..0.97).contains(&high), "{high}");
        assert!((0.03..0.07).contains(&low), "{low}");
        assert!(calibration.is_valid());
    }

    #[test]
    fn few_outcomes_change_nothing() {
        let few: Vec<SettledAnswer> = (0..99)
            .map(|at| answer(at as u32 / 5, at, 0.3, at % 2 == 0))
            .collect();
        assert_eq!(AnswerCalibration::fit(&few).probability(0.3), 0.3);
        let one_moment: Vec<SettledAnswer> =
            (0..999).map(|at| answer(0, at, 0.3, at % 2 == 0)).collect();
        assert_eq!(AnswerCalibration::fit(&one_moment).probability(0.3), 0.3);
    }

    #[test]
    fn calibration_is_used_once_it_has_helped() {
        // Odds of 0.3 succeed in nine of ten cases, and from moment 10 on in three of ten.
        let settled: Vec<SettledAnswer> = (0..4_000)
            .map(|at| {
                let moment = at as u32 / 100;
                let failures = if moment < 10 { 1 } else { 7 };
                answer(moment, at, 0.3, at % 10 >= failures)
            })
            .collect();
        let mut trials = CalibrationTrials::default();
        let mut used = Vec::new();
        for moment in 0..40 {
            let known = &settled[..moment as usize * 100];
            used.push(trials.learn(moment, known).probability(0.3));
        }
        assert_eq!(used[6], 0.3, "learned, but not tried yet");
        assert!(used[8] > 0.85, "{used:?}");
        assert_eq!(used[39], 0.3, "it has harmed more than it helped");
    }

    #[test]
    fn large_cluster_does_not_outweigh_many_small_ones() {
        let mut settled = Vec::new();
        for moment in 0..10 {
            // 100 jobs of one cluster fail, and 30 jobs of other clusters succeed.
            settled.extend((0..100).map(|_| answer(moment, -1, 0.5, false)));
            settled.extend((0..30).map(|at| answer(moment, at, 0.5, true)));
        }
        let probability = AnswerCalibration::fit(&settled).probability(0.5);
        assert!((0.74..0.76).contains(&probability), "{probability}");
    }

    proptest! {
        #[test]
        fn calibration_keeps_the_order(
            cases in proptest::collection::vec((0.0..1.0f64, any::<bool>()), 100..400),
        ) {
            let settled: Vec<SettledAnswer> = cases
                .iter()
                .zip(0..)
                .map(|(&(odds, success), at)| answer(at as u32 / 10, at, odds, success))
                .collect();
            let calibration = AnswerCalibration::fit(&settled);
            let scale: Vec<f64> =
                (0..=500).map(|at| calibration.probability(f64::from(at) / 500.0)).collect();
            prop_assert!(scale.is_sorted());
            prop_assert!(scale.iter().all(|p| (0.0..=1.0).contains(p)));
        }
    }
}
