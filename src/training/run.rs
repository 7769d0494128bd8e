//! A run: the directory of one finished training, and the model in it.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::baselines::Rates;
use super::checkpoint::{self, Checkpoint};
use super::train::{Epoch, Settings};
use crate::error::hinted;
use crate::manifest;
use crate::models::{Lstm, Shape};
use crate::shard::{self, Column, Format, Shard};
use crate::tensors::{self, Dataset, STATICS};

/// Finished trainings.
pub const RUN: Format = Format { name: "run", version: 3, rebuild: "poolcast train TENSORS -o RUN" };

const MODEL: Format = Format { name: "model", version: 2, rebuild: RUN.rebuild };
const MODEL_FILE: &str = "model.safetensors";
const HISTORY_FILE: &str = "history.jsonl";

/// Writes the epochs of a training to its directory, one a line. They are those of its checkpoint, so that each is there
/// once, whenever the training was killed.
pub(super) fn write_history(dir: &Path, history: &[Epoch]) -> Result<()> {
    let mut text = Vec::new();
    for epoch in history {
        serde_json::to_writer(&mut text, epoch)?;
        text.push(b'\n');
    }
    crate::files::write_atomic(&dir.join(HISTORY_FILE), &text)
}

/// What a run says of itself in its manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RunSummary {
    /// The shapes of the weights.
    pub shape: Shape,
    /// How the samples were made that the model knows.
    pub tensors: tensors::Settings,
    /// The digest of the tensors it was trained on.
    pub tensors_key: String,
    /// How it was trained.
    pub training: Settings,
    /// Epochs trained.
    pub epochs: usize,
    /// The epoch whose weights the model has.
    pub best: Epoch,
    /// Success by hold code on the training samples.
    pub rates: Rates,
    /// SHA-256 of the model's file.
    pub model_sha256: String,
}

/// A finished training, open.
#[derive(Debug)]
pub struct Run {
    /// What the manifest says.
    pub summary: RunSummary,
    /// The digest of everything it was made from.
    pub key: String,
    /// The model, with the weights of the best epoch.
    pub model: Lstm,
}

impl Run {
    /// Writes the model and, last, the manifest.
    pub(super) fn finish(
        dir: &Path,
        key: &str,
        dataset: &Dataset,
        settings: &Settings,
        state: &Checkpoint,
    ) -> Result<Run> {
        let shape = state.model.shape;
        let best = state.history.iter().rfind(|epoch| epoch.is_best);
        let best = best.context("the watched metric was never defined on the validation samples")?.clone();
        let parameters = shape.parameters().into_iter().zip(&state.best);
        let columns = parameters.map(|(p, weights)| (p.name(), Column::new(weights, &p.dims(&shape)))).collect();
        let model = shard::encode(MODEL, &shape, columns)?;
        crate::files::write_atomic(&dir.join(MODEL_FILE), &model)?;
        let summary = RunSummary {
            shape,
            tensors: dataset.summary.settings.clone(),
            tensors_key: dataset.key.clone(),
            training: settings.clone(),
            epochs: state.history.len(),
            best,
            rates: Rates::learn(dataset)?,
            model_sha256: manifest::digest(&model),
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
        let path = dir.join(MODEL_FILE);
        let shard = Shard::open(&path, MODEL)?;
        ensure!(
            shard.notes::<Shape>()? == summary.shape && manifest::digest(shard.bytes()) == summary.model_sha256,
            hinted(
                format!("`{}` is not the model that its manifest speaks of", path.display()),
                "train it anew with `poolcast train --overwrite`"
            )
        );
        ensure!(
            [0, STATICS].contains(&summary.shape.s),
            hinted(
                format!("the model takes {} static features, and this program knows {STATICS}", summary.shape.s),
                "train it anew with `poolcast train --overwrite`"
            )
        );
        let model = Lstm::with_weights(summary.shape, |name| shard.column(name))?;
        Ok(Run { summary, key: found.key, model })
    }

    /// Removes what an earlier training left, the manifest first.
    pub(super) fn clear(dir: &Path) -> Result<()> {
        for file in [manifest::FILE, checkpoint::FILE, MODEL_FILE, HISTORY_FILE] {
            let path = dir.join(file);
            if path.exists() {
                fs_err::remove_file(path)?;
            }
        }
        Ok(())
    }
}
