//! `poolcast parse`: event logs → event shards.

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};

use crate::advice;
use crate::cli::ParseArgs;
use crate::error::{EXIT_DONE, hinted};
use crate::escape;
use crate::eventlog::{self, EventBatch, ReadOptions, event_name};
use crate::events::{EVENTS_FORMAT, EventStore, EventStoreBuilder, SourceLog, StoreSummary};
use crate::files::StagedDirectory;
use crate::manifest::{self, Checksum};
use crate::output;
use crate::salt::{self, OwnerSalt};
use crate::tensors::hold_counts;

/// Reads the logs, writes the store, prints the counts.
pub fn run(args: &ParseArgs) -> Result<u8> {
    let logs = logs(&args.logs)?;
    let options = options(args.ap.clone(), args.year, &logs)?;
    if args.dump {
        return dump(&logs, &options);
    }
    let out = args
        .out
        .as_deref()
        .context("clap asks for `--out` where nothing is dumped")?;
    let salt = salt()?;
    let earlier = if args.overwrite {
        Earlier::Another
    } else {
        earlier(out, &logs, &options, &salt)?
    };
    let staging =
        StagedDirectory::new(out, args.overwrite || !matches!(earlier, Earlier::Another))?;
    let mut builder = EventStoreBuilder::new(
        salt.text(),
        &options_key(&options)?,
        Some(staging.path().to_owned()),
    );
    let sources = match &earlier {
        Earlier::Beginning(beginning) => {
            let (store, begun) = &**beginning;
            go_on(store, begun, &logs, &options, &mut builder)?
        }
        Earlier::Contained => {
            output::note("the last log cannot be read on: all are read anew");
            read(&logs, &options, &mut builder)?
        }
        Earlier::Another => read(&logs, &options, &mut builder)?,
    };
    if args.strict {
        refuse_anomalies(&sources)?;
    }
    let summary = builder.write_store(staging, &key(&sources, &options)?)?;
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&text(&summary))?;
    }
    if args.stats {
        output::print(&stats(&EventStore::open(out)?))?;
    }
    Ok(EXIT_DONE)
}

fn dump(logs: &[PathBuf], options: &ReadOptions) -> Result<u8> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    logs.iter()
        .try_for_each(|log| eventlog::dump(log, options, &mut out))?;
    out.flush()?;
    Ok(EXIT_DONE)
}

/// The logs to read: those that were named, and rotated generations of them.
pub(super) fn logs(named: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let all = eventlog::find_generations(named)?;
    for found in all.iter().filter(|log| !named.contains(log)) {
        output::note(&format!(
            "also reading the rotated generation `{}`",
            found.display()
        ));
    }
    Ok(all)
}

/// How to read `logs`, with what is given of the access point and the year.
pub(super) fn options(
    ap: Option<String>,
    year: Option<i16>,
    logs: &[PathBuf],
) -> Result<ReadOptions> {
    Ok(ReadOptions {
        ap,
        year,
        likely_ap: eventlog::likely_access_point(logs)?,
    })
}

/// What the logs are, by content, before they are read.
pub(super) fn sources(logs: &[PathBuf]) -> Result<Vec<SourceLog>> {
    let source = |path: &PathBuf| {
        let mut checksum = Checksum::default();
        checksum
            .read(eventlog::open(path)?)
            .with_context(|| format!("cannot read the log `{}`", path.display()))?;
        let (bytes, xxh3) = checksum.finish();
        Ok(SourceLog {
            name: name(path),
            bytes,
            xxh3,
            ..SourceLog::default()
        })
    };
    logs.iter().map(source).collect()
}

/// The name of a log without its directory.
fn name(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".to_owned();
    }
    path.file_name()
        .unwrap_or(path.as_os_str())
        .to_string_lossy()
        .into_owned()
}

/// The digest of everything that events depend on.
pub(super) fn key(sources: &[SourceLog], options: &ReadOptions) -> Result<String> {
    let contents: Vec<_> = sources
        .iter()
        .map(|source| (&source.name, source.bytes, &source.xxh3))
        .collect();
    manifest::key(&(EVENTS_FORMAT.version, contents, &options.ap, options.year))
}

/// What owners, who never enter a store by name, are hashed with.
pub(super) fn salt() -> Result<OwnerSalt> {
    let salt = OwnerSalt::for_this_user()?;
    salt.note.iter().for_each(|note| output::note(note));
    Ok(salt)
}

/// Reads logs into `builder`, with a progress bar; returns what they are.
pub(super) fn read(
    logs: &[PathBuf],
    options: &ReadOptions,
    builder: &mut EventStoreBuilder,
) -> Result<Vec<SourceLog>> {
    let total = logs
        .iter()
        .filter_map(|log| fs_err::metadata(log).ok())
        .map(|data| data.len())
        .sum();
    let bar = output::byte_bar(total, "parse");
    let mut sources = Vec::new();
    for path in logs {
        let counted = bar.clone();
        let log = eventlog::read(
            path,
            options,
            move |bytes| counted.inc(bytes),
            &mut |batch| builder.add_batch(&batch),
        )?;
        sources.push(builder.end_log(&name(path), log, None));
    }
    bar.finish_and_clear();
    Ok(sources)
}

