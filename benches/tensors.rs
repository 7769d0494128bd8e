//! Measures how fast a mapped event store becomes tensors, in samples per second of processor time
//! and of wall time.
//!
//! `cargo bench --bench tensors -- EVENTS [J M TIMEFRAME_LEN]...` prints a line for each size and
//! each way to choose context jobs, with the median of several rounds. `ci/bench/tensors` runs the
//! benchmark beside a builder in Python that follows the published one.

mod processor;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, Result};
use poolcast_base::output;
use poolcast_base::stats::upper_median;
use poolcast_config::{ContextChoice, DEFAULT, yaml};
use poolcast_events::EventStore;
use poolcast_tensors::{PreprocessingConfig, TensorSettings, build};
use processor::processor_s;
use serde::Deserialize;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Rounds per measurement. The first round of a program pays for memory that it touches for the
/// first time.
const ROUNDS: usize = 5;

/// The keys of the configuration that determine samples.
#[derive(Deserialize)]
struct SampleKeys {
    seed: u64,
    preprocessing: PreprocessingConfig,
}

/// Cost of one build of the tensors.
struct BuildRound {
    wall_s: f64,
    processor_s: f64,
    samples: usize,
    /// Size on disk.
    bytes: u64,
}

/// Builds the tensors once.
fn build_once(store: &EventStore, settings: &TensorSettings) -> Result<BuildRound> {
    let dir = tempfile::tempdir()?;
    let out = dir.path().join("tensors");

    let start = Instant::now();
    let processor_before_s = processor_s();
    let summary = build(store, settings, "bench", &out, true, None, |_| {})?;
    let wall_s = start.elapsed().as_secs_f64();
    let processor_s = processor_s() - processor_before_s;

    let files = fs_err::read_dir(&out)?.filter_map(|file| file.ok()?.metadata().ok());
    Ok(BuildRound {
        wall_s,
        processor_s,
        samples: summary.splits.values().map(|side| side.samples).sum(),
        bytes: files.map(|data| data.len()).sum(),
    })
}

fn measure(store: &EventStore, settings: &TensorSettings) -> Result<()> {
    let rounds = (0..ROUNDS)
        .map(|_| build_once(store, settings))
        .collect::<Result<Vec<_>>>()?;
    let wall_s = median(rounds.iter().map(|round| round.wall_s).collect());
    let processor_s = median(rounds.iter().map(|round| round.processor_s).collect());

    let BuildRound { samples, bytes, .. } = rounds[0];
    let one_hot_bytes = (samples * settings.e() * settings.m * settings.j * 4) as f64;
    output::print(&format!(
        "j = {}, m = {}, {}: {samples} samples, {:.0} per cpu-s, {:.0} per s of wall time, 1/{:.0} of the one-hot tensor\n",
        settings.j,
        settings.m,
        settings.context,
        samples as f64 / processor_s,
        samples as f64 / wall_s,
        one_hot_bytes / bytes as f64,
    ))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    upper_median(&values).unwrap_or(f64::NAN)
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
        let default: SampleKeys = yaml::read(DEFAULT)?;
        let mut settings = TensorSettings::new(&default.preprocessing, default.seed)?;
        settings.j = size[0];
        settings.m = size[1];
        settings.timeframe_len_s = size[2] as u32;
        for context in [
            ContextChoice::Uniform,
            ContextChoice::Recent,
            ContextChoice::SameOwnerFirst,
            ContextChoice::Related,
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
