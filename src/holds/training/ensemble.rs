//! Several models of the same samples → one whose log-odds are the mean of theirs. Their errors
//! differ where their kinds do, and the mean has less of each (Dietterich 2000, "Ensemble methods in
//! machine learning").

use std::path::Path;

use anyhow::Result;

use super::ensemble_summary::{EnsembleMember, EnsembleSummary};
use super::pipeline_run::SampleFit;
use super::rolling_predictions::RollingPredictions;
use super::run_dir::ENSEMBLE;
use super::trained_model::{TrainedModel, mean_of_columns};
use poolcast_config::Config;
use poolcast_base::manifest;

/// What `models` together say of holds that came after all that they had learned from; `None` where
/// they were not asked about the same holds.
///
/// # Errors
/// Fails where what one of them predicted is not there.
pub fn pooled_predictions(models: &[TrainedModel]) -> Result<Option<RollingPredictions>> {
    let mut pooled: Option<RollingPredictions> = None;
    let mut voted = Vec::with_capacity(models.len());
    for model in models {
        let predictions = read_as_member(model)?;
        let is_of_same_holds = pooled.as_ref().is_none_or(|first| {
            first.samples == predictions.samples && first.cuts == predictions.cuts
        });
        if !is_of_same_holds {
            return Ok(None);
        }
        voted.push(predictions.logits.clone());
        pooled.get_or_insert(predictions);
    }

    if let Some(pooled) = &mut pooled {
        pooled.logits = mean_of_columns(&voted);
    }
    Ok(pooled)
}

/// What `model` alone says of them, read as where it is a member of an ensemble.
///
/// # Errors
/// Fails where what it predicted is not there.
pub fn read_as_member(model: &TrainedModel) -> Result<RollingPredictions> {
    let mut predictions = model.rolling_predictions()?;
    for logit in &mut predictions.logits {
        *logit = model.voted_logit(*logit);
    }
    Ok(predictions)
}

/// An ensemble whose members stand in its directory already.
#[derive(Debug)]
pub struct NewEnsemble {
    /// Its members.
    pub members: Vec<EnsembleMember>,
    /// What they learned from, and how their mean is read.
    pub samples: SampleFit,
    /// What they said together of holds that came later.
    pub predictions: RollingPredictions,
}

impl NewEnsemble {
    /// Writes what makes the members in `dir` one model, the manifest with `key` last.
    pub fn write(self, dir: &Path, config: &Config, key: &str) -> Result<TrainedModel> {
        let summary = EnsembleSummary {
            members: self.members,
            samples: self.samples,
            predictions_sha256: self.predictions.write(dir)?,
        };
        config.write(dir)?;
        manifest::write(dir, ENSEMBLE, key, &summary)?;
        TrainedModel::open(dir)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensors::SplitSide;
    use crate::training::small_runs::{small_dataset, train_small};
    use crate::training::{Calibration, member_dir, predict_side};

    /// The ensemble of two small runs in `dir`, and the models that it is of.
    fn ensemble_of_two(dir: &Path, place: &Path) -> (crate::tensors::Dataset, Vec<TrainedModel>) {
        let dataset = small_dataset(dir);
        let mut models = Vec::new();
        let mut members = Vec::new();
        for (trial, model) in [(1, "lstm"), (2, "mlp")] {
            let run = member_dir(place, trial);
            train_small(&dataset, &run, model);
            let model = TrainedModel::open(&run).expect("opened");
            members.push(EnsembleMember {
                trial,
                model: model.name.clone(),
                sha256: model.sha256.clone(),
            });
            models.push(model);
        }

        let predictions = pooled_predictions(&models)
            .expect("read")
            .expect("of the same holds");
        let first = &models[0];
        let samples = SampleFit {
            tensors: first.tensors.clone(),
            tensors_key: first.tensors_key.clone(),
            rates: first.rates.clone(),
            learned: first.learned.clone(),
            calibration: Calibration::fit(&predictions, poolcast_config::Threshold::At(0.5)),
            seed: first.seed,
        };
        let ensemble = NewEnsemble {
            members,
            samples,
            predictions,
        };
        let config = Config::read(&member_dir(place, 1)).expect("read");
        ensemble.write(place, &config, "a key").expect("written");
        (dataset, models)
    }

    #[test]
    fn its_log_odds_are_the_mean_of_those_of_its_members() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("ensemble");
        let (dataset, members) = ensemble_of_two(dir.path(), &place);
        let ensemble = TrainedModel::open(&place).expect("opened");
        assert_eq!(ensemble.members().len(), 2);

        let side = SplitSide::Test;
        let log_odds = |p: f64| (p / (1.0 - p)).ln();
        let first = predict_side(&members[0], &dataset, side).expect("asked");
        let second = predict_side(&members[1], &dataset, side).expect("asked");
        let together = predict_side(&ensemble, &dataset, side).expect("asked");
        assert!(first != second && !together.is_empty());
        for at in 0..together.len() {
            let mean = (log_odds(first[at]) + log_odds(second[at])) / 2.0;
            let found = log_odds(together[at]) * ensemble.calibration.temperature;
            assert!((mean - found).abs() < 1e-4, "{mean} {found}");
        }

        let said = ensemble.rolling_predictions().expect("read");
        let of_first = members[0].rolling_predictions().expect("read");
        assert_eq!(said.samples, of_first.samples);
        assert_eq!(said.labels, of_first.labels);
    }

    #[test]
    fn members_that_are_others_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("ensemble");
        let (dataset, _) = ensemble_of_two(dir.path(), &place);
        let second = member_dir(&place, 2);

        fs_err::remove_dir_all(&second).expect("removed");
        train_small(&dataset, &second, "gru");
        let refused = TrainedModel::open(&place).expect_err("another model");
        assert!(refused.to_string().contains("is no member of its ensemble"));

        // An ensemble that holds itself would be opened for ever.
        fs_err::remove_dir_all(&second).expect("removed");
        std::os::unix::fs::symlink(&place, &second).expect("linked");
        let refused = TrainedModel::open(&place).expect_err("itself");
        assert!(refused.to_string().contains("is no member of its ensemble"));
    }
}
