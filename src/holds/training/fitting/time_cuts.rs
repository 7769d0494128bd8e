//! Time cuts for rolling-origin evaluation (Tashman 2000): for each of several cutoffs, the samples
//! that a model learns from and the later samples that it predicts.

use anyhow::{Result, ensure};

use poolcast_base::error::hinted;
use poolcast_config::SplitMethod;
use poolcast_tensors::{Dataset, Split};

/// Splits whose samples a trial learns from and is judged on, in the order of sample indices. The
/// test split is used for neither.
pub const LEARNED_SPLITS: [Split; 2] = [Split::Train, Split::Validate];

/// Share of the samples, by prediction time, before the first cut.
const FIRST_CUT_SHARE: f64 = 0.4;

/// Samples that one model learns from and predicts, as indices over [`LEARNED_SPLITS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeCut {
    /// Samples whose outcome was decided before the cut.
    pub learned: Vec<usize>,
    /// Samples whose prediction time is at or after the cut and before the next one.
    pub predicted: Vec<usize>,
}

/// The splits that the final model learns from, given the number of `cuts`.
pub fn learned_splits(dataset: &Dataset, cuts: usize) -> &'static [Split] {
    if has_single_cut(dataset, cuts) {
        &LEARNED_SPLITS[..1]
    } else {
        &LEARNED_SPLITS
    }
}

/// Returns true if a single model learns from train and predicts validate.
fn has_single_cut(dataset: &Dataset, cuts: usize) -> bool {
    cuts <= 1 || dataset.summary.settings.split != SplitMethod::Time
}

/// Prediction time of a sample, and the time at which its outcome was decided.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampleTimes {
    pub(crate) asked_ms: i64,
    pub(crate) decided_ms: i64,
}

/// Returns the time cuts of `dataset`, `cuts` of them. Each divides the samples of train and
/// validate in time, and together they predict the last six tenths of these samples. One more cut,
/// the last, learns from all samples and predicts none. It yields the final model. With one cut, or
/// if the splits are not divided by time, there is only one model, which learns from train and
/// predicts validate.
///
/// # Errors
/// Fails when a split has no samples, or no cut has samples to learn from.
pub fn time_cuts(dataset: &Dataset, cuts: usize) -> Result<Vec<TimeCut>> {
    check_splits(dataset)?;
    let train = dataset.len(Split::Train);
    let count = train + dataset.len(Split::Validate);
    if has_single_cut(dataset, cuts) {
        return Ok(vec![TimeCut {
            learned: (0..train).collect(),
            predicted: (train..count).collect(),
        }]);
    }

    let found = rolling_cuts(&sample_times(dataset)?, cuts);
    ensure!(
        !found.is_empty(),
        hinted(
            "no outcome was decided before the first time cut",
            "parse a longer log, or set `training.time_cuts` to 1"
        )
    );
    Ok(found)
}

/// Cuts samples with these `times` in time, `cuts` times, and adds the cut that learns from all and predicts none.
/// Returns no cut if no outcome was decided before the others.
pub(crate) fn rolling_cuts(times: &[SampleTimes], cuts: usize) -> Vec<TimeCut> {
    let mut found = cut_in_time(times, cuts);
    // A cut needs samples to learn from and samples to predict.
    found.retain(|cut| !cut.learned.is_empty() && !cut.predicted.is_empty());
    if !found.is_empty() {
        found.push(TimeCut {
            learned: (0..times.len()).collect(),
            predicted: Vec::new(),
        });
    }
    found
}

fn sample_times(dataset: &Dataset) -> Result<Vec<SampleTimes>> {
    let mut times = Vec::new();
    for split in LEARNED_SPLITS {
        let asked: Vec<i64> = dataset.column(split, "asked_time_ms")?;
        let decided: Vec<i64> = dataset.column(split, "outcome_time_ms")?;
        for (asked_ms, decided_ms) in asked.into_iter().zip(decided) {
            times.push(SampleTimes {
                asked_ms,
                decided_ms,
            });
        }
    }
    Ok(times)
}

/// Places the cuts so that equally many samples follow each. Samples of one millisecond stay
/// together.
fn cut_in_time(times: &[SampleTimes], cuts: usize) -> Vec<TimeCut> {
    let mut asked_ms: Vec<i64> = times.iter().map(|times| times.asked_ms).collect();
    asked_ms.sort_unstable();
    let cutoff_ms = |cut: usize| {
        let share = FIRST_CUT_SHARE + (1.0 - FIRST_CUT_SHARE) * cut as f64 / cuts as f64;
        let at = (share * asked_ms.len() as f64) as usize;
        asked_ms.get(at).copied().unwrap_or(i64::MAX)
    };

    let mut found = Vec::with_capacity(cuts);
    for cut in 0..cuts {
        let from_ms = cutoff_ms(cut);
        let to_ms = cutoff_ms(cut + 1);
        // Only outcomes known before the cut are learned, as in later use.
        let is_learned = |at: &usize| times[*at].decided_ms < from_ms;
        let is_predicted = |at: &usize| (from_ms..to_ms).contains(&times[*at].asked_ms);
        found.push(TimeCut {
            learned: (0..times.len()).filter(is_learned).collect(),
            predicted: (0..times.len()).filter(is_predicted).collect(),
        });
    }
    found
}

fn check_splits(dataset: &Dataset) -> Result<()> {
    for split in LEARNED_SPLITS {
        ensure!(
            !dataset.is_empty(split),
            hinted(
                format!("there are no {} samples", split.name()),
                "parse a longer log, or change `preprocessing.fractions`"
            )
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times(of: &[(i64, i64)]) -> Vec<SampleTimes> {
        of.iter()
            .map(|&(asked_ms, lasts_ms)| SampleTimes {
                asked_ms,
                decided_ms: asked_ms + lasts_ms,
            })
            .collect()
    }

    #[test]
    fn outcomes_after_the_cutoff_are_not_learned() {
        let of: Vec<(i64, i64)> = (0..10)
            .map(|at| (10 * at, if at == 1 { 55 } else { 5 }))
            .collect();
        let cuts = cut_in_time(&times(&of), 2);
        assert_eq!(
            cuts,
            [
                TimeCut {
                    learned: vec![0, 2, 3],
                    predicted: vec![4, 5, 6]
                },
                TimeCut {
                    learned: vec![0, 1, 2, 3, 4, 5, 6],
                    predicted: vec![7, 8, 9]
                }
            ]
        );
    }

    proptest! {
        #[test]
        fn samples_are_predicted_once_and_learned_after_their_decision(
            of in prop::collection::vec((0i64..500, 0i64..100), 1..80),
            cuts in 2usize..6,
        ) {
            let times = times(&of);
            let found = cut_in_time(&times, cuts);
            let mut predicted: Vec<usize> = Vec::new();
            for cut in &found {
                let first_ms = cut.predicted.iter().map(|&at| times[at].asked_ms).min();
                for &at in &cut.learned {
                    prop_assert!(first_ms.is_none_or(|first_ms| times[at].decided_ms < first_ms));
                }
                predicted.extend(&cut.predicted);
            }
            let count = predicted.len();
            predicted.sort_unstable();
            predicted.dedup();
            prop_assert_eq!(count, predicted.len());
            prop_assert!(10 * count >= 6 * times.len(), "{} of {}", count, times.len());
        }
    }
}
