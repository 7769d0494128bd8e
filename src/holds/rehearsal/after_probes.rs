//! Scores of a model after probes. If several jobs of one cause were released at about the same time, the
//! first ones are the probes, and their outcomes move the log-odds of the others.

use std::collections::HashMap;

use anyhow::Result;

use crate::answers::HoldHistory;
use crate::decision::{ProbeCause, hold_cause, probe_count};
use crate::training::{
    ProbedScores, RollingPrediction, TrainedModel, cluster_weights, predict_split,
    score_in_place_of,
};
use poolcast_base::stats::{logit, sigmoid};
use poolcast_config::WindowPosition;
use poolcast_tensors::{Dataset, Split};

/// Maximum distance by which the outcome of a probe moves the log-odds.
const MAX_SHIFT: f64 = 8.0;

/// A job of a dataset that was released from a hold.
#[derive(Debug, Clone, Copy)]
struct ReleasedJob {
    cause: ProbeCause,
    released_ms: i64,
    /// Time at which the outcome was known.
    known_ms: i64,
    is_success: bool,
}

/// Scores `model` on the test split of `dataset` as [`crate::training::evaluate_run`] does, but with
/// the outcome of a probe where several jobs of one cause were released before the outcome of the
/// first was known. Nothing about these jobs was known then, so the outcome is new. The distance by
/// which it moves the log-odds is learned from holds before the test split. `history` is the log of
/// the dataset.
///
/// Returns `None` if the model learned from other samples than those of `dataset`, if these are not
/// asked about at the release or not from `history`, and if the splits before the test are missing.
///
/// # Errors
/// Fails when the model has no predictions for holds before the test split.
pub fn score_after_probes(
    model: &TrainedModel,
    dataset: &Dataset,
    history: &HoldHistory<'_>,
    resamples: usize,
) -> Result<Option<ProbedScores>> {
    let is_of_dataset = model.tensors_key == dataset.key;
    if !is_of_dataset || dataset.summary.settings.window != WindowPosition::Release {
        return Ok(None);
    }
    let causes = HoldCauses::new(history);
    let Some(before) = causes.released(dataset, &[Split::Train, Split::Validate])? else {
        return Ok(None);
    };
    let Some(test) = causes.released(dataset, &[Split::Test])? else {
        return Ok(None);
    };

    let known = probe_outcomes(&before);
    let predictions = model.rolling_predictions()?;
    let is_of_before = |prediction: RollingPrediction| prediction.sample < known.len();
    if !predictions.iter().all(is_of_before) {
        return Ok(None);
    }
    let probed = predictions
        .iter()
        .filter_map(|prediction| Some((prediction, known[prediction.sample]?)));
    let shifts = ProbeShifts::learn(&probed.collect::<Vec<_>>(), |logit| {
        model.calibration.probability(logit)
    });

    let outcomes = probe_outcomes(&test);
    let predicted = predict_split(model, dataset, Split::Test)?;
    let moved = predicted
        .into_iter()
        .zip(&outcomes)
        .map(|(p, outcomes)| shifts.move_odds(p, *outcomes))
        .collect::<Vec<_>>();
    Ok(Some(ProbedScores {
        samples: outcomes.iter().flatten().count(),
        scores: score_in_place_of(model, dataset, Split::Test, &moved, resamples)?,
    }))
}

/// The cause of each hold of a log, by cluster, process and time of the hold.
struct HoldCauses(HashMap<(i32, i32, i64), ProbeCause>);

impl HoldCauses {
    fn new(history: &HoldHistory<'_>) -> HoldCauses {
        let jobs = history.store.jobs();
        let causes = history.holds.iter().map(|hold| {
            let job = jobs.get(hold.job as usize);
            ((job.cluster, job.proc, hold.hold_ms), hold_cause(hold))
        });
        HoldCauses(causes.collect())
    }

