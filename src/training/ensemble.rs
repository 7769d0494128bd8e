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
use crate::config::Config;
use crate::manifest;

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
