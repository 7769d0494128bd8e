//! `poolcast parse`: event logs → event shards.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::cli::ParseArgs;
use crate::error::EXIT_DONE;
use crate::eventlog::{self, Options, event_name};
use crate::events::{self, EVENTS, Source, Store, Summary};
use crate::{manifest, output};

/// Reads the logs, writes the store, prints the counts.
pub fn run(args: &ParseArgs) -> Result<u8> {
    let options = Options { ap: args.ap.clone(), year: args.year };
    let sources = sources(&args.logs)?;
    let store = read(&args.logs, sources.clone(), &options)?;
    store.write(&args.out, &key(&sources, &options)?, args.overwrite)?;
    if args.json {
        output::json(&store.summary)?
    } else {
        output::data(&text(&store.summary))?
    }
    Ok(EXIT_DONE)
}

/// What the logs are, by content.
pub(super) fn sources(logs: &[PathBuf]) -> Result<Vec<Source>> {
    let source = |path: &PathBuf| {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let read = manifest::digest_reader(eventlog::open(path)?);
        let (bytes, sha256) = read.with_context(|| format!("cannot read the log `{}`", path.display()))?;
        Ok(Source { name, bytes, sha256 })
    };
    logs.iter().map(source).collect()
}

/// The digest of everything that events depend on.
pub(super) fn key(sources: &[Source], options: &Options) -> Result<String> {
    manifest::key(&(EVENTS.version, sources, &options.ap, options.year))
}

/// Reads logs into a store in memory, with a progress bar.
pub(super) fn read(logs: &[PathBuf], sources: Vec<Source>, options: &Options) -> Result<Store> {
    let total = sources.iter().map(|source| source.bytes).sum();
    let bar = output::byte_bar(total, "parse");
    let read_one = |path: &PathBuf| {
        let bar = bar.clone();
        eventlog::read(path, options, move |bytes| bar.inc(bytes))
    };
    let logs: Vec<_> = logs.iter().map(read_one).collect::<Result<_>>()?;
    bar.finish_and_clear();
    // Owners never enter a store by name. Whoever needs hashes that nobody can guess sets a salt.
    let salt = std::env::var("POOLCAST_OWNER_SALT").unwrap_or_else(|_| "poolcast".to_owned());
    Ok(events::build(logs, sources, &salt))
}

/// The counts for people.
pub(super) fn text(summary: &Summary) -> String {
    let names: Vec<&str> = summary.sources.iter().map(|source| source.name.as_str()).collect();
    let mut text = format!(
        "{}: {} records of {} jobs at {}, {} to {}\n",
        names.join(", "),
        output::count(summary.records()),
        output::count(summary.jobs as u64),
        summary.aps.join(", "),
        output::utc(summary.begin_ms),
        output::utc(summary.end_ms),
    );
    let rows = summary.events_by_number.iter();
    let rows: Vec<Vec<String>> = rows
        .map(|(number, count)| vec![format!("  {number:03} {}", event_name(*number)), output::count(*count)])
        .collect();
    text.push_str(&output::table(&rows));
    for (anomaly, count) in &summary.anomalies {
        text.push_str(&format!("  {} x {}\n", output::count(*count), anomaly.describe()));
    }
    text
}

/// Opens the store in `dir` if it was made from exactly these logs.
pub(super) fn finished(dir: &Path, key: &str) -> Result<Option<Store>> {
    let same = manifest::finished_key(dir, EVENTS).as_deref() == Some(key);
    same.then(|| Store::open(dir)).transpose()
}
