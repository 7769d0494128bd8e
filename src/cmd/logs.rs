//! Event logs as arguments: finds the logs, reads them, and gets the salt that hashes their owners.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::progress::{Progress, Stage, rotated_note};
use super::results_here::logs_of_run;
use htcondor_eventlog::{self as eventlog, EventBatch, ReadOptions, WrittenLog};
use poolcast_advice::policy::OwnerNames;
use poolcast_advice::{JobAdvice, LogWords, apply_reason_rules, name_probes_of_things};
use poolcast_base::output;
use poolcast_base::salt::OwnerSalt;
use poolcast_collect::{explain, explain_beginning, find_generations, found_beside, skipped_note};
use poolcast_events::{BatchListener, EventStore, IngestStep, read_into_memory};
use poolcast_sweep::config::Config;

/// The logs to read: those that the user named, and their rotated generations.
pub(super) fn find_logs(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let all = find_generations(named)?;
    for found in found_beside(named, &all) {
        output::note(&rotated_note(found));
    }
    if let Some(note) = skipped_note(named, &all) {
        output::note(&note);
    }
    Ok(all)
}

/// Reads the events of the logs in `named` into memory, and their `words` if requested. `year` and
/// the configuration of the model supply facts that the logs lack.
pub(super) fn read_store(
    named: &[PathBuf],
    year: Option<i16>,
    config: &Config,
    words: Option<&mut LogWords>,
) -> Result<EventStore> {
    let read = LogReading::of(named, year, config).read(words)?;
    Ok(read.store)
}

/// Reads the events of the logs in `named` into memory, and the names of owners, which no store
/// keeps.
pub(super) fn read_store_with_owners(
    named: &[PathBuf],
    year: Option<i16>,
    config: &Config,
) -> Result<(EventStore, OwnerNames)> {
    let mut owners = OwnerNames::default();
    let on_batch = &mut |batch: &EventBatch<'_>| owners.add(batch);
    let read = LogReading::of(named, year, config).read_batches(false, on_batch)?;
    Ok((read.store, owners))
}

/// Logs that are read into memory.
pub(super) struct LogReading<'a> {
    /// The logs that the user named.
    pub(super) named: &'a [PathBuf],
    /// The log of a history, which adds what it has beyond these logs.
    pub(super) history: Option<&'a Path>,
    /// Year of the first event, for logs without years.
    pub(super) year: Option<i16>,
    /// The time until which events are read, epoch ms; `None` for the end of the logs.
    pub(super) until_ms: Option<i64>,
    /// True if logs without a time zone get the zone of a log which is written here.
    pub(super) applies_zone: bool,
    /// The configuration of the model, which has facts that the logs lack.
    pub(super) config: &'a Config,
}

/// The events of logs.
pub(super) struct ReadLogs {
    pub(super) store: EventStore,
    /// True if the logs are found to be written here, so that nothing has happened after their ends.
    pub(super) is_written_here: bool,
    /// Local time minus UTC, in ms, which the times in the store still have: a run takes them as UTC.
    pub(super) utc_offset_ms: i64,
}

impl<'a> LogReading<'a> {
    /// The logs in `named` alone, until their ends.
    fn of(named: &'a [PathBuf], year: Option<i16>, config: &'a Config) -> LogReading<'a> {
        LogReading {
            named,
            history: None,
            year,
            until_ms: None,
            applies_zone: false,
            config,
        }
    }

    /// Reads the events into memory, and their `words` if requested.
    pub(super) fn read(&self, words: Option<&mut LogWords>) -> Result<ReadLogs> {
        match words {
            Some(words) => self.read_batches(true, &mut |batch| words.add(batch)),
            None => self.read_batches(false, &mut |_| {}),
        }
    }

    fn read_batches(&self, has_texts: bool, on_batch: &mut BatchListener<'_>) -> Result<ReadLogs> {
        let logs = find_logs(self.named)?;
        let written = WrittenLog::last_of(&logs);
        let applied = written.filter(|_| self.applies_zone);
        let parse = &self.config.parse;
        let options = ReadOptions {
            has_texts,
            utc_offset_ms: applied.map_or(0, |log| log.utc_offset_ms),
            ..read_options(parse.ap.clone(), self.year.or(parse.year), &logs)?
        };

        let progress = Progress::new(&[Stage::Read]);
        let on_step = |step: IngestStep<'_>| progress.show_ingest(step);
        let listener = progress.ingest_listener(&on_step);
        let read = || {
            let until_ms = self.until_ms;
            read_into_memory(&logs, self.history, &options, until_ms, &listener, on_batch)
        };
        let store = progress.show(read)?;
        // A global event log gives its zone.
        let end_ms = store.summary.end_ms;
        let left = written.filter(|log| applied.is_none() && log.has_local_end(end_ms));
        Ok(ReadLogs {
            store,
            is_written_here: applied.is_some(),
            utc_offset_ms: left.map_or(0, |log| log.utc_offset_ms),
        })
    }
}

/// Adds the texts in the logs of the run in `results` to `advice`, and lets the reasons among them answer.
///
/// # Errors
/// Fails if a log cannot be read.
pub(super) fn add_words(config: &Config, results: &Path, advice: &mut [JobAdvice]) -> Result<()> {
    read_words(config, &logs_of_run(config, results))?.add_to(advice);
    apply_reason_rules(advice);
    name_probes_of_things(advice);
    Ok(())
}

/// Reads the texts in `logs`. No store keeps them, so the logs are read again; the result is empty if a log can be
/// read only once.
fn read_words(config: &Config, logs: &[PathBuf]) -> Result<LogWords> {
    let mut words = LogWords::default();
    if logs.iter().any(|log| eventlog::is_read_once(log)) {
        return Ok(words);
    }
    let logs = find_generations(logs)?;
    let options = ReadOptions {
        has_texts: true,
        ..read_options(config.parse.ap.clone(), config.parse.year, &logs)?
    };
    for log in &logs {
        let on_batch = &mut |batch: EventBatch<'_>| {
            words.add(&batch);
            Ok(())
        };
        eventlog::read(log, &options, |_| {}, on_batch).map_err(explain)?;
    }
    Ok(words)
}

/// The options for reading `logs`, with the access point and the year if they are given.
pub(super) fn read_options(
    ap: Option<String>,
    year: Option<i16>,
    logs: &[PathBuf],
) -> Result<ReadOptions> {
    Ok(ReadOptions {
        ap,
        year,
        likely_ap: eventlog::likely_access_point(logs).map_err(explain_beginning)?,
        ..ReadOptions::default()
    })
}

/// The user's salt, which hashes owners. A store never contains the name of an owner.
pub(super) fn user_salt() -> Result<OwnerSalt> {
    let salt = OwnerSalt::for_this_user()?;
    if let Some(note) = &salt.note {
        output::note(note);
    }
    Ok(salt)
}
