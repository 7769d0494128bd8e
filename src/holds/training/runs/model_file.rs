//! The file with the weights of a network.

use std::path::Path;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::run_dir::{MODEL_FILE, MODEL_FORMAT};
use poolcast_base::error::hinted;
use poolcast_base::shard::{self, Shard, ShardColumn};
use poolcast_base::{files, manifest};
use poolcast_models::{Architecture, Model, ModelShape};

/// Metadata in the model's file.
#[derive(PartialEq, Serialize, Deserialize)]
struct ModelNotes {
    /// Name of the architecture.
    model: String,
    /// Shapes of the weights.
    shape: ModelShape,
}

/// Writes `model` to its file in `dir`. Returns the digest of the file.
pub(crate) fn write_model(dir: &Path, model: &Model) -> Result<String> {
    let weights = model.weights();
    let parameters = model.parameters().iter().zip(&weights);
    let columns = parameters
        .map(|(p, weights)| (p.name.clone(), ShardColumn::new(weights, &p.dims)))
        .collect();
    let notes = ModelNotes {
        model: model.architecture.name().to_owned(),
        shape: model.shape,
    };
    let bytes = shard::encode(MODEL_FORMAT, &notes, columns)?;
    files::write_atomic(&dir.join(MODEL_FILE), &bytes)?;
    Ok(manifest::sha256(&bytes))
}

/// Opens the model in `dir`, whose manifest has this shape and digest. `hint` says how to make it
/// again.
///
/// # Errors
/// Fails when the file does not match the manifest.
pub(crate) fn open_model(
    dir: &Path,
    architecture: &'static dyn Architecture,
    shape: ModelShape,
    sha256: &str,
    hint: &str,
) -> Result<Model> {
    let path = dir.join(MODEL_FILE);
    let shard = Shard::open(&path, MODEL_FORMAT)?;
    let notes = ModelNotes {
        model: architecture.name().to_owned(),
        shape,
    };
    ensure!(
        shard.notes::<ModelNotes>()? == notes && manifest::sha256(shard.bytes()) == sha256,
        hinted(
            format!("`{}` does not match its manifest", path.display()),
            hint
        )
    );
    Model::with_weights(architecture, shape, |name| shard.column(name))
}
