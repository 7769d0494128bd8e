//! The models of a sweep over samples of logs that answer → the same fitted again on every hold that
//! was decided by the log's end, in a directory of their own beside those that were judged.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::bestmodel_info::write_best_model;
use super::ensemble_choice::EnsembleChoice;
use super::folder::SweepFolder;
use super::outcome::TrialOutcomes;
use super::paths::{ensemble_dir, trial_dir};
use super::pipeline_fit::{PipelineFit, PipelineTask};
use super::results::best_of_outcomes;
use super::trial_config::{TrialConfig, TrialModel};
use super::trial_data::trial_dataset;
use poolcast_config::Threshold;
use poolcast_models::Device;
use poolcast_holds::training::sample_features;
use poolcast_tables::FeatureTable;
use poolcast_holds::tensors::{Dataset, SplitSide};
use poolcast_holds::training::{
    Calibration, ENSEMBLE, EnsembleMember, FIT, FitScores, FitSummary, LearnedHolds, NewEnsemble,
    RollingPredictions, SampleFit, SuccessRates, TrainedModel, TrainingUpdate, copy_training,
    later_predictions, member_dir, pooled_predictions, refit_dir, refit_key, refit_network,
};
use poolcast_base::{files, manifest};

/// Fits the model of `sweep` that answers again on train, validate and test: that one advises on what
/// comes next. It is the best of the trials, which have all ended, or the best of each kind together.
/// Its scores stay those of the model that never saw the test side. It stands in `out`, as it would
/// in the sweep's own directory. What an earlier call left is gone on from, and what it finished is
/// left as it is. Where the best model was removed, and over tables, nothing is fitted again.
///
/// # Errors
/// Fails where the samples are not what they were, and where it was stopped, as `is_stopped` said.
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
    let trial = row.context("the best trial has a row")?.trial_config()?;
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

/// Puts copies of the models of `ensemble` side by side in `out`, as one model. What an earlier call
/// has finished is left as it is.
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
    let predictions = pooled_predictions(&models)?.context("they are of the same holds")?;
    let first = models.first().context("an ensemble has members")?;
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
    made.write(&dir, &best.written, &key)
}

/// The trials of `ensemble`, of which these are the models.
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

/// Fits models again on all sides of their samples.
struct Refit<'a> {
    dataset: &'a Dataset,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
}

impl Refit<'_> {
    /// Fits the model of `trial` in `dir` again, into `refit_dir`.
    fn refit_trial(&self, trial: &TrialConfig, dir: &Path, refit_dir: &Path) -> Result<()> {
        match &trial.model {
            TrialModel::Network(_) => {
                let hear = |news: TrainingUpdate<'_>| match news {
                    TrainingUpdate::Batch { .. } if (self.is_stopped)() => ControlFlow::Break(()),
                    _ => ControlFlow::Continue(()),
                };
                refit_network(self.dataset, dir, refit_dir, &Device::Cpu, hear)?;
            }
            // They learn from all samples but those that they are judged by, and are chosen by those.
            TrialModel::WaitModel(_) => {}
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

    /// The pipeline of `task` on all sides. `judged` is the one that was judged, and came to
    /// `scores`.
    fn refit_pipeline(
        &self,
        task: &PipelineTask,
        judged: &TrainedModel,
        scores: FitScores,
        threshold: Threshold,
    ) -> Result<PipelineFit> {
        let tables: Vec<FeatureTable> = SplitSide::ALL
            .iter()
            .map(|side| sample_features(self.dataset, *side))
            .collect::<Result<_>>()?;
        let predictions = later_predictions(judged, self.dataset)?;
        let samples = self.samples_of_all_sides(judged, &predictions, threshold)?;
        let table = FeatureTable::concat_classes(&tables);
        task.refit(&table, samples, scores, predictions, self.is_stopped)
    }

    /// What a model knows that is fitted as `judged` was, but on all sides; `predictions` tell how it
    /// is read.
    fn samples_of_all_sides(
        &self,
        judged: &TrainedModel,
        predictions: &RollingPredictions,
        threshold: Threshold,
    ) -> Result<SampleFit> {
        Ok(SampleFit {
            tensors: judged.tensors.clone(),
            tensors_key: judged.tensors_key.clone(),
            rates: SuccessRates::learn(self.dataset, &SplitSide::ALL)?,
            learned: LearnedHolds::new(self.dataset, &SplitSide::ALL)?,
            calibration: Calibration::fit(predictions, threshold),
            seed: judged.seed,
        })
    }

    /// Fits each member of `ensemble` again, which `judged` is and stands in `out`.
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
            let trial = row.context("the trial has a row")?.trial_config()?;
            let to = member_dir(&refitted, member.trial);
            self.refit_trial(&trial, &member_dir(&dir, member.trial), &to)?;
            models.push(TrainedModel::open(&to)?);
        }

        let predictions = later_predictions(judged, self.dataset)?;
        let threshold = best.written.training.threshold;
        let made = NewEnsemble {
            members: listed_members(ensemble, &models),
            samples: self.samples_of_all_sides(judged, &predictions, threshold)?,
            predictions,
        };
        made.write(&refitted, &best.written, &key)?;
        Ok(())
    }
}
