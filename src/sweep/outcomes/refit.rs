//! Refits the models that answer for a sweep over samples of logs, on every hold that was decided
//! by the log's end. The refitted models have their own directory, next to the models that were
//! scored.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::bestmodel_info::write_best_model;
use super::ensemble_choice::EnsembleChoice;
use super::outcome::TrialOutcomes;
use super::results::best_of_outcomes;
use crate::attempts::trial_dataset;
use crate::attempts::{PipelineFit, PipelineTask};
use crate::config::Config;
use crate::plan::SweepFolder;
use crate::plan::{TrialConfig, TrialModel};
use crate::plan::{ensemble_dir, trial_dir};
use poolcast_base::{files, manifest};
use poolcast_config::Threshold;
use poolcast_holds::training::sample_features;
use poolcast_holds::training::{
    Calibration, ENSEMBLE, EnsembleMember, FIT, FitScores, FitSummary, LearnedHolds, NewEnsemble,
    RollingPredictions, RunLocation, SampleFit, SuccessRates, TrainedModel, TrainingUpdate,
    copy_training, later_predictions, member_dir, pooled_predictions, refit_dir, refit_key,
    refit_network,
};
use poolcast_models::Device;
use poolcast_tables::FeatureTable;
use poolcast_tensors::{Dataset, Split};

