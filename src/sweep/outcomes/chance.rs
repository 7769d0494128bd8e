//! Tests whether any trial of a sweep predicts later holds better than chance.

use std::path::Path;

use anyhow::Result;

use super::bbc_cv::ScoreEstimate;
use super::best_model::BestModel;
use super::rolling_truth::RollingTruth;
use crate::config::Config;
use crate::plan::SweepFolder;
use crate::plan::{PREDICTIONS_FILE, trial_dir};
use poolcast_config::{Goal, Metric, MetricName};
use poolcast_holds::training::RollingPredictions;

/// The ROC-AUC of random guesses.
const CHANCE_ROC_AUC: f64 = 0.5;

/// The ROC-AUC of the best trial on the samples after the time cuts, if nothing was learned.
/// Nothing was learned if no trial has an interval above the one of random guesses. `None` if one has,
/// or if no predictions were kept.
///
/// # Errors
/// Fails if predictions do not match their manifest.
pub fn no_better_than_chance(
    sweep: &SweepFolder,
    best: &BestModel,
) -> Result<Option<ScoreEstimate>> {
    let others = best.trials.iter().map(|trial| trial.trial);
    let trials = [best.trial]
        .into_iter()
        .chain(others.filter(|trial| *trial != best.trial));
    roc_auc_if_none_beats_chance(&sweep.dir, &sweep.config, trials)
}

/// Like [`no_better_than_chance`], for `trials` of the sweep in `dir`, the best trial first.
fn roc_auc_if_none_beats_chance(
    dir: &Path,
    config: &Config,
    trials: impl Iterator<Item = usize>,
) -> Result<Option<ScoreEstimate>> {
    let mut of_best = None;
    for trial in trials {
        let Some(area) = trial_roc_auc(&trial_dir(dir, trial), config)? else {
            continue;
        };
        if area.low > CHANCE_ROC_AUC {
            return Ok(None);
        }
        of_best = of_best.or(Some(area));
    }
    Ok(of_best)
}

/// The ROC-AUC of the predictions for later holds by the trial in `dir`, with its interval by
/// cluster. `None` if the predictions were not kept.
fn trial_roc_auc(dir: &Path, config: &Config) -> Result<Option<ScoreEstimate>> {
    if !dir.join(PREDICTIONS_FILE).is_file() {
        return Ok(None);
    }

    let predicted = RollingPredictions::read(dir)?;
    let truth = RollingTruth::new(&predicted);
    let metric = Metric {
        name: MetricName::ValidationRocAuc,
        goal: Goal::Maximize,
        reported: None,
        target: None,
    };
    let probabilities = predicted.class_probabilities();
    let resamples = config.evaluation.resamples;
    Ok(truth
        .targets()
        .interval(&metric, &probabilities, resamples, config.seed))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand::Rng as _;

    use super::*;
    use poolcast_holds::training::RollingPrediction;

    #[test]
    fn one_trial_above_chance_is_enough() {
        let dir = tempfile::tempdir().expect("a directory");
        let config = Config::load(None, &BTreeMap::new()).expect("a configuration");
        let mut random = poolcast_base::seed::generator(1, "chance", &[]);
        for (trial, strength) in [(1, 0.0), (2, 3.0)] {
            let mut predictions = RollingPredictions::default();
            for sample in 0..200 {
                let label = sample % 3 == 0;
                let known = if label { strength } else { 0.0 };
                predictions.push(RollingPrediction {
                    sample,
                    cluster: sample as u32,
                    cut: 0,
                    logit: known + random.random_range(-1.0..1.0),
                    label,
                });
            }
            let place = trial_dir(dir.path(), trial);
            fs_err::create_dir_all(&place).expect("made");
            predictions.write(&place).expect("written");
        }

        let area = |trials: &[usize]| {
            roc_auc_if_none_beats_chance(dir.path(), &config, trials.iter().copied()).expect("read")
        };
        let of_guess = area(&[1]).expect("nothing was learned");
        assert!(of_guess.low < 0.5 && of_guess.high > 0.5, "{of_guess:?}");
        assert_eq!(area(&[1, 2]), None);
        assert_eq!(area(&[3]), None, "nobody kept its predictions");
    }
}
