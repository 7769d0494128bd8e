//! Run directories: formats, file names, and the copying and removal of files.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::config::TrainingSettings;
use poolcast_base::error::hinted;
use poolcast_base::shard::ArtefactFormat;
use poolcast_base::{files, manifest};
use poolcast_models::optim::{CheckpointFormat, CheckpointLayout};
use poolcast_pipelines::PIPELINE_FILE;
use poolcast_tensors::Split;

/// Format of finished trainings.
pub const RUN_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "run",
    version: 10,
    rebuild: "poolcast train TENSORS -o RUN",
};

/// Format of directories of fitted pipelines.
pub const FIT: ArtefactFormat = ArtefactFormat {
    name: "fit",
    version: 9,
    rebuild: "poolcast sweep run DIR",
};

/// Format of ensembles.
pub const ENSEMBLE: ArtefactFormat = ArtefactFormat {
    name: "ensemble",
    version: 2,
    rebuild: "poolcast sweep run DIR",
};

/// Format of the model's file in a run.
pub(crate) const MODEL_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "model",
    version: 5,
    rebuild: RUN_FORMAT.rebuild,
};

/// Format of checkpoints.
pub(crate) const CHECKPOINT_FORMAT: CheckpointFormat = CheckpointFormat {
    artefact: ArtefactFormat {
        name: "checkpoint",
        version: 5,
        rebuild: RUN_FORMAT.rebuild,
    },
    layout: CheckpointLayout::NumberedNetworks,
    other_training: "belongs to a training on other tensors or with other settings",
    hint: "use its tensors and settings, or name another directory",
};

/// Format of predictions for samples that were not learned from.
pub(crate) const PREDICTIONS_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "predictions",
    version: 1,
    rebuild: RUN_FORMAT.rebuild,
};

pub(crate) const PREDICTIONS_FILE: &str = "predictions.safetensors";
pub(crate) const MODEL_FILE: &str = "model.safetensors";
pub(crate) const CHECKPOINT_FILE: &str = "checkpoint.safetensors";
pub(crate) const HISTORY_FILE: &str = "history.jsonl";
pub(crate) const TIMES_FILE: &str = "times.jsonl";
pub(crate) const METRICS_FILE: &str = "metrics.json";

/// The digest of everything that determines a training with `settings` on the tensors `tensors_key`.
pub fn training_key(settings: &TrainingSettings, tensors_key: &str) -> Result<String> {
    manifest::key(&(RUN_FORMAT.version, settings, tensors_key))
}

/// The path of the scores of one split, beside the run in `dir`.
pub fn evaluation_path(dir: &Path, split: Split) -> PathBuf {
    dir.join(format!("evaluation-{}.json", split.name()))
}

/// The part of a manifest that covers the predictions beside it.
#[derive(Deserialize)]
struct ListedPredictions {
    predictions_sha256: String,
}

/// Checks `bytes`, the predictions file in `dir`, against the manifest. Without a manifest, after
/// the model was removed, there is nothing to check.
///
/// # Errors
/// Fails when the digest differs from the one in the manifest.
pub fn check_predictions(dir: &Path, bytes: &[u8]) -> Result<()> {
    if !dir.join(manifest::FILE).is_file() {
        return Ok(());
    }
    let name = manifest::format_name(dir)?;
    let named_format = [FIT, ENSEMBLE]
        .into_iter()
        .find(|format| name.as_deref() == Some(format.name));
    let format = named_format.unwrap_or(RUN_FORMAT);
    let listed = manifest::read::<ListedPredictions>(dir, format)?.body;
    ensure!(
        manifest::sha256(bytes) == listed.predictions_sha256,
        hinted(
            format!(
                "`{}` does not match its manifest",
                dir.join(PREDICTIONS_FILE).display()
            ),
            format!("build it again with `{}`", format.rebuild)
        )
    );
    Ok(())
}

/// Copies the model of the finished training or fit in `from`, with its metrics, history and
/// predictions, to the new directory `to`. Later results, such as evaluations, are not copied.
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

/// Removes the files of an earlier training, the manifest first, and the evaluations of its model.
pub(crate) fn remove_training(dir: &Path) -> Result<()> {
    reopen_training(dir)?;
    files::remove_all([CHECKPOINT_FILE, HISTORY_FILE, TIMES_FILE].map(|file| dir.join(file)))
}

/// Turns a finished training into an unfinished one: removes its manifest, model, predictions,
/// metrics and evaluations. Its checkpoint, history and epoch times remain.
pub(crate) fn reopen_training(dir: &Path) -> Result<()> {
    let finished =
        [manifest::FILE, MODEL_FILE, PREDICTIONS_FILE, METRICS_FILE].map(|file| dir.join(file));
    let scored = Split::ALL.map(|split| evaluation_path(dir, split));
    files::remove_all(finished.into_iter().chain(scored))
}

/// Removes the model of the training in `dir`, but keeps its metrics and everything needed to train
/// it again.
pub fn remove_model(dir: &Path) -> Result<()> {
    let model = [manifest::FILE, MODEL_FILE, CHECKPOINT_FILE].map(|file| dir.join(file));
    files::remove_all(model)
}

/// Removes the checkpoint of the finished training in `dir`.
pub fn remove_checkpoint(dir: &Path) -> Result<()> {
    files::remove_all([dir.join(CHECKPOINT_FILE)])
}
