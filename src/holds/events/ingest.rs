//! Event logs → a store of events: what its key is, what is read on where logs have grown, what is
//! read anew.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};

use super::format::EVENTS_FORMAT;
use super::store::EventStore;
use super::store_builder::EventStoreBuilder;
use super::store_summary::{SourceLog, StoreSummary};
use poolcast_base::error::hinted;
use htcondor_eventlog::{self as eventlog, EventBatch, ReadOptions};
use poolcast_base::files::StagedDirectory;
use poolcast_base::manifest::{self, Checksum};
use poolcast_base::salt::{self, OwnerSalt};

/// What happens while logs are read.
#[derive(Debug, Clone, Copy)]
pub enum IngestStep<'a> {
    /// Logs are read from their beginning.
    Begun {
        /// Their size; 0 where it is not known.
        total_bytes: u64,
    },
    /// All logs were read.
    Ended,
    /// A log that has grown is read from where an earlier call stopped.
    ReadOn {
        /// The log.
        log: &'a Path,
        /// Where in it.
        offset: u64,
    },
    /// An earlier store holds all that the logs hold.
    NothingNew,
    /// An earlier store is of the beginning of these logs, and cannot be used: they are read from
    /// their beginning.
    ReadAnew,
}

/// Who is told how far the reading of logs is.
#[derive(Clone)]
pub struct IngestListener<'a> {
    /// Is told the bytes of each block, by the thread that reads it.
    pub on_bytes: Arc<dyn Fn(u64) + Send + Sync>,
    /// Is told everything else.
    pub on_step: &'a (dyn Fn(IngestStep<'_>) + Sync),
}

impl std::fmt::Debug for IngestListener<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IngestListener").finish_non_exhaustive()
    }
}

/// What the logs are, by content, before they are read.
///
/// # Errors
/// Fails where a log cannot be read.
pub fn identify_logs(logs: &[PathBuf]) -> Result<Vec<SourceLog>> {
    logs.iter().map(|log| identify_log(log)).collect()
}

fn identify_log(log: &Path) -> Result<SourceLog> {
    let mut checksum = Checksum::default();
    checksum
        .read(eventlog::open(log)?)
        .with_context(|| format!("cannot read the log `{}`", log.display()))?;

    let (bytes, xxh3) = checksum.finish();
    Ok(SourceLog {
        name: log_name(log),
        bytes,
        xxh3,
        ..SourceLog::default()
    })
}

/// The name of a log without its directory.
fn log_name(log: &Path) -> String {
    if log == Path::new("-") {
        return "standard input".to_owned();
    }
    log.file_name()
        .unwrap_or(log.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// The key of a store: the digest of everything that its events depend on.
pub fn event_store_key(sources: &[SourceLog], options: &ReadOptions) -> Result<String> {
    let contents: Vec<_> = sources
        .iter()
        .map(|source| (&source.name, source.bytes, &source.xxh3))
        .collect();
    manifest::key(&(EVENTS_FORMAT.version, contents, &options.ap, options.year))
}

/// Reads `logs` into a store in memory; `on_batch` sees all that goes into it. Nothing is kept of it,
/// so its owners are hashed with a salt that nobody knows.
///
/// # Errors
/// Fails where a log cannot be read.
pub fn read_into_memory(
    logs: &[PathBuf],
    options: &ReadOptions,
    listener: &IngestListener<'_>,
    on_batch: &mut BatchListener<'_>,
) -> Result<EventStore> {
    let mut builder = EventStoreBuilder::new(OwnerSalt::random()?.text(), "", None);
    read_whole(logs, options, &mut builder, listener, on_batch)?;
    builder.into_store()
}

/// Sees each batch of events that is read.
pub type BatchListener<'a> = dyn FnMut(&EventBatch<'_>) + Send + 'a;

/// Reads logs from their beginning into `builder`; returns what they are.
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
        let read = eventlog::read(log, options, move |bytes| on_bytes(bytes), &mut |batch| {
            on_batch(&batch);
            builder.add_batch(&batch)
        })?;
        sources.push(builder.end_log(&log_name(log), read, None));
    }

    (listener.on_step)(IngestStep::Ended);
    Ok(sources)
}

/// Logs on their way into the store in a directory.
#[derive(Debug)]
pub struct LogIngest<'a> {
    logs: &'a [PathBuf],
    options: &'a ReadOptions,
    earlier: EarlierStore,
    staging: StagedDirectory,
    builder: EventStoreBuilder,
}

/// What stands where a store is to be written.
#[derive(Debug)]
enum EarlierStore {
    /// Nothing, or what was not made of these logs, or is not looked at.
    Other,
    /// A store of the beginning of these logs: only what follows has to be read.
    Beginning(Box<StoreBeginning>),
    /// A store of the beginning of these logs, of which the last cannot be read on.
    NotResumable,
}

