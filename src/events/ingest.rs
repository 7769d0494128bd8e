//! Reads event logs into a store. Resumes logs that have grown, and reads others from the
//! beginning.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};

use super::format::EVENTS_FORMAT;
use super::later_events::LastEvents;
use super::log_files::{LogFiles, StoredLogs};
use super::read_log::{read_log, resume_log};
use super::store::EventStore;
use super::store_builder::EventStoreBuilder;
use super::store_summary::{SourceLog, StoreSummary};
use htcondor_eventlog::{self as eventlog, EventBatch, ReadOptions};
use poolcast_base::error::hinted;
use poolcast_base::files::StagedDirectory;
use poolcast_base::manifest::{self, Checksum};
use poolcast_base::salt::{self, OwnerSalt};
use poolcast_base::shard::Shard;
use poolcast_collect::{explain, explain_beginning};

/// Steps of reading logs, as reported to a listener.
#[derive(Debug, Clone, Copy)]
pub enum IngestStep<'a> {
    /// The reading of logs from their beginning has begun.
    Begun {
        /// Total size of the logs, in bytes; 0 if unknown.
        total_bytes: u64,
    },
    /// Only the last change of a log gives the year of its stamps.
    YearAssumed {
        /// Path of the log.
        log: &'a Path,
        /// Year of its first event.
        year: i64,
    },
    /// All logs were read.
    Ended,
    /// A log that has grown is read from its resume point.
    ReadOn {
        /// Path of the log.
        log: &'a Path,
        /// Offset of the resume point, in bytes.
        offset: u64,
    },
    /// An earlier store already holds the whole content of the logs.
    NothingNew,
    /// An earlier store holds the beginning of these logs, but cannot be resumed. The logs are read
    /// from their beginning.
    ReadAnew,
}

/// Callbacks for the progress of reading.
#[derive(Clone)]
pub struct IngestListener<'a> {
    /// Receives the size of each block, in bytes, on the thread that reads it.
    pub on_bytes: Arc<dyn Fn(u64) + Send + Sync>,
    /// Receives all other steps.
    pub on_step: &'a (dyn Fn(IngestStep<'_>) + Sync),
}

impl std::fmt::Debug for IngestListener<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IngestListener").finish_non_exhaustive()
    }
}

/// Identifies the logs by content, before they are parsed. Those that the store in `earlier` has
/// and that did not change since are not read.
///
/// # Errors
/// Fails if a log cannot be read.
pub fn identify_logs(logs: &[PathBuf], earlier: &Path) -> Result<Vec<SourceLog>> {
    let stored = StoredLogs::in_store(earlier);
    let mut sources = Vec::new();
    for (at, log) in logs.iter().enumerate() {
        sources.push(match stored.unchanged(at, log) {
            Some(source) => SourceLog {
                name: log_name(log),
                ..source.clone()
            },
            None => identify_log(log)?,
        });
    }
    Ok(sources)
}

fn identify_log(log: &Path) -> Result<SourceLog> {
    let mut checksum = Checksum::default();
    checksum
        .read(eventlog::open(log).map_err(explain)?)
        .with_context(|| format!("cannot read the log `{}`", log.display()))?;

    let (bytes, xxh3) = checksum.finish();
    Ok(SourceLog {
        name: log_name(log),
        bytes,
        xxh3,
        ..SourceLog::default()
    })
}

