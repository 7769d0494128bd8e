//! The model of a sweep whose answer is an ensemble: the members are copied into a directory of their own.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::ensemble_choice::EnsembleChoice;
use super::outcome::TrialOutcomes;
use super::results::best_of_outcomes;
use crate::plan::{SweepFolder, TrialConfig, ensemble_dir, trial_dir};
use poolcast_base::{files, manifest};
use poolcast_holds::training::{
    Calibration, ENSEMBLE, EnsembleMember, NewEnsemble, SampleFit, TrainedModel, copy_training,
    member_dir, pooled_predictions,
};

/// Writes the ensemble of `sweep` to `out`, if one was chosen. All trials must have ended. Nothing is written if the
/// best model was removed.
///
/// # Errors
/// Fails if a member cannot be read.
pub fn write_ensemble(sweep: &SweepFolder, out: &Path) -> Result<()> {
    let mut outcomes = TrialOutcomes::read(sweep)?;
    let Ok(best) = best_of_outcomes(sweep, &mut outcomes) else {
        return Ok(());
    };
    let is_there = trial_dir(&sweep.dir, best.trial).join(manifest::FILE);
    if let Some(ensemble) = best.ensemble.as_ref().filter(|_| is_there.is_file()) {
        let row = outcomes.row_of(best.trial)?;
        let trial = row.context("the best trial has no row")?.trial_config()?;
        make_ensemble(sweep, out, ensemble, &trial)?;
    }
    Ok(())
}

/// Copies the models of `ensemble` to `out`, as members of one model. A finished ensemble of an
/// earlier call is left unchanged.
fn make_ensemble(
    sweep: &SweepFolder,
    out: &Path,
    ensemble: &EnsembleChoice,
    best: &TrialConfig,
) -> Result<()> {
    let mut models = Vec::with_capacity(ensemble.trials.len());
    for member in &ensemble.trials {
        models.push(TrainedModel::open(&trial_dir(&sweep.dir, member.trial))?);
    }
    let keys: Vec<(&str, &str)> = models
        .iter()
        .map(|model| (model.key.as_str(), model.sha256.as_str()))
        .collect();
    let key = manifest::key(&("ensemble", keys))?;
    let dir = ensemble_dir(out);
    if manifest::finished_key(&dir, ENSEMBLE).as_ref() == Some(&key) {
        return Ok(());
    }

    files::remove_all([dir.clone()])?;
    for member in &ensemble.trials {
        let copy = member_dir(&dir, member.trial);
        copy_training(&trial_dir(&sweep.dir, member.trial), &copy)?;
    }
    let predictions = pooled_predictions(&models)?
        .context("the members of the ensemble predict different holds")?;
    let first = models.first().context("the ensemble has no members")?;
    let samples = SampleFit {
        tensors: first.tensors.clone(),
        tensors_key: first.tensors_key.clone(),
        rates: first.rates.clone(),
        learned: first.learned.clone(),
        calibration: Calibration::fit(&predictions, best.written.training.threshold),
        seed: first.seed,
    };
    let made = NewEnsemble {
        members: listed_members(ensemble, &models),
        samples,
        predictions,
    };
    made.write(&dir, &best.written.resolved()?, &key)?;
    Ok(())
}

/// The list of members of `ensemble`, whose models are `models`.
fn listed_members(ensemble: &EnsembleChoice, models: &[TrainedModel]) -> Vec<EnsembleMember> {
    let mut members = Vec::with_capacity(models.len());
    for (member, model) in ensemble.trials.iter().zip(models) {
        members.push(EnsembleMember {
            trial: member.trial,
            model: member.model.clone(),
            sha256: model.sha256.clone(),
        });
    }
    members
}