/// The digest of what decides how any log is read.
pub(super) fn options_key(options: &ReadOptions) -> Result<String> {
    manifest::key(options)
}

/// What stands where a store is to be written.
enum Earlier {
    /// Nothing, or what was not made of these logs.
    Another,
    /// A store of the beginning of these logs. Only what follows has to be read: beside it, the checksum of the last log up
    /// to where it can be read on.
    Beginning(Box<(EventStore, Checksum)>),
    /// A store of the beginning of these logs, of which the last cannot be read on.
    Contained,
}

/// What is in `out`: a store of the beginning of these logs, if all its logs are still there in its order, and only the last
/// of them has grown. A log that is read only once cannot be compared.
///
/// # Errors
/// Fails where the log has rotated since, and where its owners were hashed with another salt: neither can be read on.
fn earlier(
    out: &Path,
    logs: &[PathBuf],
    options: &ReadOptions,
    salt: &OwnerSalt,
) -> Result<Earlier> {
    if manifest::finished_key(out, EVENTS_FORMAT).is_none()
        || logs.iter().any(|log| eventlog::is_read_once(log))
    {
        return Ok(Earlier::Another);
    }
    let store = EventStore::open(out)?;
    let sources = &store.summary.sources;
    if store.summary.options_key != options_key(options)? {
        return Ok(Earlier::Another);
    }
    if sources.len() > logs.len() {
        sources
            .last()
            .map_or(Ok(()), |last| refuse_rotated(out, last, logs))?;
        return Ok(Earlier::Another);
    }
    let is_nameless = |source: &SourceLog| {
        source
            .generation
            .as_ref()
            .is_some_and(|generation| generation.ap.is_empty())
    };
    if options.likely_ap.is_some() && sources.iter().any(is_nameless) {
        return Ok(Earlier::Another);
    }
    let (mut begun, mut can_go_on) = (Checksum::default(), true);
    for (source, log) in sources.iter().zip(logs) {
        let offset = source
            .resume
            .as_ref()
            .map_or(source.bytes, |resume| resume.offset);
        let file = eventlog::open(log)?;
        begun = Checksum::default();
        begun.read((&file).take(offset))?;
        let mut whole = begun.clone();
        whole.read(file.take(source.bytes.saturating_sub(offset)))?;
        let is_last = std::ptr::eq(source, &sources[sources.len() - 1]);
        let follows = match &source.resume {
            _ if !has_grown(log, source)? => true,
            Some(resume) if is_last => eventlog::can_read_on(log, resume)?,
            None if is_last => {
                can_go_on = false;
                true
            }
            _ => false,
        };
        if !follows || whole.finish() != (source.bytes, source.xxh3.clone()) {
            refuse_rotated(out, source, logs)?;
            return Ok(Earlier::Another);
        }
    }
    if !can_go_on {
        return Ok(Earlier::Contained);
    }
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
    Ok(Earlier::Beginning(Box::new((store, begun))))
}

/// Fails where one of `logs` is a later generation of the log that `source`, in the store `out`, was.
fn refuse_rotated(out: &Path, source: &SourceLog, logs: &[PathBuf]) -> Result<()> {
    let Some(known) = &source.generation else {
        return Ok(());
    };
    let is_later = |log: &PathBuf| {
        Ok(eventlog::sequence_number(log)?.is_some_and(|sequence| sequence > known.sequence))
    };
    let later = logs.iter().map(is_later).collect::<Result<Vec<bool>>>()?;
    let (name, place) = (&source.name, out.display());
    ensure!(
        !later.contains(&true),
        hinted(
            format!(
                "`{name}` has rotated since it was parsed into `{place}`, and what it was cannot be read on"
            ),
            "`poolcast collect LOG -o ARCHIVE` keeps all generations as they grow: parse those, into another directory"
        )
    );
    Ok(())
}

fn has_grown(log: &Path, source: &SourceLog) -> Result<bool> {
    Ok(fs_err::metadata(log)?.len() > source.bytes)
}

/// Reads into `builder` what `logs` have beyond what `store` was made of; `begun` is the checksum of what is not read again
/// of the last of its logs.
fn go_on(
    store: &EventStore,
    begun: &Checksum,
    logs: &[PathBuf],
    options: &ReadOptions,
    builder: &mut EventStoreBuilder,
) -> Result<Vec<SourceLog>> {
    let mut sources = store.summary.sources.clone();
    let (known, new) = logs.split_at(sources.len());
    let grown = match sources.last().zip(known.last()) {
        Some((source, log)) => has_grown(log, source)?,
        None => false,
    };
    if let (Some(earlier), Some(log)) = (builder.continue_from(store, grown)?, known.last()) {
        if let Some(resume) = &earlier.resume {
            output::note(&format!(
                "`{}`: going on after byte {}",
                log.display(),
                resume.offset
            ));
            let sink = &mut |batch: EventBatch<'_>| builder.add_batch(&batch);
            let read = eventlog::read_on(log, options, resume, begun.clone(), |_| {}, sink)?;
            let source = builder.end_log(&name(log), read, Some(&earlier));
            sources.pop();
            sources.push(source);
        }
    } else if new.is_empty() {
        output::note("nothing new in the logs");
    }
    sources.extend(read(new, options, builder)?);
    Ok(sources)
}

