//! A run: the directory of one finished training, and the model in it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::baselines::Rates;
use super::calibration::Calibration;
use super::checkpoint::{self, Checkpoint};
use super::early_stopping;
use super::evaluate::Evaluation;
use super::outcome::{METRICS_FILE, Metrics, Status};
use super::train::{Epoch, Settings, statics};
use crate::error::hinted;
use crate::models::{Device, Model, ModelShape};
use crate::shard::{self, ArtefactFormat, Shard, ShardColumn};
use crate::tensors::{self, Dataset, STATIC_FEATURES, SplitSide};
use crate::{files, manifest};

/// Finished trainings.
pub const RUN: ArtefactFormat = ArtefactFormat {
    name: "run",
    version: 3,
    rebuild: "poolcast train TENSORS -o RUN",
};

const MODEL: ArtefactFormat = ArtefactFormat {
    name: "model",
    version: 3,
    rebuild: RUN.rebuild,
};
const MODEL_FILE: &str = "model.safetensors";
const HISTORY_FILE: &str = "history.jsonl";

/// Writes the epochs of a training to its directory, one a line. They are those of its checkpoint, so that each is there
/// once, whenever the training was killed.
pub(super) fn write_history(dir: &Path, history: &[Epoch]) -> Result<()> {
    manifest::write_json_lines(&dir.join(HISTORY_FILE), history)
}

/// The epochs that the training in `dir` has gone through.
pub fn read_history(dir: &Path) -> Result<Vec<Epoch>> {
    manifest::read_json_lines(&dir.join(HISTORY_FILE))
}

/// What the model's file says of itself.
#[derive(PartialEq, Serialize, Deserialize)]
struct Notes {
    /// The name of its architecture.
    model: String,
    /// The shapes of its weights.
    shape: ModelShape,
}

/// What a run says of itself in its manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunSummary {
    /// The shapes of the weights.
    pub shape: ModelShape,
    /// How the samples were made that the model knows.
    pub tensors: tensors::TensorSettings,
    /// The digest of the tensors it was trained on.
    pub tensors_key: String,
    /// How it was trained.
    pub training: Settings,
    /// Success by hold code on the training samples.
    pub rates: Rates,
    /// SHA-256 of the model's file.
    pub model_sha256: String,
    /// SHA-256 of what `metrics.json` says of the training.
    pub metrics_sha256: String,
}

/// A finished training, open.
#[derive(Debug)]
pub struct Run {
    /// What the manifest says.
    pub summary: RunSummary,
    /// The digest of everything it was made from.
    pub key: String,
    /// The model, with the weights of the best epoch.
    pub model: Model,
    /// How its logits are read.
    pub calibration: Calibration,
    /// How the training went.
    pub metrics: Metrics,
}

impl Run {
    /// Writes the model, how the training went and, last, the manifest.
    pub(super) fn finish(
        dir: &Path,
        key: &str,
        dataset: &Dataset,
        settings: &Settings,
        state: &Checkpoint,
        calibration: Calibration,
    ) -> Result<Run> {
        let shape = state.model.shape;
        let status = match (
            state.history.len() >= settings.epochs,
            early_stopping::is_over(&state.history, settings),
        ) {
            (true, _) => Status::Finished,
            (false, true) => Status::StoppedEarly,
            (false, false) => Status::TerminatedEarly,
        };
        let metrics = Metrics::of(status, settings, state, Some(calibration));
        ensure!(
            metrics.best.is_some(),
            "the watched metric was never defined on the validation samples"
        );
        let parameters = state.model.parameters().iter().zip(&state.best);
        let columns = parameters
            .map(|(p, weights)| (p.name.clone(), ShardColumn::new(weights, &p.dims)))
            .collect();
        let notes = Notes {
            model: settings.model.clone(),
            shape,
        };
        let model = shard::encode(MODEL, &notes, columns)?;
        files::write_atomic(&dir.join(MODEL_FILE), &model)?;
        metrics.write(dir)?;
        let summary = RunSummary {
            shape,
            tensors: dataset.summary.settings.clone(),
            tensors_key: dataset.key.clone(),
            training: settings.clone(),
            rates: Rates::learn(dataset)?,
            model_sha256: manifest::sha256(&model),
            metrics_sha256: metrics_digest(dir)?,
        };
        manifest::write(dir, RUN, key, &summary)?;
        Run::open(dir)
    }