/// Returns the name of a log without its directory.
fn log_name(log: &Path) -> String {
    if log == Path::new("-") {
        return "standard input".to_owned();
    }
    log.file_name()
        .unwrap_or(log.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// Returns the key of a store: the digest of everything that its events depend on.
pub fn event_store_key(sources: &[SourceLog], options: &ReadOptions) -> Result<String> {
    let contents: Vec<_> = sources
        .iter()
        .map(|source| (&source.name, source.bytes, &source.xxh3))
        .collect();
    manifest::key(&(EVENTS_FORMAT.version, contents, &options.ap, options.year))
}

/// Reads `logs` into a store in memory, and then `history`, the log of a history. Of a job that the
/// logs have, only what happened after its last event there is added from the history. With `until_ms`,
/// epoch ms, the store has only what happened by then; its summary says when the logs end. `on_batch` receives all events, also later ones. The store is
/// not kept, so its owners are hashed with a random salt.
///
/// # Errors
/// Fails if a log cannot be read, or if the logs do not cover `until_ms`.
pub fn read_into_memory(
    logs: &[PathBuf],
    history: Option<&Path>,
    options: &ReadOptions,
    until_ms: Option<i64>,
    listener: &IngestListener<'_>,
    on_batch: &mut BatchListener<'_>,
) -> Result<EventStore> {
    let mut builder = EventStoreBuilder::new(OwnerSalt::random()?.text(), "", None);
    if let Some(until_ms) = until_ms {
        builder.leave_out_after(until_ms);
    }
    let Some(history) = history else {
        read_whole(logs, options, &mut builder, listener, on_batch)?;
        return builder.into_store();
    };
    let mut last = LastEvents::default();
    let listen = &mut |batch: &EventBatch<'_>| {
        last.add(batch);
        on_batch(batch);
    };
    read_whole(logs, options, &mut builder, listener, listen)?;
    let read = read_log(history, options, |_| {}, &mut |batch| {
        let events = &last.later_events(&batch);
        let batch = EventBatch { events, ..batch };
        on_batch(&batch);
        builder.add_batch(&batch)
    })?;
    builder.end_log(&log_name(history), &read.xxh3, read.summary, None);
    builder.into_store()
}

/// Receives each batch of events that is read.
pub type BatchListener<'a> = dyn FnMut(&EventBatch<'_>) + Send + 'a;

/// Reads logs from their beginning into `builder`; returns their summaries.
fn read_whole(
    logs: &[PathBuf],
    options: &ReadOptions,
    builder: &mut EventStoreBuilder,
    listener: &IngestListener<'_>,
    on_batch: &mut BatchListener<'_>,
) -> Result<Vec<SourceLog>> {
    let total_bytes = logs
        .iter()
        .filter_map(|log| fs_err::metadata(log).ok())
        .map(|data| data.len())
        .sum();
    (listener.on_step)(IngestStep::Begun { total_bytes });

    let mut sources = Vec::new();
    for log in logs {
        let on_bytes = Arc::clone(&listener.on_bytes);
        let read = read_log(log, options, move |bytes| on_bytes(bytes), &mut |batch| {
            on_batch(&batch);
            builder.add_batch(&batch)
        })?;
        if let Some(year) = read.summary.assumed_year {
            (listener.on_step)(IngestStep::YearAssumed { log, year });
        }
        sources.push(builder.end_log(&log_name(log), &read.xxh3, read.summary, None));
    }

    (listener.on_step)(IngestStep::Ended);
    Ok(sources)
}

/// Reads logs into a store in a directory.
#[derive(Debug)]
pub struct LogIngest<'a> {
    logs: &'a [PathBuf],
    options: &'a ReadOptions,
    out: PathBuf,
    /// The files of the logs before they are read; `None` if one of them can be read only once.
    files: Option<LogFiles>,
    earlier: EarlierStore,
    /// The store under construction; `None` if the earlier store is whole.
    new: Option<NewStore>,
}

/// The content of the output directory before the logs are read.
#[derive(Debug)]
enum EarlierStore {
    /// No store of these logs, or a store that is not compared with them.
    Other,
    /// A store of all content of these logs.
    Whole(Box<StoreBeginning>),
    /// A store of the beginning of these logs. Only the rest must be read.
    Beginning(Box<StoreBeginning>),
    /// A store of the beginning of these logs, whose last log cannot be resumed.
    NotResumable,
}

/// A store of the beginning of the logs.
#[derive(Debug)]
struct StoreBeginning {
    dir: PathBuf,
    summary: StoreSummary,
    /// True if the store's last log has more content by now.
    last_has_grown: bool,
    /// Checksum of the store's last log up to its resume point, if it has grown.
    last_log: Checksum,
    /// True if the files of the logs are those that were recorded with the store.
    has_same_files: bool,
}

/// A store under construction, and its directory.
#[derive(Debug)]
struct NewStore {
    staging: StagedDirectory,
    builder: EventStoreBuilder,
}

