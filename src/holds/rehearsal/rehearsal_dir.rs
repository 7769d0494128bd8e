//! The directory of a rehearsal: the answers of each model, kept so that a later call continues.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::Serialize;

use super::rehearsed_answer::RehearsedAnswer;
use super::schedule::{RehearsalSettings, RehearsalTimes, ScheduledModel};
use super::settled::AnswerRow;
use super::tally::RehearsalTally;
use super::tally_file::REHEARSAL_FILE;
use crate::answers::{ANSWERS_FORMAT, HoldHistory};
use crate::config::AdviceConfig;
use poolcast_base::error::hinted;
use poolcast_base::files::{self, LockedDirectory};
use poolcast_base::manifest;
use poolcast_base::shard::ArtefactFormat;
use poolcast_events::EventStore;

/// Format of directories of rehearsals.
const REHEARSAL_FORMAT: ArtefactFormat = ArtefactFormat {
    name: "rehearsal",
    version: 8,
    rebuild: "poolcast rehearse --log LOG -o DIR",
};

/// File name of all answers, settled.
const ANSWERS_FILE: &str = "answers.jsonl";

/// Directory of the answers of the models, a file for each.
const MODELS: &str = "models";

/// Body of the manifest.
#[derive(Serialize)]
struct RehearsalSummary<'a> {
    times: RehearsalTimes,
    advice: &'a AdviceConfig,
    seed: u64,
}

/// A directory with the answers of the models that have been asked. Other calls cannot write to it
/// until this is dropped.
#[derive(Debug)]
pub struct RehearsalDir {
    dir: PathBuf,
    _lock: LockedDirectory,
}

impl RehearsalDir {
    /// Opens `dir` for a rehearsal of `store` with `settings`. With `overwrite`, the files of an
    /// earlier rehearsal are removed.
    ///
    /// # Errors
    /// Fails if `dir` has other files, or a rehearsal of another log or with other settings.
    pub fn open(
        dir: &Path,
        store: &EventStore,
        settings: &RehearsalSettings<'_>,
        overwrite: bool,
    ) -> Result<RehearsalDir> {
        let key = rehearsal_key(store, settings)?;
        let is_new = is_empty(dir)?;
        let opened = RehearsalDir {
            dir: dir.to_owned(),
            _lock: LockedDirectory::with_holder(dir)?,
        };
        let format = manifest::format_name(dir)?;
        ensure!(
            is_new || format.as_deref() == Some(REHEARSAL_FORMAT.name),
            hinted(
                format!("`{}` already has other files", dir.display()),
                "name another directory"
            )
        );
        if !overwrite && manifest::finished_key(dir, REHEARSAL_FORMAT).as_ref() == Some(&key) {
            return Ok(opened);
        }
        ensure!(
            overwrite || format.is_none(),
            hinted(
                format!(
                    "`{}` has a rehearsal of another log, or with other settings",
                    dir.display()
                ),
                "name another directory, or replace it with the flag that `--help` lists"
            )
        );

        files::remove_all([MODELS, ANSWERS_FILE, REHEARSAL_FILE].map(|name| dir.join(name)))?;
        let summary = RehearsalSummary {
            times: settings.times,
            advice: settings.advice,
            seed: settings.seed,
        };
        manifest::write(dir, REHEARSAL_FORMAT, &key, &summary)?;
        fs_err::create_dir_all(opened.dir.join(MODELS))?;
        Ok(opened)
    }

    /// Returns the number of models whose answers are kept, of the `models` of the rehearsal.
    pub fn kept_models(&self, models: usize) -> usize {
        let is_kept = |&number: &usize| self.answers_file(number).is_file();
        (0..models).take_while(is_kept).count()
    }

    /// Reads the answers of model `number`, counted from 0; `None` if they are not kept.
    ///
    /// # Errors
    /// Fails if the file is damaged.
    pub(super) fn read(
        &self,
        number: usize,
        model: &ScheduledModel,
        history: &HoldHistory<'_>,
    ) -> Result<Option<Vec<RehearsedAnswer>>> {
        let path = self.answers_file(number);
        if !path.is_file() {
            return Ok(None);
        }
        let answers: Vec<RehearsedAnswer> = manifest::read_json_lines(&path)?;
        let is_asked = |answer: &RehearsedAnswer| {
            let asked = (answer.moment, answer.asked_ms);
            answer.hold < history.holds.len() && model.moments().any(|moment| moment == asked)
        };
        ensure!(
            answers.iter().all(is_asked) && answers.is_sorted_by_key(|answer| answer.moment),
            hinted(
                format!("`{}` is damaged", path.display()),
                "start over with the flag that `--help` lists, or name another directory"
            )
        );
        Ok(Some(answers))
    }

    /// Keeps the `answers` of model `number`, counted from 0.
    pub(super) fn keep(&self, number: usize, answers: &[RehearsedAnswer]) -> Result<()> {
        manifest::write_json_lines(&self.answers_file(number), answers)
    }

    /// Writes the settled answers and their counts.
    pub fn write_results(&self, answers: &[AnswerRow], tally: &RehearsalTally) -> Result<()> {
        manifest::write_json_lines(&self.dir.join(ANSWERS_FILE), answers)?;
        tally.write(&self.dir)
    }

    fn answers_file(&self, number: usize) -> PathBuf {
        self.dir
            .join(MODELS)
            .join(format!("{:04}.jsonl", number + 1))
    }
}

/// Returns true if `dir` does not exist or has no entries.
fn is_empty(dir: &Path) -> Result<bool> {
    Ok(!dir.exists() || fs_err::read_dir(dir)?.next().is_none())
}

/// Returns the digest of everything that the answers depend on. The salt of the owners is not among
/// them: it only has to be one salt for all owners of a call.
fn rehearsal_key(store: &EventStore, settings: &RehearsalSettings<'_>) -> Result<String> {
    let summary = &store.summary;
    let logs: Vec<(&str, u64)> = summary
        .sources
        .iter()
        .map(|log| (log.xxh3.as_str(), log.bytes))
        .collect();
    manifest::key(&(
        (logs, &summary.options_key),
        (settings.times, settings.advice, settings.seed),
        (ANSWERS_FORMAT.version, env!("CARGO_PKG_VERSION")),
    ))
}
