//! The models of a run: the one that was judged, and the same fitted again on all that was decided
//! by the log's end.

use std::path::Path;

use anyhow::Result;

use super::refit::refit_key;
use super::run_dir::refit_dir;
use super::trained_model::TrainedModel;
use poolcast_base::manifest;

/// The models of a run.
#[derive(Debug)]
pub struct RunModels {
    /// The one that was judged on holds that it did not learn from.
    pub judged: TrainedModel,
    /// The same fitted again on every hold that was decided by the log's end, if it was.
    pub refitted: Option<TrainedModel>,
}

impl RunModels {
    /// Opens those of the run, or of the fit of a pipeline, in `dir`.
    ///
    /// # Errors
    /// Those of [`TrainedModel::open`].
    pub fn open(dir: &Path) -> Result<RunModels> {
        RunModels::open_both(dir, &refit_dir(dir))
    }

    /// The same where the refitted one is in `refit_dir`.
    pub fn open_both(dir: &Path, refit_dir: &Path) -> Result<RunModels> {
        let judged = TrainedModel::open(dir)?;
        let mut refitted = None;
        if refit_dir.join(manifest::FILE).is_file() {
            // One of an earlier model is none of this one's, and is made anew where it is wanted.
            let model = TrainedModel::open(refit_dir)?;
            refitted = (model.key == refit_key(&judged)?).then_some(model);
        }
        Ok(RunModels { judged, refitted })
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &TrainedModel> {
        std::iter::once(&self.judged).chain(&self.refitted)
    }

    /// The model to ask about a hold at `asked_ms`: the refitted one, if all that it learned from was
    /// decided by then; else the one that was judged.
    pub fn at_moment(&self, asked_ms: i64) -> &TrainedModel {
        match &self.refitted {
            Some(refitted) if refitted.learned.decided_ms <= asked_ms => refitted,
            _ => &self.judged,
        }
    }
}