/// Refits the model of `sweep` that answers (the best trial or the ensemble) on the splits train,
/// validate and test, so that it can advise on later holds. All trials must have ended. The
/// reported scores remain the scores of the model that never saw the test split. The refitted model
/// is written to `out`, with the same paths as in the sweep's own directory. An unfinished earlier
/// call is continued, and a finished refit is left unchanged. Nothing is refitted over tables, or
/// if the best model was removed.
///
/// # Errors
/// Fails if the samples have changed, and if `is_stopped` returned true.
pub fn refit_best(
    sweep: &SweepFolder,
    out: &Path,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<()> {
    let mut outcomes = TrialOutcomes::read(sweep)?;
    let Ok(best) = best_of_outcomes(sweep, &mut outcomes) else {
        return Ok(());
    };
    let dir = trial_dir(&sweep.dir, best.trial);
    if !dir.join(manifest::FILE).is_file() {
        return Ok(());
    }

    let row = outcomes.row_of(best.trial)?;
    let trial = row.context("the best trial has no row")?.trial_config()?;
    let dataset = trial_dataset(sweep, &trial)?;
    let refit = Refit {
        dataset: &dataset,
        is_stopped,
    };
    match &best.ensemble {
        Some(ensemble) => {
            let made = make_ensemble(sweep, out, ensemble, &trial)?;
            refit.refit_ensemble(&made, ensemble, &trial, &mut outcomes, out)?;
        }
        None => refit.refit_trial(&trial, &dir, &refit_dir(&trial_dir(out, best.trial)))?,
    }
    write_best_model(&sweep.dir, out, &best)
}

/// Copies the models of `ensemble` to `out`, as members of one model. A finished ensemble of an
/// earlier call is left unchanged.
fn make_ensemble(
    sweep: &SweepFolder,
    out: &Path,
    ensemble: &EnsembleChoice,
    best: &TrialConfig,
) -> Result<TrainedModel> {
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
        return TrainedModel::open(&dir);
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
    made.write(&dir, &best.written.resolved()?, &key)
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

/// Refits models on all splits of their samples.
struct Refit<'a> {
    dataset: &'a Dataset,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Refit<'_> {
    /// Refits the model of `trial` in `dir`, into `refit_dir`.
    fn refit_trial(&self, trial: &TrialConfig, dir: &Path, refit_dir: &Path) -> Result<()> {
        match &trial.model {
            TrialModel::Network(_) => {
                let on_update = |update: TrainingUpdate<'_>| match update {
                    TrainingUpdate::Batch { .. } if (self.is_stopped)() => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                };
                let run = Config::read(dir)?;
                let settings = run.training_settings()?;
                let resolved = run.resolved()?;
                let place = RunLocation {
                    dir: refit_dir,
                    config: &resolved,
                    checkpoint_minutes: run.training.checkpoint_minutes,
                };
                refit_network(self.dataset, dir, &settings, place, &Device::Cpu, on_update)?;
            }
            // Wait models are not refitted: they learn from all samples except the held-back ones,
            // by which they are chosen. A program is not run again.
            TrialModel::WaitModel(_) | TrialModel::Command(_) => {}
            TrialModel::Pipeline(task) => {
                let judged = TrainedModel::open(dir)?;
                let key = refit_key(&judged)?;
                if manifest::finished_key(refit_dir, FIT).as_ref() != Some(&key) {
                    let scores = manifest::read::<FitSummary>(dir, FIT)?.body.scores;
                    let threshold = trial.written.training.threshold;
                    let fit = self.refit_pipeline(task, &judged, scores, threshold)?;
                    fit.write(refit_dir, &trial.written, &key)?;
                }
            }
        }
        Ok(())
    }

    /// Refits the pipeline of `task` on all splits. `judged` is the model that was scored, with
    /// `scores`.
    fn refit_pipeline(
        &self,
        task: &PipelineTask,
        judged: &TrainedModel,
        scores: FitScores,
        threshold: Threshold,
    ) -> Result<PipelineFit> {
        let tables: Vec<FeatureTable> = Split::ALL
            .iter()
            .map(|split| sample_features(self.dataset, *split))
            .collect::<Result<_>>()?;
        let predictions = later_predictions(judged, self.dataset)?;
        let samples = self.samples_of_all_splits(judged, &predictions, threshold)?;
        let table = FeatureTable::concat_classes(&tables);
        task.refit(&table, samples, scores, predictions, self.is_stopped)
    }

    /// The facts about a model that is fitted like `judged`, but on all splits. `predictions`
    /// determine its calibration.
    fn samples_of_all_splits(
        &self,
        judged: &TrainedModel,
        predictions: &RollingPredictions,
        threshold: Threshold,
    ) -> Result<SampleFit> {
        Ok(SampleFit {
            tensors: judged.tensors.clone(),
            tensors_key: judged.tensors_key.clone(),
            rates: SuccessRates::learn(self.dataset, &Split::ALL)?,
            learned: LearnedHolds::new(self.dataset, &Split::ALL)?,
            calibration: Calibration::fit(predictions, threshold),
            seed: judged.seed,
        })
    }

    /// Refits each member of `ensemble`, whose model in `out` is `judged`.
    fn refit_ensemble(
        &self,
        judged: &TrainedModel,
        ensemble: &EnsembleChoice,
        best: &TrialConfig,
        outcomes: &mut TrialOutcomes,
        out: &Path,
    ) -> Result<()> {
        let dir = ensemble_dir(out);
        let refitted = refit_dir(&dir);
        let key = refit_key(judged)?;
        if manifest::finished_key(&refitted, ENSEMBLE).as_ref() == Some(&key) {
            return Ok(());
        }

        let mut models = Vec::with_capacity(ensemble.trials.len());
        for member in &ensemble.trials {
            let row = outcomes.row_of(member.trial)?;
            let trial = row.context("the trial has no row")?.trial_config()?;
            let to = member_dir(&refitted, member.trial);
            self.refit_trial(&trial, &member_dir(&dir, member.trial), &to)?;
            models.push(TrainedModel::open(&to)?);
        }

        let predictions = later_predictions(judged, self.dataset)?;
        let threshold = best.written.training.threshold;
        let made = NewEnsemble {
            members: listed_members(ensemble, &models),
            samples: self.samples_of_all_splits(judged, &predictions, threshold)?,
            predictions,
        };
        made.write(&refitted, &best.written.resolved()?, &key)?;
        Ok(())
    }
}
