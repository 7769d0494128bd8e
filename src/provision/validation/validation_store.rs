//! Stores a validation on disk: its summary, a reward.log per policy, and the manifest last.

use std::path::Path;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::validate::ValidationSummary;
use poolcast_base::error::hinted;
use poolcast_base::files::{StagedDirectory, write_atomic};
use poolcast_base::manifest::{self, Checksum};
use poolcast_base::shard::ArtefactFormat;

/// Format of a validation directory.
pub const VALIDATION_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "validation",
    version: 2,
    rebuild: "poolcast provision validate TRACE -o OUT",
};

const SUMMARY: &str = "summary.json";

/// Contents of the manifest.
#[derive(Debug, Serialize, Deserialize)]
struct ValidationFiles {
    files: Vec<ListedFile>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ListedFile {
    file: String,
    xxh3: String,
}

/// Writes `summary` and the reward.log of each policy into the directory `out`. With `overwrite`,
/// replaces an earlier validation there.
///
/// # Errors
/// Fails if `out` holds something else, or cannot be written.
pub fn write_validation(
    summary: &ValidationSummary,
    logs: &[(String, String)],
    key: &str,
    out: &Path,
    overwrite: bool,
) -> Result<()> {
    let staging = StagedDirectory::new(out, overwrite)?;
    let mut files = vec![(SUMMARY.to_owned(), serde_json::to_vec_pretty(summary)?)];
    for (policy, log) in logs {
        fs_err::create_dir(staging.path().join(policy))?;
        files.push((format!("{policy}/reward.log"), log.clone().into_bytes()));
    }
    let mut listed = Vec::with_capacity(files.len());
    for (file, bytes) in &files {
        write_atomic(&staging.path().join(file), bytes)?;
        listed.push(ListedFile {
            file: file.clone(),
            xxh3: Checksum::of([&bytes[..]].into_iter()),
        });
    }
    let body = ValidationFiles { files: listed };
    manifest::write(staging.path(), VALIDATION_FORMAT, key, &body)?;
    staging.commit()
}

/// Reads the summary of the validation in `dir`.
///
/// # Errors
/// Fails if there is no validation, or if the file does not match its manifest.
pub fn read_validation(dir: &Path) -> Result<ValidationSummary> {
    let body: ValidationFiles = manifest::read(dir, VALIDATION_FORMAT)?.body;
    let path = dir.join(SUMMARY);
    let bytes = fs_err::read(&path)?;
    let digest = Checksum::of([&bytes[..]].into_iter());
    let is_listed = |listed: &ListedFile| listed.file == SUMMARY && listed.xxh3 == digest;
    if !body.files.iter().any(is_listed) {
        bail!(hinted(
            format!("`{}` differs from its manifest", path.display()),
            format!("recreate it with `{}`", VALIDATION_FORMAT.rebuild)
        ));
    }
    Ok(serde_json::from_slice(&bytes)?)
}