    /// Opens the run in `dir`.
    ///
    /// # Errors
    /// Fails when the training did not finish, or when the model's file is not the one the manifest speaks of.
    pub fn open(dir: &Path) -> Result<Run> {
        let unfinished = dir.join(checkpoint::FILE).exists() && !dir.join(manifest::FILE).exists();
        ensure!(
            !unfinished,
            hinted(
                format!("the training in `{}` has not finished", dir.display()),
                "continue it with `poolcast train --resume`"
            )
        );
        let found = manifest::read::<RunSummary>(dir, RUN)?;
        let summary = found.body;
        let architecture = summary
            .training
            .architecture()
            .with_context(|| format!("cannot use `{}`", dir.display()))?;
        let path = dir.join(MODEL_FILE);
        let shard = Shard::open(&path, MODEL)?;
        let notes = Notes {
            model: summary.training.model.clone(),
            shape: summary.shape,
        };
        ensure!(
            shard.notes::<Notes>()? == notes
                && manifest::sha256(shard.bytes()) == summary.model_sha256,
            hinted(
                format!(
                    "`{}` is not the model that its manifest speaks of",
                    path.display()
                ),
                "train it anew into another directory with `poolcast train TENSORS -o RUN`"
            )
        );
        ensure!(
            summary.shape.s == statics(architecture),
            hinted(
                format!(
                    "the model takes {}, and this program knows {STATIC_FEATURES}",
                    crate::output::counted(summary.shape.s, "static feature")
                ),
                "train it anew into another directory with `poolcast train TENSORS -o RUN`"
            )
        );
        let model = Model::with_weights(architecture, summary.shape, |name| shard.column(name))?;
        let (metrics, calibration) = open_metrics(dir, &summary.metrics_sha256)?;
        Ok(Run {
            summary,
            key: found.key,
            model,
            calibration,
            metrics,
        })
    }

    /// The same run with its model on `device`.
    pub fn on(self, device: &Device) -> Run {
        Run {
            model: self.model.on_device(device),
            ..self
        }
    }

    /// Removes what an earlier training left, the manifest first, and what its model scored.
    pub(super) fn clear(dir: &Path) -> Result<()> {
        Run::reopen(dir)?;
        files::remove_all([checkpoint::FILE, HISTORY_FILE].map(|file| dir.join(file)))
    }

    /// Makes of a run one that has not finished: only its checkpoint remains, and its history.
    pub(super) fn reopen(dir: &Path) -> Result<()> {
        let scored = SplitSide::ALL.map(|side| Evaluation::path(dir, side));
        files::remove_all(
            [manifest::FILE, MODEL_FILE, METRICS_FILE]
                .map(|file| dir.join(file))
                .into_iter()
                .chain(scored),
        )
    }
}

/// Removes the model of the training in `dir`, but not what says how it went and how to train it again.
pub fn remove_model(dir: &Path) -> Result<()> {
    files::remove_all([manifest::FILE, MODEL_FILE, checkpoint::FILE].map(|file| dir.join(file)))
}

/// Removes the checkpoint of the training in `dir`, which has come to its end.
pub fn remove_checkpoint(dir: &Path) -> Result<()> {
    files::remove_all([dir.join(checkpoint::FILE)])
}

fn metrics_digest(dir: &Path) -> Result<String> {
    Ok(manifest::sha256(&files::read_artefact(
        &dir.join(METRICS_FILE),
        1 << 30,
    )?))
}

/// What `metrics.json` says, if it is the file that the manifest speaks of.
fn open_metrics(dir: &Path, sha256: &str) -> Result<(Metrics, Calibration)> {
    let metrics = Metrics::read(dir)?;
    let is_known = metrics_digest(dir)? == sha256;
    let calibration = metrics.calibration.filter(|_| is_known).with_context(|| {
        hinted(
            format!(
                "`{}` is not the file that its manifest speaks of",
                dir.join(METRICS_FILE).display()
            ),
            "train it anew into another directory with `poolcast train TENSORS -o RUN`",
        )
    })?;
    Ok((metrics, calibration))
}
