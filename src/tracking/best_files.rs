//! The best run of a directory → what is sent along with it: its model, and a page on all runs that
//! names nobody.

use anyhow::Result;
use serde_json::{Value, json};

use super::source::TrackedSource;
use super::tracked_run::TrackedRun;
use poolcast_base::manifest;
use poolcast_report::{REPORT_FILE, ReportInputs, page, report};
use poolcast_holds::training::TrainedModel;

/// The largest model that is sent.
const MOST_MODEL_BYTES: u64 = 64 << 20;

/// A file as it is sent.
pub(super) struct BestFile {
    /// Its name at the tracker.
    pub(super) name: &'static str,
    /// What is in it.
    pub(super) bytes: Vec<u8>,
}

impl BestFile {
    /// What people are shown of it: all of a text, and of a model what tells it from others.
    pub(super) fn shown(&self) -> Value {
        let text = std::str::from_utf8(&self.bytes).ok();
        json!({
            "name": self.name,
            "bytes": self.bytes.len(),
            "sha256": manifest::sha256(&self.bytes),
            "text": text,
        })
    }
}

/// The best run with its files.
pub(super) struct BestFiles {
    /// The best run.
    pub(super) run: TrackedRun,
    /// The page and the model.
    pub(super) files: Vec<BestFile>,
}

impl BestFiles {
    /// The names of the files.
    pub(super) fn names(&self) -> Vec<&'static str> {
        self.files.iter().map(|file| file.name).collect()
    }

    /// What tells these files from others.
    pub(super) fn digest(&self) -> String {
        let mut digests = String::new();
        for file in &self.files {
            digests += &manifest::sha256(&file.bytes);
        }
        manifest::sha256(digests.as_bytes())
    }
}

impl TrackedSource {
    /// The best run with its files, once all runs have ended; `None` before that, without a model,
    /// and for tables, whose splits have a best run each.
    ///
    /// # Errors
    /// Fails for files that cannot be read, and for a model of another version of the program.
    pub(super) fn best_files(&self) -> Result<Option<BestFiles>> {
        let inputs = ReportInputs::read(self.dir(), true)?;
        let Some(run_dir) = inputs.best_trial_dir() else {
            return Ok(None);
        };
        // Of a DAG whose models were not fetched there is none.
        if manifest::format_name(&run_dir)?.is_none() {
            return Ok(None);
        }
        let model = TrainedModel::open(&run_dir)?;

        let name = run_dir.file_name().unwrap_or_default().to_string_lossy();
        let mut best = None;
        self.visit_runs(|run| {
            if self.sweep_space().is_none() || run.name == name {
                best = Some(run);
            }
            Ok(())
        })?;
        let Some(run) = best else {
            return Ok(None);
        };
        let page = page(&report(&inputs, None)?);
        let model_bytes = poolcast_base::files::read_artefact(&run_dir.join(model.file), MOST_MODEL_BYTES)?;
        let files = vec![
            BestFile {
                name: REPORT_FILE,
                bytes: page.into_bytes(),
            },
            BestFile {
                name: model.file,
                bytes: model_bytes,
            },
        ];
        Ok(Some(BestFiles { run, files }))
    }
}
