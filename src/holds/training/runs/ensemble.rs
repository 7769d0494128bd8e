//! Ensembles: several models of the same samples as one model, whose log-odds are the mean of
//! theirs. Models of different kinds make different errors, and the mean reduces each of them
//! (Dietterich 2000, "Ensemble methods in machine learning").

use std::path::Path;

use anyhow::Result;

use super::ensemble_summary::{EnsembleMember, EnsembleSummary};
use super::pipeline_run::SampleFit;
use super::run_dir::ENSEMBLE;
use super::trained_model::{TrainedModel, mean_of_columns};
use crate::training::scoring::RollingPredictions;
use poolcast_base::manifest;
use poolcast_config::ResolvedConfig;

/// The mean predictions of `models` for holds that came after everything they learned from. `None`
/// if the models did not predict the same holds.
///
/// # Errors
/// Fails when the predictions file of a model is missing.
pub fn pooled_predictions(models: &[TrainedModel]) -> Result<Option<RollingPredictions>> {
    let mut pooled: Option<RollingPredictions> = None;
    let mut voted = Vec::with_capacity(models.len());
    for model in models {
        let predictions = read_as_member(model)?;
        let has_same_holds = pooled.as_ref().is_none_or(|first| {
            first.samples == predictions.samples && first.cuts == predictions.cuts
        });
        if !has_same_holds {
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

/// The predictions of `model` alone, with each logit as its vote in an ensemble.
///
/// # Errors
/// Fails when the predictions file is missing.
pub fn read_as_member(model: &TrainedModel) -> Result<RollingPredictions> {
    let mut predictions = model.rolling_predictions()?;
    for logit in &mut predictions.logits {
        *logit = model.voted_logit(*logit);
    }
    Ok(predictions)
}

/// An ensemble to be written. Its members are in its directory already.
#[derive(Debug)]
pub struct NewEnsemble {
    /// Members of the ensemble.
    pub members: Vec<EnsembleMember>,
    /// The samples that the members learned from, and the calibration of their mean.
    pub samples: SampleFit,
    /// Mean predictions of the members for later holds.
    pub predictions: RollingPredictions,
}

impl NewEnsemble {
    /// Writes the predictions, the configuration and the manifest of the ensemble to `dir`. The
    /// manifest, with this `key`, is written last.
    pub fn write(self, dir: &Path, config: &ResolvedConfig, key: &str) -> Result<TrainedModel> {
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
    use crate::test_config::TestConfig;
    use crate::training::fitting::{small_dataset, train_small};
    use crate::training::{Calibration, member_dir, predict_split};
    use poolcast_tensors::Split;

    /// Trains two small runs in `place` and writes their ensemble. Returns the dataset and the
    /// member models.
    fn ensemble_of_two(dir: &Path, place: &Path) -> (poolcast_tensors::Dataset, Vec<TrainedModel>) {
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
        let config = TestConfig::load(&[]).resolved();
        ensemble.write(place, &config, "a key").expect("written");
        (dataset, models)
    }

    #[test]
    fn ensemble_log_odds_are_the_mean_over_members() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("ensemble");
        let (dataset, members) = ensemble_of_two(dir.path(), &place);
        let ensemble = TrainedModel::open(&place).expect("opened");
        assert_eq!(ensemble.members().len(), 2);

        let split = Split::Test;
        let log_odds = |p: f64| (p / (1.0 - p)).ln();
        let first = predict_split(&members[0], &dataset, split).expect("asked");
        let second = predict_split(&members[1], &dataset, split).expect("asked");
        let together = predict_split(&ensemble, &dataset, split).expect("asked");
        assert!(first != second && !together.is_empty());
        for at in 0..together.len() {
            let mean = (log_odds(first[at]) + log_odds(second[at])) / 2.0;
            let found = log_odds(together[at]) * ensemble.calibration.temperature;
            assert!((mean - found).abs() < 1e-4, "{mean} {found}");
        }

        let said = ensemble.rolling_predictions().expect("read");
        let first_predictions = members[0].rolling_predictions().expect("read");
        assert_eq!(said.samples, first_predictions.samples);
        assert_eq!(said.labels, first_predictions.labels);
    }

    #[test]
    fn replaced_and_nested_members_are_rejected() {
        let dir = tempfile::tempdir().expect("a directory");
        let place = dir.path().join("ensemble");
        let (dataset, _) = ensemble_of_two(dir.path(), &place);
        let second = member_dir(&place, 2);

        fs_err::remove_dir_all(&second).expect("removed");
        train_small(&dataset, &second, "gru");
        let refused = TrainedModel::open(&place).expect_err("another model");
        assert!(
            refused
                .to_string()
                .contains("is not a member of its ensemble")
        );

        // An ensemble that contains itself would be opened without end.
        fs_err::remove_dir_all(&second).expect("removed");
        std::os::unix::fs::symlink(&place, &second).expect("linked");
        let refused = TrainedModel::open(&place).expect_err("itself");
        assert!(
            refused
                .to_string()
                .contains("is not a member of its ensemble")
        );
    }
}