/// `--strict`: damage is an error.
fn refuse_anomalies(sources: &[SourceLog]) -> Result<()> {
    let damage = |source: &SourceLog| {
        source
            .places
            .iter()
            .find(|place| place.anomaly.is_damage())
            .map(|place| (source.name.clone(), place.clone()))
    };
    match sources.iter().find_map(damage) {
        None => Ok(()),
        Some((name, place)) => Err(hinted(
            format!(
                "`{name}`: line {} (byte {}): {}",
                place.line,
                place.offset,
                place.anomaly.describe()
            ),
            "leave out `--strict` to count damage and go on",
        )
        .into()),
    }
}

/// The counts for people.
pub(super) fn text(summary: &StoreSummary) -> String {
    let names: Vec<&str> = summary
        .sources
        .iter()
        .map(|source| source.name.as_str())
        .collect();
    let mut text = format!(
        "{}: {} of {} at {}, {} to {}\n",
        escape::value(&names.join(", ")),
        output::counted(summary.record_count() as usize, "record"),
        output::counted(summary.jobs, "job"),
        escape::value(&summary.aps.join(", ")),
        output::utc_time(summary.begin_ms),
        output::utc_time(summary.end_ms),
    );
    let rows = summary.events_by_number.iter();
    let rows: Vec<Vec<String>> = rows
        .map(|(number, count)| {
            vec![
                format!("  {number:03} {}", event_name(*number)),
                output::with_commas(*count),
            ]
        })
        .collect();
    text.push_str(&output::aligned_table(&rows));
    for (anomaly, count) in &summary.anomalies {
        text.push_str(&format!(
            "  {} x {}\n",
            output::with_commas(*count),
            anomaly.describe()
        ));
        let places = summary
            .sources
            .iter()
            .flat_map(|source| source.places.iter().map(move |place| (source, place)));
        for (source, place) in places
            .filter(|(_, place)| place.anomaly == *anomaly)
            .take(3)
        {
            text.push_str(&format!(
                "      {}: line {} (byte {})\n",
                escape::value(&source.name),
                place.line,
                place.offset
            ));
        }
    }
    if summary.doubles > 0 {
        text.push_str(&format!(
            "  {} x an event that was there twice, kept once\n",
            output::with_commas(summary.doubles)
        ));
    }
    for source in summary
        .sources
        .iter()
        .filter(|source| !source.hosts.is_empty())
    {
        let hosts: Vec<&str> = source.hosts.iter().map(String::as_str).collect();
        let (name, hosts) = (escape::value(&source.name), hosts.join(", "));
        let what =
            "jobs of several hosts, taken for those of one access point; equal ids are one job";
        text.push_str(&format!("  {name}: {what}: {}\n", escape::value(&hosts)));
    }
    for gap in &summary.gaps {
        let ap = &summary.aps[gap.ap as usize];
        text.push_str(&format!(
            "  a gap at {}: {} to {}\n",
            escape::value(ap),
            output::utc_time(gap.from_ms),
            output::utc_time(gap.to_ms)
        ));
    }
    text
}

/// Holds by code for people.
fn stats(store: &EventStore) -> String {
    let percent = |part: usize, whole: usize| match whole {
        0 => "-".to_owned(),
        _ => format!("{:.0} %", 100.0 * part as f64 / whole as f64),
    };
    let mut rows = vec![
        [
            "  holds by code",
            "holds",
            "jobs",
            "released",
            "then succeeded",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let mut reasons = String::new();
    for kind in hold_counts(store) {
        let (code, subcode) = (kind.hold_code, kind.hold_subcode);
        rows.push(vec![
            format!("  {code}/{subcode} {}", advice::meaning(code, subcode)),
            output::with_commas(kind.holds as u64),
            output::with_commas(kind.jobs as u64),
            percent(kind.released, kind.holds),
            percent(kind.succeeded, kind.known),
        ]);
        reasons.extend(
            kind.reason
                .map(|reason| format!("  {code}/{subcode}: {}\n", escape::value(&reason))),
        );
    }
    let title = if reasons.is_empty() {
        ""
    } else {
        "  their most frequent reasons, without what varies\n"
    };
    output::aligned_table(&rows) + title + &reasons
}

/// Opens the store in `dir` if it was made from exactly these logs.
pub(super) fn finished(dir: &Path, key: &str) -> Result<Option<EventStore>> {
    let same = manifest::finished_key(dir, EVENTS_FORMAT).as_deref() == Some(key);
    same.then(|| EventStore::open(dir)).transpose()
}