impl<'a> LogIngest<'a> {
    /// Begins a store of `logs` in `out`. Resumes a store of the beginning of these logs if `out`
    /// holds one, and never replaces any other content.
    ///
    /// # Errors
    /// Fails if `out` holds another artefact, a store of logs that have rotated since, or a store
    /// whose owners were hashed with another salt.
    pub fn reading_on(
        logs: &'a [PathBuf],
        options: &'a ReadOptions,
        salt: &OwnerSalt,
        out: &Path,
    ) -> Result<LogIngest<'a>> {
        let files = LogFiles::of(logs);
        let earlier = find_earlier(out, logs, options, salt)?;
        let replaces = !matches!(earlier, EarlierStore::Other);
        LogIngest::new(logs, options, salt, out, (files, earlier), replaces)
    }

    /// Begins a store of `logs` in `out`. Resumes a store of the beginning of these logs if `out`
    /// holds one, and replaces any other artefact.
    ///
    /// # Errors
    /// Fails if `out` holds something that is not an artefact.
    pub fn updating(
        logs: &'a [PathBuf],
        options: &'a ReadOptions,
        salt: &OwnerSalt,
        out: &Path,
    ) -> Result<LogIngest<'a>> {
        let files = LogFiles::of(logs);
        let earlier = find_earlier(out, logs, options, salt).unwrap_or(EarlierStore::Other);
        LogIngest::new(logs, options, salt, out, (files, earlier), true)
    }

    /// Begins a store of `logs` in `out`, in place of any other artefact.
    ///
    /// # Errors
    /// Fails if `out` holds something that is not an artefact.
    pub fn replacing(
        logs: &'a [PathBuf],
        options: &'a ReadOptions,
        salt: &OwnerSalt,
        out: &Path,
    ) -> Result<LogIngest<'a>> {
        let found = (LogFiles::of(logs), EarlierStore::Other);
        LogIngest::new(logs, options, salt, out, found, true)
    }

    fn new(
        logs: &'a [PathBuf],
        options: &'a ReadOptions,
        salt: &OwnerSalt,
        out: &Path,
        (files, earlier): (Option<LogFiles>, EarlierStore),
        replaces: bool,
    ) -> Result<LogIngest<'a>> {
        let new = match earlier {
            EarlierStore::Whole(_) => None,
            _ => {
                let staging = StagedDirectory::new(out, replaces)?;
                let spill = Some(staging.path().to_owned());
                let builder = EventStoreBuilder::new(salt.text(), &options_key(options)?, spill);
                Some(NewStore { staging, builder })
            }
        };
        Ok(LogIngest {
            logs,
            options,
            out: out.to_owned(),
            files,
            earlier,
            new,
        })
    }

    /// Reads the new content of the logs; returns the summaries of all logs.
    ///
    /// # Errors
    /// Fails if a log cannot be read.
    pub fn read(&mut self, listener: &IngestListener<'_>) -> Result<Vec<SourceLog>> {
        let (logs, options) = (self.logs, self.options);
        let Some(NewStore { builder, .. }) = &mut self.new else {
            (listener.on_step)(IngestStep::NothingNew);
            return Ok(self.earlier.sources().to_vec());
        };
        if let EarlierStore::Beginning(beginning) = &self.earlier {
            return beginning.read_on(logs, options, builder, listener);
        }
        if matches!(self.earlier, EarlierStore::NotResumable) {
            (listener.on_step)(IngestStep::ReadAnew);
        }
        read_whole(logs, options, builder, listener, &mut |_| {})
    }

    /// Writes the store with its `key`. An earlier store of all content stays as it is.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    pub fn write(self, key: &str) -> Result<StoreSummary> {
        if let EarlierStore::Whole(whole) = self.earlier {
            // Their content is the same, and the next call need not read them to know it.
            if let Some(files) = self.files.filter(|_| !whole.has_same_files) {
                files.write(&self.out)?;
            }
            return Ok(whole.summary);
        }
        let NewStore { staging, builder } = self.new.context("there is no store to write")?;
        if let Some(files) = &self.files {
            files.write(staging.path())?;
        }
        builder.write_store(staging, key)
    }
}

impl EarlierStore {
    fn sources(&self) -> &[SourceLog] {
        match self {
            EarlierStore::Whole(store) | EarlierStore::Beginning(store) => &store.summary.sources,
            EarlierStore::Other | EarlierStore::NotResumable => &[],
        }
    }
}

