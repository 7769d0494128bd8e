//! How fast a mapped event store becomes tensors, in samples per second of processor time and of wall time.
//!
//! `cargo bench --bench tensors -- EVENTS [J M TIMEFRAME_LEN]...` prints a line for each size and way to choose context
//! jobs, the median of some rounds; `ci/bench/tensors` runs it beside a builder in Python that follows the published one.

mod processor;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result};
use poolcast::config::{Config, ContextChoice};
use poolcast::events::EventStore;
use poolcast::output;
use poolcast::tensors::{TensorSettings, build};
use processor::processor_s;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often each is measured. The first round of a program pays for memory that it touches for the first time.
const ROUNDS: usize = 5;

/// Builds the tensors once; returns the seconds of wall time and of processor time, the samples, and the bytes on disk.
fn round(store: &EventStore, settings: &TensorSettings) -> Result<(f64, f64, usize, u64)> {
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("tensors");
    let (start, processor) = (Instant::now(), processor_s()?);
    let summary = build(store, settings, "bench", &out, true, |_| {})?;
    let (wall_s, processor_s) = (start.elapsed().as_secs_f64(), processor_s()? - processor);
    let samples: usize = summary.splits.values().map(|side| side.samples).sum();
    let files = fs_err::read_dir(&out)?.filter_map(|file| file.ok()?.metadata().ok());
    Ok((
        wall_s,
        processor_s,
        samples,
        files.map(|data| data.len()).sum(),
    ))
}

fn measure(store: &EventStore, settings: &TensorSettings) -> Result<()> {
    let rounds = (0..ROUNDS)
        .map(|_| round(store, settings))
        .collect::<Result<Vec<_>>>()?;
    let median = |seconds: fn(&(f64, f64, usize, u64)) -> f64| {
        let mut all: Vec<f64> = rounds.iter().map(seconds).collect();
        all.sort_by(f64::total_cmp);
        all[ROUNDS / 2]
    };
    let (wall_s, processor_s) = (median(|round| round.0), median(|round| round.1));
    let (.., samples, bytes) = rounds[0];
    let one_hot = (samples * settings.e() * settings.m * settings.j * 4) as f64;
    output::print(&format!(
        "j = {}, m = {}, {}: {samples} samples, {:.0} per cpu-s, {:.0} per s of wall time, 1/{:.0} of the one-hot tensor\n",
        settings.j,
        settings.m,
        settings.context,
        samples as f64 / processor_s,
        samples as f64 / wall_s,
        one_hot / bytes as f64,
    ))
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let (events, sizes) = args.split_first().context("name a directory of events")?;
    let store = EventStore::open(&PathBuf::from(events))?;
    let numbers: Vec<usize> = sizes
        .iter()
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    output::print(&format!(
        "{} jobs, {} threads\n",
        store.jobs().len(),
        rayon::current_num_threads()
    ))?;
    for size in numbers.chunks_exact(3) {
        let mut settings = TensorSettings::from_config(&Config::load(None, &BTreeMap::new())?)?;
        (settings.j, settings.m, settings.timeframe_len_s) = (size[0], size[1], size[2] as u32);
        for context in [
            ContextChoice::Uniform,
            ContextChoice::Recent,
            ContextChoice::SameOwnerFirst,
        ] {
            measure(
                &store,
                &TensorSettings {
                    context,
                    ..settings.clone()
                },
            )?;
        }
    }
    Ok(())
}
