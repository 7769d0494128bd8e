//! The best trial over samples of logs → its model fitted again on every hold that was decided by the
//! log's end, in a directory of its own beside the model that was judged.

use std::ops::ControlFlow;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::bestmodel_info::write_best_model;
use super::folder::SweepFolder;
use super::outcome::TrialOutcomes;
use super::paths::trial_dir;
use super::pipeline_fit::{PipelineFit, PipelineTask};
use super::results::best_of_outcomes;
use super::trial_config::TrialModel;
use super::trial_data::trial_dataset;
use crate::config::Threshold;
use crate::manifest;
use crate::models::Device;
use crate::tables::{FeatureTable, sample_features};
use crate::tensors::{Dataset, SplitSide};
use crate::training::{
    Calibration, FIT, FitScores, FitSummary, LearnedHolds, SampleFit, SuccessRates, TrainedModel,
    TrainingUpdate, later_predictions, refit_dir, refit_key, refit_network,
};

/// Fits the best of the trials of `sweep`, which have all ended, again on train, validate and test:
/// that model advises on what comes next. Its scores stay those of the model that never saw the test
/// side. It stands in `out`, as it would in the sweep's own directory. What an earlier call left is
/// gone on from, and what it finished is left as it is. Where the best model was removed, and over
/// tables, nothing is fitted again.
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
    let refit_dir = refit_dir(&trial_dir(out, best.trial));
    match &trial.model {
        TrialModel::Network(_) => {
            let hear = |news: TrainingUpdate<'_>| match news {
                TrainingUpdate::Batch { .. } if is_stopped() => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            refit_network(&dataset, &dir, &refit_dir, &Device::Cpu, hear)?;
        }
        TrialModel::Pipeline(task) => {
            let judged = TrainedModel::open(&dir)?;
            let key = refit_key(&judged)?;
            if manifest::finished_key(&refit_dir, FIT).as_ref() != Some(&key) {
                let scores = manifest::read::<FitSummary>(&dir, FIT)?.body.scores;
                let threshold = trial.written.training.threshold;
                let fit = refit_pipeline(&dataset, task, &judged, scores, threshold, is_stopped)?;
                fit.write(&refit_dir, &trial.written, &key)?;
            }
        }
    }
    write_best_model(&sweep.dir, out, &best)
}

/// The pipeline of `task` on all sides of `dataset`. `judged` is the one that was judged, and came to
/// `scores`.
fn refit_pipeline(
    dataset: &Dataset,
    task: &PipelineTask,
    judged: &TrainedModel,
    scores: FitScores,
    threshold: Threshold,
    is_stopped: &(dyn Fn() -> bool + Sync),
) -> Result<PipelineFit> {
    let tables: Vec<FeatureTable> = SplitSide::ALL
        .iter()
        .map(|side| sample_features(dataset, *side))
        .collect::<Result<_>>()?;
    let predictions = later_predictions(judged, dataset)?;
    let samples = SampleFit {
        tensors: judged.tensors.clone(),
        tensors_key: judged.tensors_key.clone(),
        rates: SuccessRates::learn(dataset, &SplitSide::ALL)?,
        learned: LearnedHolds::new(dataset, &SplitSide::ALL)?,
        calibration: Calibration::fit(&predictions, threshold),
        seed: judged.seed,
    };
    let table = FeatureTable::concat(&tables);
    task.refit(&table, samples, scores, predictions, is_stopped)
}
