//! The directory of a training: its formats, what its files are called, and how they are removed.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::Deserialize;

use poolcast_base::error::hinted;
use poolcast_pipelines::PIPELINE_FILE;
use poolcast_base::shard::ArtefactFormat;
use crate::tensors::SplitSide;
use poolcast_base::{files, manifest};

/// Finished trainings.
pub const RUN_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "run",
    version: 8,
    rebuild: "poolcast train TENSORS -o RUN",
};

/// Directories of fitted pipelines.
pub const FIT: ArtefactFormat = ArtefactFormat {
    name: "fit",
    version: 8,
    rebuild: "poolcast sweep run DIR",
};

/// Models that answer together.
pub const ENSEMBLE: ArtefactFormat = ArtefactFormat {
    name: "ensemble",
    version: 1,
    rebuild: "poolcast sweep run DIR",
};

/// The models that they left.
pub(super) const MODEL_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "model",
    version: 4,
    rebuild: RUN_FORMAT.rebuild,
};

/// The checkpoints of trainings.
pub(super) const CHECKPOINT_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "checkpoint",
    version: 5,
    rebuild: RUN_FORMAT.rebuild,
};

/// What their models predicted of samples that they did not learn from.
pub(super) const PREDICTIONS_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "predictions",
    version: 1,
    rebuild: RUN_FORMAT.rebuild,
};

pub(super) const PREDICTIONS_FILE: &str = "predictions.safetensors";
pub(super) const MODEL_FILE: &str = "model.safetensors";
pub(super) const CHECKPOINT_FILE: &str = "checkpoint.safetensors";
pub(super) const HISTORY_FILE: &str = "history.jsonl";
pub(super) const TIMES_FILE: &str = "times.jsonl";
pub(super) const METRICS_FILE: &str = "metrics.json";

/// The directory of the model of the run in `dir` that was fitted again on all sides.
pub fn refit_dir(dir: &Path) -> PathBuf {
    dir.join("refit")
}

/// The file that keeps the scores of one side beside the run in `dir`.
pub fn evaluation_path(dir: &Path, side: SplitSide) -> PathBuf {
    dir.join(format!("evaluation-{}.json", side.name()))
}

/// What a manifest says of the predictions beside it.
#[derive(Deserialize)]
struct ListedPredictions {
    predictions_sha256: String,
}

/// Checks that the file of predictions in `dir`, which holds `bytes`, is the one that the manifest
/// speaks of. Where the model was removed, nothing speaks of it.
///
/// # Errors
/// Fails for another one.
pub fn check_predictions(dir: &Path, bytes: &[u8]) -> Result<()> {
    if !dir.join(manifest::FILE).is_file() {
        return Ok(());
    }
    let name = manifest::format_name(dir)?;
    let of_name = [FIT, ENSEMBLE]
        .into_iter()
        .find(|format| name.as_deref() == Some(format.name));
    let format = of_name.unwrap_or(RUN_FORMAT);
    let listed = manifest::read::<ListedPredictions>(dir, format)?.body;
    ensure!(
        manifest::sha256(bytes) == listed.predictions_sha256,
        hinted(
            format!(
                "`{}` is not the file that its manifest speaks of",
                dir.join(PREDICTIONS_FILE).display()
            ),
            format!("make it anew with `{}`", format.rebuild)
        )
    );
    Ok(())
}

/// Copies the model of the finished training or fit in `from`, with what says how it went, to `to`, which
/// is new. What came later, such as scores, is not copied.
pub fn copy_training(from: &Path, to: &Path) -> Result<()> {
    fs_err::create_dir_all(to)?;
    let names = [
        poolcast_config::FILE,
        MODEL_FILE,
        PIPELINE_FILE,
        PREDICTIONS_FILE,
        METRICS_FILE,
        HISTORY_FILE,
        manifest::FILE,
    ];
    for name in names {
        let path = from.join(name);
        if path.is_file() {
            fs_err::copy(path, to.join(name))?;
        }
    }
    files::sync_directory(to)
}

/// Removes what an earlier training left, the manifest first, and what its model scored.
pub(super) fn remove_training(dir: &Path) -> Result<()> {
    reopen_training(dir)?;
    files::remove_all([CHECKPOINT_FILE, HISTORY_FILE, TIMES_FILE].map(|file| dir.join(file)))
}

/// Makes of a finished training one that has not finished: only its checkpoint, its history
/// and its times remain.
pub(super) fn reopen_training(dir: &Path) -> Result<()> {
    let finished =
        [manifest::FILE, MODEL_FILE, PREDICTIONS_FILE, METRICS_FILE].map(|file| dir.join(file));
    let scored = SplitSide::ALL.map(|side| evaluation_path(dir, side));
    files::remove_all(finished.into_iter().chain(scored).chain([refit_dir(dir)]))
}

/// Removes the model of the training in `dir`, but not what says how it went and how to train it
/// again.
pub fn remove_model(dir: &Path) -> Result<()> {
    let model = [manifest::FILE, MODEL_FILE, CHECKPOINT_FILE].map(|file| dir.join(file));
    files::remove_all(model.into_iter().chain([refit_dir(dir)]))
}

/// Removes the checkpoint of the training in `dir`, which has come to its end.
pub fn remove_checkpoint(dir: &Path) -> Result<()> {
    files::remove_all([dir.join(CHECKPOINT_FILE)])
}