/// A store of the beginning of logs.
#[derive(Debug)]
struct StoreBeginning {
    store: EventStore,
    /// The checksum of the store's last log up to where it can be read on.
    last_log: Checksum,
}

impl<'a> LogIngest<'a> {
    /// Begins a store of `logs` in `out`. If a store of the beginning of these logs is there, it is
    /// read on; any other is left alone.
    ///
    /// # Errors
    /// Fails where another artefact is in `out`, or a store of logs that have rotated since, or one
    /// whose owners were hashed with another salt.
    pub fn reading_on(
        logs: &'a [PathBuf],
        options: &'a ReadOptions,
        salt: &OwnerSalt,
        out: &Path,
    ) -> Result<LogIngest<'a>> {
        let earlier = find_earlier(out, logs, options, salt)?;
        let replaces = !matches!(earlier, EarlierStore::Other);
        LogIngest::new(
            logs,
            options,
            salt,
            StagedDirectory::new(out, replaces)?,
            earlier,
        )
    }

    /// Begins a store of `logs` in `out`, in place of any other artefact.
    ///
    /// # Errors
    /// Fails where something is in `out` that is no artefact.
    pub fn replacing(
        logs: &'a [PathBuf],
        options: &'a ReadOptions,
        salt: &OwnerSalt,
        out: &Path,
    ) -> Result<LogIngest<'a>> {
        let staging = StagedDirectory::new(out, true)?;
        LogIngest::new(logs, options, salt, staging, EarlierStore::Other)
    }

    fn new(
        logs: &'a [PathBuf],
        options: &'a ReadOptions,
        salt: &OwnerSalt,
        staging: StagedDirectory,
        earlier: EarlierStore,
    ) -> Result<LogIngest<'a>> {
        let spill = Some(staging.path().to_owned());
        let builder = EventStoreBuilder::new(salt.text(), &options_key(options)?, spill);
        Ok(LogIngest {
            logs,
            options,
            earlier,
            staging,
            builder,
        })
    }

    /// Reads what has to be read; returns what the logs are.
    ///
    /// # Errors
    /// Fails where a log cannot be read.
    pub fn read(&mut self, listener: &IngestListener<'_>) -> Result<Vec<SourceLog>> {
        let (logs, options) = (self.logs, self.options);
        match &self.earlier {
            EarlierStore::Beginning(beginning) => {
                beginning.read_on(logs, options, &mut self.builder, listener)
            }
            EarlierStore::NotResumable => {
                (listener.on_step)(IngestStep::ReadAnew);
                read_whole(logs, options, &mut self.builder, listener, &mut |_| {})
            }
            EarlierStore::Other => {
                read_whole(logs, options, &mut self.builder, listener, &mut |_| {})
            }
        }
    }

    /// Writes the store of the logs `sources` with its `key`.
    ///
    /// # Errors
    /// Fails where it cannot be written.
    pub fn write(self, key: &str) -> Result<StoreSummary> {
        self.builder.write_store(self.staging, key)
    }
}

/// The digest of what decides how any log is read.
fn options_key(options: &ReadOptions) -> Result<String> {
    manifest::key(options)
}

/// What is in `out`: a store of the beginning of these logs, if all its logs are still there in its
/// order, and only the last of them has grown. A log that is read only once cannot be compared.
fn find_earlier(
    out: &Path,
    logs: &[PathBuf],
    options: &ReadOptions,
    salt: &OwnerSalt,
) -> Result<EarlierStore> {
    if manifest::finished_key(out, EVENTS_FORMAT).is_none()
        || logs.iter().any(|log| eventlog::is_read_once(log))
    {
        return Ok(EarlierStore::Other);
    }
    let store = EventStore::open(out)?;
    let sources = &store.summary.sources;
    if store.summary.options_key != options_key(options)? {
        return Ok(EarlierStore::Other);
    }
    if sources.len() > logs.len() {
        sources
            .last()
            .map_or(Ok(()), |last| refuse_rotated(out, last, logs))?;
        return Ok(EarlierStore::Other);
    }

    // The logs beside it may tell by now whose a log is whose header does not say so.
    if options.likely_ap.is_some() && sources.iter().any(is_nameless) {
        return Ok(EarlierStore::Other);
    }

    let mut last_log = Checksum::default();
    let mut is_resumable = true;
    for (at, (source, log)) in sources.iter().zip(logs).enumerate() {
        let is_last = at + 1 == sources.len();
        let compared = compare(source, log, is_last)?;
        if compared.continuation == Continuation::Differs {
            refuse_rotated(out, source, logs)?;
            return Ok(EarlierStore::Other);
        }
        is_resumable &= compared.continuation == Continuation::Follows;
        last_log = compared.begun;
    }
    if !is_resumable {
        return Ok(EarlierStore::NotResumable);
    }

    refuse_other_salt(out, &store, logs, salt)?;
    Ok(EarlierStore::Beginning(Box::new(StoreBeginning {
        store,
        last_log,
    })))
}

