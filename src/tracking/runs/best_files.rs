//! The files that are sent with the best run of a directory: its model, and a report on all runs
//! that names no person.

use anyhow::Result;
use serde_json::{Value, json};

use super::source::TrackedSource;
use super::tracked_run::TrackedRun;
use poolcast_base::manifest;
use poolcast_holds::training::TrainedModel;
use poolcast_report::{REPORT_FILE, ReportInputs, page, report};

/// Size limit of a model that is sent, in bytes.
const MAX_MODEL_BYTES: u64 = 64 << 20;

/// A file to send.
pub(crate) struct BestFile {
    /// Its name on the tracker.
    pub(crate) name: &'static str,
    /// Its content.
    pub(crate) bytes: Vec<u8>,
}

impl BestFile {
    /// A description for previews: name, size and digest, and the whole text of a text file.
    pub(crate) fn shown(&self) -> Value {
        let text = std::str::from_utf8(&self.bytes).ok();
        json!({
            "name": self.name,
            "bytes": self.bytes.len(),
            "sha256": manifest::sha256(&self.bytes),
            "text": text,
        })
    }
}

/// The best run and its files.
pub(crate) struct BestFiles {
    /// The best run.
    pub(crate) run: TrackedRun,
    /// The report and the model.
    pub(crate) files: Vec<BestFile>,
}

impl BestFiles {
    /// The names of the files.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.files.iter().map(|file| file.name).collect()
    }

    /// A digest that identifies these files.
    pub(crate) fn digest(&self) -> String {
        let mut digests = String::new();
        for file in &self.files {
            digests += &manifest::sha256(&file.bytes);
        }
        manifest::sha256(digests.as_bytes())
    }
}

impl TrackedSource {
    /// The best run and its files, once all runs have ended. Returns `None` before that, without a
    /// model, and for tables, because each of their splits has its own best run.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if the model is of another version of the program.
    pub(crate) fn best_files(&self) -> Result<Option<BestFiles>> {
        let inputs = ReportInputs::read(self.dir(), true)?;
        let Some(run_dir) = inputs.best_trial_dir() else {
            return Ok(None);
        };
        // The models of a DAG exist here only if they were fetched.
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
        let model_bytes =
            poolcast_base::files::read_artefact(&run_dir.join(model.file), MAX_MODEL_BYTES)?;
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
