//! Reads and writes a fitted pipeline as a JSON file.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::fitted::FittedPipeline;
use poolcast_base::error::unavailable;
use poolcast_base::shard::ArtefactFormat;

/// File name of a fitted pipeline.
pub const PIPELINE_FILE: &str = "pipeline.json";

/// Maximum size of a file to read, in bytes.
const MAX_BYTES: u64 = 1 << 32;

const PIPELINE_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "pipeline",
    version: 5,
    rebuild: "poolcast sweep run",
};

/// A pipeline file as it is written.
#[derive(Serialize)]
struct WrittenPipeline<'a> {
    format: &'a str,
    format_version: u32,
    body: &'a FittedPipeline,
}

/// Header of a pipeline file, read first: the body of another version may not be readable.
#[derive(Deserialize)]
struct PipelineHeader {
    format: String,
    format_version: u32,
}

/// Rest of a pipeline file.
#[derive(Deserialize)]
struct ReadPipeline {
    body: FittedPipeline,
}

impl FittedPipeline {
    /// Writes the pipeline to its file in `dir`.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let document = WrittenPipeline {
            format: PIPELINE_FORMAT.name,
            format_version: PIPELINE_FORMAT.version,
            body: self,
        };
        poolcast_base::files::write_atomic(
            &dir.join(PIPELINE_FILE),
            &serde_json::to_vec(&document)?,
        )
    }

    /// Reads the pipeline in `dir`.
    ///
    /// # Errors
    /// Fails if the file cannot be read, has another format version, or holds an unsound pipeline.
    pub fn open(dir: &Path) -> Result<FittedPipeline> {
        let path = dir.join(PIPELINE_FILE);
        let bytes = poolcast_base::files::read_artefact(&path, MAX_BYTES)?;
        FittedPipeline::from_bytes(&bytes, &path)
    }

    /// Reads the pipeline from `bytes`, which are the content of the file `path`.
    ///
    /// # Errors
    /// Fails if the bytes have another format version, or hold an unsound pipeline.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<FittedPipeline> {
        let unreadable = || format!("cannot read `{}`", path.display());
        let header: PipelineHeader = serde_json::from_slice(bytes).with_context(unreadable)?;
        header.check(path)?;

        let document: ReadPipeline = serde_json::from_slice(bytes).with_context(unreadable)?;
        document
            .body
            .check()
            .with_context(|| format!("`{}` is not a sound pipeline", path.display()))?;
        Ok(document.body)
    }
}

impl PipelineHeader {
    fn check(&self, path: &Path) -> Result<()> {
        let is_ours =
            self.format == PIPELINE_FORMAT.name && self.format_version == PIPELINE_FORMAT.version;
        ensure!(
            is_ours,
            unavailable(
                format!(
                    "`{}` is {} format version {}, and this program reads {} format version {}",
                    path.display(),
                    self.format,
                    self.format_version,
                    PIPELINE_FORMAT.name,
                    PIPELINE_FORMAT.version
                ),
                format!("rebuild it with `{}`", PIPELINE_FORMAT.rebuild)
            )
        );
        Ok(())
    }
}