/// Returns the digest of the options that decide how a log is read.
fn options_key(options: &ReadOptions) -> Result<String> {
    manifest::key(options)
}

/// Inspects `out`. It holds a store of the beginning of these logs if all logs of the store still
/// exist in the same order, and only the last of them has grown. Their names may be other ones. A
/// log that can be read only once cannot be compared. Files that were not changed since the store
/// was written are not read.
fn find_earlier(
    out: &Path,
    logs: &[PathBuf],
    options: &ReadOptions,
    salt: &OwnerSalt,
) -> Result<EarlierStore> {
    let Some(summary) = comparable_summary(out, logs, options)? else {
        return Ok(EarlierStore::Other);
    };
    let sources = &summary.sources;
    let stored = StoredLogs::new(out, sources.clone());
    let (mut last_has_grown, mut last_log) = (false, Checksum::default());
    let (mut is_resumable, mut has_same_files) = (true, true);
    for (at, (source, log)) in sources.iter().zip(logs).enumerate() {
        if stored.unchanged(at, log).is_some() {
            continue;
        }
        has_same_files = false;
        let is_last = at + 1 == sources.len();
        let compared = compare(source, log, is_last)?;
        if compared.continuation == Continuation::Differs {
            ensure_not_rotated(out, source, logs)?;
            return Ok(EarlierStore::Other);
        }
        is_resumable &= compared.continuation != Continuation::NotResumable;
        last_has_grown = compared.continuation == Continuation::Follows;
        last_log = compared.begun;
    }
    if !is_resumable {
        return Ok(EarlierStore::NotResumable);
    }

    let has_more = logs.len() > sources.len() || last_has_grown;
    if has_more {
        ensure_same_salt(out, &summary, salt)?;
    }
    check_shards(out, &summary)?;
    let has_same_names =
        (sources.iter().zip(logs)).all(|(source, log)| source.name == log_name(log));
    let found = Box::new(StoreBeginning {
        dir: out.to_owned(),
        summary,
        last_has_grown,
        last_log,
        has_same_files,
    });
    Ok(match has_more || !has_same_names {
        true => EarlierStore::Beginning(found),
        false => EarlierStore::Whole(found),
    })
}

/// Returns the summary of the store in `out` if its logs can be compared with `logs`; `None` if it is of others,
/// or was read in another way.
fn comparable_summary(
    out: &Path,
    logs: &[PathBuf],
    options: &ReadOptions,
) -> Result<Option<StoreSummary>> {
    let is_finished = manifest::finished_key(out, EVENTS_FORMAT).is_some();
    if !is_finished || logs.iter().any(|log| eventlog::is_read_once(log)) {
        return Ok(None);
    }
    let summary: StoreSummary = manifest::read(out, EVENTS_FORMAT)?.body;
    let sources = &summary.sources;
    if summary.options_key != options_key(options)? {
        return Ok(None);
    }
    if sources.len() > logs.len() {
        sources
            .last()
            .map_or(Ok(()), |last| ensure_not_rotated(out, last, logs))?;
        return Ok(None);
    }

    // The logs may by now identify the access point of a log whose header does not name it.
    let may_be_named = options.likely_ap.is_some() && sources.iter().any(lacks_access_point);
    Ok((!may_be_named).then_some(summary))
}

/// Checks the beginnings of all shards of the store in `out`. Those that are kept are not read.
fn check_shards(out: &Path, summary: &StoreSummary) -> Result<()> {
    for listed in &summary.shards {
        Shard::open(&manifest::listed_path(out, &listed.file)?, EVENTS_FORMAT)?;
    }
    Ok(())
}

/// Returns true if the header of the log's generation did not name its access point.
fn lacks_access_point(source: &SourceLog) -> bool {
    source
        .generation
        .as_ref()
        .is_some_and(|generation| generation.ap.is_empty())
}