    /// Returns the samples of `splits` in their order, or `None` if one is of another log.
    fn released(&self, dataset: &Dataset, splits: &[Split]) -> Result<Option<Vec<ReleasedJob>>> {
        let mut all = Vec::new();
        for &split in splits {
            let cluster: Vec<i32> = dataset.column(split, "cluster")?;
            let proc: Vec<i32> = dataset.column(split, "proc")?;
            let hold_ms: Vec<i64> = dataset.column(split, "hold_time_ms")?;
            let released_ms: Vec<i64> = dataset.column(split, "asked_time_ms")?;
            let known_ms: Vec<i64> = dataset.column(split, "outcome_time_ms")?;
            let label: Vec<u8> = dataset.column(split, "label")?;
            for at in 0..label.len() {
                let hold = (cluster[at], proc[at], hold_ms[at]);
                let Some(&cause) = self.0.get(&hold) else {
                    return Ok(None);
                };
                all.push(ReleasedJob {
                    cause,
                    released_ms: released_ms[at],
                    known_ms: known_ms[at],
                    is_success: label[at] == 1,
                });
            }
        }
        Ok(Some(all))
    }
}

/// Outcomes of the probes of a cause: how many failed, and how many succeeded.
type ProbeOutcomes = (u8, u8);

/// Returns the outcomes of the probes of each released job, `[n]`; `None` for the probes themselves.
fn probe_outcomes(released: &[ReleasedJob]) -> Vec<Option<ProbeOutcomes>> {
    let mut order: Vec<usize> = (0..released.len()).collect();
    order.sort_by_key(|&at| (released[at].cause, released[at].released_ms));

    let mut outcomes = vec![None; released.len()];
    let mut rest = order.as_slice();
    while let Some(&first) = rest.first() {
        let first = released[first];
        let is_beside = |&&at: &&usize| {
            released[at].cause == first.cause && released[at].released_ms < first.known_ms
        };
        let together = rest.iter().take_while(is_beside).count().max(1);
        let (beside, later) = rest.split_at(together);
        rest = later;

        let (probes, others) = beside.split_at(probe_count(together));
        let succeeded = probes.iter().filter(|&&at| released[at].is_success).count() as u8;
        for &at in others {
            outcomes[at] = Some((probes.len() as u8 - succeeded, succeeded));
        }
    }
    outcomes
}

/// The distance by which each combination of outcomes moves the log-odds of the other jobs of the cause.
#[derive(Debug)]
struct ProbeShifts(HashMap<ProbeOutcomes, f64>);

impl ProbeShifts {
    /// Learns from predictions, each with the outcomes of the probes of its cause, and turned into a
    /// probability of success by `probability`.
    fn learn(
        probed: &[(RollingPrediction, ProbeOutcomes)],
        probability: impl Fn(f32) -> f64,
    ) -> ProbeShifts {
        let clusters: Vec<u32> = probed.iter().map(|(of_job, _)| of_job.cluster).collect();
        let mut predicted: HashMap<ProbeOutcomes, Vec<WeightedPrediction>> = HashMap::new();
        for ((prediction, outcomes), weight) in probed.iter().zip(cluster_weights(&clusters)) {
            let list = predicted.entry(*outcomes).or_default();
            list.push(WeightedPrediction {
                log_odds: logit(probability(prediction.logit)).into(),
                is_success: prediction.label,
                weight,
            });
        }
        let shift = |(outcomes, list): (ProbeOutcomes, Vec<_>)| (outcomes, likeliest_shift(&list));
        ProbeShifts(predicted.into_iter().map(shift).collect())
    }

    /// Returns the probability of success `p` after the `outcomes` of probes, if there were some.
    fn move_odds(&self, p: f64, outcomes: Option<ProbeOutcomes>) -> f64 {
        match outcomes.and_then(|outcomes| self.0.get(&outcomes)) {
            Some(shift) => sigmoid(f64::from(logit(p)) + shift),
            None => p,
        }
    }
}

