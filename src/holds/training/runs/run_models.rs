//! The models of a run: the judged model, and its refit on all outcomes that were decided by the
//! end of the log.

use std::path::Path;

use anyhow::Result;

use super::run_dir::refit_dir;
use super::trained_model::TrainedModel;
use crate::training::fitting::refit_key;
use poolcast_base::manifest;

/// The models of a run.
#[derive(Debug)]
pub struct RunModels {
    /// The model that was judged on holds that it did not learn from.
    pub judged: TrainedModel,
    /// The same model refitted on every hold that was decided by the end of the log, if there is
    /// one.
    pub refitted: Option<TrainedModel>,
}

impl RunModels {
    /// Opens the models of the run, or of the fitted pipeline, in `dir`.
    ///
    /// # Errors
    /// Fails like [`TrainedModel::open`].
    pub fn open(dir: &Path) -> Result<RunModels> {
        RunModels::open_both(dir, &refit_dir(dir))
    }

    /// Like [`RunModels::open`], but with the refitted model in `refit_dir`.
    pub fn open_both(dir: &Path, refit_dir: &Path) -> Result<RunModels> {
        let judged = TrainedModel::open(dir)?;
        let mut refitted = None;
        if refit_dir.join(manifest::FILE).is_file() {
            // Ignore a refit of an earlier model. It is made again when it is needed.
            let model = TrainedModel::open(refit_dir)?;
            refitted = (model.key == refit_key(&judged)?).then_some(model);
        }
        Ok(RunModels { judged, refitted })
    }

    /// All models of the run.
    pub fn all(&self) -> impl Iterator<Item = &TrainedModel> {
        std::iter::once(&self.judged).chain(&self.refitted)
    }

    /// The model for a hold with prediction time `asked_ms`. This is the refitted model if all
    /// outcomes it learned from were decided by then, else the judged model.
    pub fn at_moment(&self, asked_ms: i64) -> &TrainedModel {
        match &self.refitted {
            Some(refitted) if refitted.learned.decided_ms <= asked_ms => refitted,
            _ => &self.judged,
        }
    }
}