/// The comparison of a log with its summary in a store.
struct ComparedLog {
    continuation: Continuation,
    /// Checksum of the log up to its resume point.
    begun: Checksum,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Continuation {
    /// The log is unchanged.
    Same,
    /// The beginning is unchanged, and the rest can be read.
    Follows,
    /// The beginning is unchanged, but the log has no resume point.
    NotResumable,
    /// The log has changed.
    Differs,
}

/// Compares `log` with its summary `source`. Only the last of the logs may have grown.
fn compare(source: &SourceLog, log: &Path, is_last: bool) -> Result<ComparedLog> {
    let offset = source
        .resume
        .as_ref()
        .map_or(source.bytes, |resume| resume.offset);
    let file = eventlog::open(log).map_err(explain)?;
    let mut begun = Checksum::default();
    begun.read((&file).take(offset))?;
    // The same checksum continues to the old end of the log, so the log is read once.
    let mut whole = begun.clone();
    whole.read(file.take(source.bytes.saturating_sub(offset)))?;

    let follows = match &source.resume {
        _ if fs_err::metadata(log)?.len() <= source.bytes => Continuation::Same,
        Some(resume) if is_last && eventlog::can_read_on(log, resume).map_err(explain)? => {
            Continuation::Follows
        }
        None if is_last => Continuation::NotResumable,
        _ => Continuation::Differs,
    };
    let is_same = whole.finish() == (source.bytes, source.xxh3.clone());
    Ok(ComparedLog {
        continuation: if is_same {
            follows
        } else {
            Continuation::Differs
        },
        begun,
    })
}

/// Fails if the owners in the store in `out` were hashed with another salt.
fn ensure_same_salt(out: &Path, summary: &StoreSummary, salt: &OwnerSalt) -> Result<()> {
    ensure!(
        summary.owner_salt_digest == salt::digest(salt.text()),
        hinted(
            format!(
                "cannot append to `{}`, whose owners are hashed with another salt",
                out.display()
            ),
            format!(
                "set `{}` to the file of that salt, or name another directory",
                salt::SALT_FILE_VARIABLE
            )
        )
    );
    Ok(())
}

/// Fails if one of `logs` is a later generation of the log `source` in the store `out`.
fn ensure_not_rotated(out: &Path, source: &SourceLog, logs: &[PathBuf]) -> Result<()> {
    let Some(known) = &source.generation else {
        return Ok(());
    };
    let mut has_later = false;
    for log in logs {
        let sequence = eventlog::sequence_number(log).map_err(explain_beginning)?;
        has_later |= sequence.is_some_and(|sequence| sequence > known.sequence);
    }
    ensure!(
        !has_later,
        hinted(
            format!(
                "`{}` has rotated since it was parsed into `{}`, so its earlier generation cannot be read further",
                source.name,
                out.display()
            ),
            "keep all generations with `poolcast collect LOG -o ARCHIVE`, and parse the archive into another directory"
        )
    );
    Ok(())
}

impl StoreBeginning {
    /// Reads into `builder` the content of `logs` that the store does not hold.
    fn read_on(
        &self,
        logs: &[PathBuf],
        options: &ReadOptions,
        builder: &mut EventStoreBuilder,
        listener: &IngestListener<'_>,
    ) -> Result<Vec<SourceLog>> {
        let mut sources = self.summary.sources.clone();
        let (known, new) = logs.split_at(sources.len());
        for (source, log) in sources.iter_mut().zip(known) {
            source.name = log_name(log);
        }

        let grown = builder.continue_from(&self.dir, &self.summary, self.last_has_grown);
        builder.rename_logs(known.iter().map(|log| log_name(log)));
        let resume = grown.as_ref().and_then(|earlier| earlier.resume.as_ref());
        if let (Some(resume), Some(log)) = (resume, known.last()) {
            (listener.on_step)(IngestStep::ReadOn {
                log,
                offset: resume.offset,
            });
            let sink = &mut |batch: EventBatch<'_>| builder.add_batch(&batch);
            let begun = self.last_log.clone();
            let read = resume_log(log, options, resume, begun, sink)?;
            let name = log_name(log);
            let source = builder.end_log(&name, &read.xxh3, read.summary, grown.as_ref());
            sources.pop();
            sources.push(source);
        } else if new.is_empty() {
            (listener.on_step)(IngestStep::NothingNew);
        }
        sources.extend(read_whole(new, options, builder, listener, &mut |_| {})?);
        Ok(sources)
    }
}
