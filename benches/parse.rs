//! Measures how fast a log becomes events, and a store, in GB of log per second of processor time.
//!
//! `cargo bench --bench parse -- LOG [SECONDS]` prints one line per stage. Processor time matters
//! more than wall time, because machines are shared. `ci/bench/parse` runs the benchmark beside
//! HTCondor's own reader.

mod processor;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use htcondor_eventlog::{self as eventlog, ReadOptions};
use poolcast_base::files::StagedDirectory;
use poolcast_base::output;
use poolcast_events::{EventStore, EventStoreBuilder};
use processor::processor_s;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Maximum size of the part of a log that is scanned in memory. The page cache needs the rest of
/// the memory for the log itself.
const MAX_IN_MEMORY_BYTES: u64 = 2 << 30;

/// Repeats `stage` for `seconds`, and prints the GB of log per second.
fn measure(
    name: &str,
    bytes: u64,
    seconds: f64,
    mut stage: impl FnMut() -> Result<()>,
) -> Result<()> {
    // The first round fills the page cache, and gets memory from the system.
    stage()?;

    let start = Instant::now();
    let start_processor_s = processor_s();
    let mut times = 0;
    while start.elapsed() < Duration::from_secs_f64(seconds) {
        stage()?;
        times += 1;
    }

    let gigabytes = bytes as f64 * f64::from(times) / 1e9;
    let wall_s = start.elapsed().as_secs_f64();
    let processor_s = processor_s() - start_processor_s;
    let rates = format!(
        "{:.2} GB/cpu-s, {:.2} GB/s of wall time",
        gigabytes / processor_s,
        gigabytes / wall_s
    );
    output::print(&format!("{name}: {rates}\n"))
}

/// Reads a log. Returns the number of its events, and its uncompressed size in bytes.
fn read_events(log: &Path) -> Result<(u64, u64)> {
    let mut events = 0;
    let read = eventlog::read(log, &ReadOptions::default(), |_| {}, &mut |batch| {
        events += batch.events.len() as u64;
        Ok(())
    })?;
    Ok((events, read.bytes))
}

fn write_store(log: &Path, dir: &Path) -> Result<()> {
    let staging = StagedDirectory::new(dir, true)?;
    let mut builder = EventStoreBuilder::new("", "", Some(staging.path().to_owned()));
    let read = eventlog::read(log, &ReadOptions::default(), |_| {}, &mut |batch| {
        Ok(builder.add_batch(&batch)?)
    })?;
    builder.end_log("log", "", read, None);
    builder.write_store(staging, "bench").map(drop)
}

/// Opens a store of 1,000 shards, all copies of the first shard in `dir`, and prints the time that
/// this takes.
fn open_many(dir: &Path) -> Result<()> {
    let path = dir.join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs_err::read(&path)?)?;
    let first = manifest["shards"][0].clone();
    let names: Vec<String> = (0..1000)
        .map(|n| format!("copy-{n:04}.safetensors"))
        .collect();
    for name in &names {
        fs_err::hard_link(dir.join("events-00000.safetensors"), dir.join(name))?;
    }

    let mut shards = Vec::new();
    for name in &names {
        let mut shard = first.clone();
        shard["file"] = name.as_str().into();
        shards.push(shard);
    }
    manifest["shards"] = shards.into();
    manifest["jobs"] = (first["jobs"].as_u64().unwrap_or(0) * 1000).into();
    fs_err::write(&path, serde_json::to_vec(&manifest)?)?;

    let start = Instant::now();
    let jobs = EventStore::open(dir)?.jobs().len();
    let text = format!(
        "open 1,000 shards: {:.1} ms for {jobs} jobs\n",
        start.elapsed().as_secs_f64() * 1000.0
    );
    output::print(&text)
}

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let log = PathBuf::from(args.next().context("name a log")?);
    let seconds = args.next().map_or(Ok(3.0), |text| text.parse())?;
    let (events, bytes) = read_events(&log)?;
    output::print(&format!(
        "{events} events in {bytes} bytes, {} threads\n",
        rayon::current_num_threads()
    ))?;
    if bytes != fs_err::metadata(&log)?.len() {
        return measure("decompress, read and scan", bytes, seconds, || {
            read_events(&log).map(drop)
        });
    }

    let dir = tempfile::tempdir()?;
    let mut text = Vec::new();
    fs_err::File::open(&log)?
        .take(MAX_IN_MEMORY_BYTES)
        .read_to_end(&mut text)?;
    measure("scan in memory", text.len() as u64, seconds, || {
        std::hint::black_box(eventlog::scan(&text));
        Ok(())
    })?;
    drop(text);
    measure("read and scan", bytes, seconds, || {
        read_events(&log).map(drop)
    })?;
    let events = dir.path().join("events");
    measure("read, scan, sort and store", bytes, seconds, || {
        write_store(&log, &events)
    })?;
    open_many(&events)
}