/// A prediction that is learned from. The jobs of a large cluster tend to end alike, so each of them has
/// less weight.
#[derive(Debug, Clone, Copy)]
struct WeightedPrediction {
    log_odds: f64,
    is_success: bool,
    weight: f64,
}

/// Returns the shift of the log-odds under which the outcomes are most likely, drawn to 0 by a standard
/// normal distribution as its prior.
fn likeliest_shift(predicted: &[WeightedPrediction]) -> f64 {
    let slope = |shift: f64| {
        let terms = predicted.iter().map(|job| {
            let error = f64::from(u8::from(job.is_success)) - sigmoid(job.log_odds + shift);
            job.weight * error
        });
        terms.sum::<f64>() - shift
    };

    // The slope falls with the shift, so it changes sign once. Bisection finds that point.
    let (mut low, mut high) = (-MAX_SHIFT, MAX_SHIFT);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if slope(middle) > 0.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(cause: u64, released_ms: i64, known_ms: i64, is_success: bool) -> ReleasedJob {
        ReleasedJob {
            cause: (1, cause),
            released_ms,
            known_ms,
            is_success,
        }
    }

    #[test]
    fn first_release_of_a_cause_is_the_probe_until_its_outcome_is_known() {
        let released = [
            job(7, 10, 20, true),
            job(7, 10, 15, false),
            job(8, 12, 90, false),
            job(7, 19, 40, false),
            job(7, 20, 30, false),
            job(7, 29, 35, true),
        ];
        let outcomes = probe_outcomes(&released);
        let succeeded = Some((0, 1));
        assert_eq!(
            outcomes,
            [None, succeeded, None, succeeded, None, Some((1, 0))]
        );
    }

    #[test]
    fn two_of_many_jobs_are_probes() {
        let many = |count| vec![job(7, 10, 20, true); count];
        assert_eq!(probe_outcomes(&many(5))[1..], [Some((0, 1)); 4]);
        let mut released = many(6);
        released[1].is_success = false;
        let outcomes = probe_outcomes(&released);
        assert_eq!(outcomes[..2], [None; 2]);
        assert_eq!(outcomes[2..], [Some((1, 1)); 4]);
    }

    #[test]
    fn job_whose_outcome_is_known_at_once_is_a_probe_of_nothing() {
        let released = [job(7, 10, 10, true), job(7, 10, 10, true)];
        assert_eq!(probe_outcomes(&released), [None, None]);
    }

    #[test]
    fn outcomes_of_probes_move_the_odds_as_they_did_before() {
        let prediction = |(cluster, label)| RollingPrediction {
            sample: 0,
            cluster,
            cut: 0,
            logit: 0.0,
            label,
        };
        // After a success, nine of ten others succeed, and after a failure half of them, as predicted.
        let after_success = (0..400).map(|at| (prediction((at, at % 10 > 0)), (0, 1)));
        let after_failure = (400..800).map(|at| (prediction((at, at % 2 > 0)), (1, 0)));
        let probed: Vec<_> = after_success.chain(after_failure).collect();
        let shifts = ProbeShifts::learn(&probed, |logit| sigmoid(f64::from(logit)));

        let after = |outcomes| shifts.move_odds(0.5, outcomes);
        assert!((after(Some((0, 1))) - 0.9).abs() < 0.01, "{shifts:?}");
        assert!((after(Some((1, 0))) - 0.5).abs() < 1e-9, "{shifts:?}");
        assert_eq!(after(None), 0.5);
        assert_eq!(after(Some((2, 0))), 0.5, "nothing like it was learned from");
    }

    #[test]
    fn few_outcomes_of_probes_move_the_odds_little() {
        let successes = |count: usize| {
            let success = WeightedPrediction {
                log_odds: 0.0,
                is_success: true,
                weight: 1.0,
            };
            likeliest_shift(&vec![success; count])
        };
        assert!(successes(0).abs() < 1e-12);
        assert!((0.3..0.5).contains(&successes(1)), "{}", successes(1));
        assert!((4.0..6.0).contains(&successes(1000)), "{}", successes(1000));
    }
}