/// Whether the log was of a generation whose access point its header did not say.
fn is_nameless(source: &SourceLog) -> bool {
    source
        .generation
        .as_ref()
        .is_some_and(|generation| generation.ap.is_empty())
}

/// A log beside what a store knows of it.
struct ComparedLog {
    continuation: Continuation,
    /// The checksum of the log up to where it can be read on.
    begun: Checksum,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Continuation {
    /// It begins as it was, and what follows can be read on.
    Follows,
    /// It begins as it was, and has no place to read on from.
    NotResumable,
    /// It is another log now.
    Differs,
}

/// Compares `log` with what is known of it as `source`; only the last of the logs may have grown.
fn compare(source: &SourceLog, log: &Path, is_last: bool) -> Result<ComparedLog> {
    let offset = source
        .resume
        .as_ref()
        .map_or(source.bytes, |resume| resume.offset);
    let file = eventlog::open(log)?;
    let mut begun = Checksum::default();
    begun.read((&file).take(offset))?;
    let mut whole = begun.clone();
    whole.read(file.take(source.bytes.saturating_sub(offset)))?;

    let follows = match &source.resume {
        _ if !has_grown(log, source)? => Continuation::Follows,
        Some(resume) if is_last && eventlog::can_read_on(log, resume)? => Continuation::Follows,
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

/// Fails where something has to be added to `store`, in `out`, whose owners were hashed with
/// another salt.
fn refuse_other_salt(
    out: &Path,
    store: &EventStore,
    logs: &[PathBuf],
    salt: &OwnerSalt,
) -> Result<()> {
    let sources = &store.summary.sources;
    let last = sources.last().zip(logs.get(sources.len().wrapping_sub(1)));
    let has_more = logs.len() > sources.len()
        || last.map_or(Ok(true), |(source, log)| has_grown(log, source))?;
    ensure!(
        !has_more || store.summary.owner_salt_digest == salt::digest(salt.text()),
        hinted(
            format!(
                "the owners in `{}` are hashed with another salt, so the log cannot be read on",
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

/// Fails where one of `logs` is a later generation of the log that `source`, in the store `out`,
/// was.
fn refuse_rotated(out: &Path, source: &SourceLog, logs: &[PathBuf]) -> Result<()> {
    let Some(known) = &source.generation else {
        return Ok(());
    };
    let mut has_later = false;
    for log in logs {
        has_later |=
            eventlog::sequence_number(log)?.is_some_and(|sequence| sequence > known.sequence);
    }
    ensure!(
        !has_later,
        hinted(
            format!(
                "`{}` has rotated since it was parsed into `{}`, and what it was cannot be read on",
                source.name,
                out.display()
            ),
            "`poolcast collect LOG -o ARCHIVE` keeps all generations as they grow: parse those, into another directory"
        )
    );
    Ok(())
}

fn has_grown(log: &Path, source: &SourceLog) -> Result<bool> {
    Ok(fs_err::metadata(log)?.len() > source.bytes)
}

impl StoreBeginning {
    /// Reads into `builder` what `logs` have beyond what the store was made of.
    fn read_on(
        &self,
        logs: &[PathBuf],
        options: &ReadOptions,
        builder: &mut EventStoreBuilder,
        listener: &IngestListener<'_>,
    ) -> Result<Vec<SourceLog>> {
        let mut sources = self.store.summary.sources.clone();
        let (known, new) = logs.split_at(sources.len());
        let grown = match sources.last().zip(known.last()) {
            Some((source, log)) => has_grown(log, source)?,
            None => false,
        };
        if let (Some(earlier), Some(log)) =
            (builder.continue_from(&self.store, grown)?, known.last())
        {
            if let Some(resume) = &earlier.resume {
                (listener.on_step)(IngestStep::ReadOn {
                    log,
                    offset: resume.offset,
                });
                let sink = &mut |batch: EventBatch<'_>| builder.add_batch(&batch);
                let begun = self.last_log.clone();
                let read = eventlog::read_on(log, options, resume, begun, |_| {}, sink)?;
                let source = builder.end_log(&log_name(log), read, Some(&earlier));
                sources.pop();
                sources.push(source);
            }
        } else if new.is_empty() {
            (listener.on_step)(IngestStep::NothingNew);
        }
        sources.extend(read_whole(new, options, builder, listener, &mut |_| {})?);
        Ok(sources)
    }
}
