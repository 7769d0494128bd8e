//! The file with the counts of a rehearsal.

use std::path::Path;

use anyhow::{Context as _, Result};
use serde::Deserialize as _;

use super::tally::RehearsalTally;
use poolcast_base::manifest;
use poolcast_base::output::JsonDocument;

/// File name of the counts of a rehearsal.
pub const REHEARSAL_FILE: &str = "rehearsal.json";

/// Version of the JSON document of the counts.
pub const REHEARSAL_SCHEMA_VERSION: u32 = 2;

impl RehearsalTally {
    /// Writes the counts to `dir`.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let document = JsonDocument {
            schema_version: REHEARSAL_SCHEMA_VERSION,
            body: self,
        };
        manifest::write_json(&dir.join(REHEARSAL_FILE), &document)
    }

    /// Reads the counts in `dir`; `None` if there are none, or if another version has written them.
    ///
    /// # Errors
    /// Fails if the file is not valid.
    pub fn read(dir: &Path) -> Result<Option<RehearsalTally>> {
        let path = dir.join(REHEARSAL_FILE);
        if !path.is_file() {
            return Ok(None);
        }
        let document: serde_json::Value = manifest::read_json(&path)?;
        if document["schema_version"] != REHEARSAL_SCHEMA_VERSION {
            return Ok(None);
        }
        let tally = RehearsalTally::deserialize(document);
        let tally = tally.with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(Some(tally))
    }
}
