//! Simulates the windows of a trace and writes their samples to disk.

use std::path::Path;

use anyhow::{Result, ensure};
use rayon::prelude::*;

use super::sample_window::WindowSampling;
use super::samples_store::SamplesWriter;
use super::wait_samples::{SamplesDescription, WindowSamples};
use crate::forecast::WaitForecast;
use crate::model_inputs::feature_names;
use crate::replay::{SlurmReplay, SlurmWorld};
use crate::trace::JobTrace;
use crate::window::{OpenWindow, WindowOpener, WindowPlan};

/// Windows per shard. As many are in memory at the same time.
const WINDOWS_PER_SHARD: usize = 128;

/// Simulates the windows of `plan`, and writes their samples with the key `key` into the directory
/// `out`. With `overwrite`, replaces earlier samples there. Calls `progress` with the number of
/// windows, and then with `None` after each window.
///
/// # Errors
/// Fails if no window fits, if the chained jobs never start, or if `out` cannot be written.
pub fn write_samples(
    trace: &JobTrace,
    replay: &SlurmReplay,
    plan: &WindowPlan,
    (key, out, overwrite): (&str, &Path, bool),
    progress: impl Fn(Option<usize>) + Sync,
) -> Result<()> {
    let world = SlurmWorld::new(trace, replay)?;
    let begins_s = plan.begins(trace, &world)?;
    let sampling = WindowSampling {
        world: &world,
        plan,
        zone: &trace.zone,
        forecast: WaitForecast {
            settings: world.settings.clone(),
            draws: 0,
            seed: 0,
        },
    };
    let description = describe(trace, &world, plan, &begins_s);
    let mut writer = SamplesWriter::new(description, out, overwrite)?;
    progress(Some(begins_s.len()));

    // Windows are opened in order of time. Then the windows of a shard are simulated in parallel.
    let mut opener = WindowOpener::new(&world, plan, true);
    let mut number = 0;
    for part in begins_s.chunks(WINDOWS_PER_SHARD) {
        let mut windows = Vec::with_capacity(part.len());
        for begin_s in part {
            windows.push((number, opener.open(*begin_s)));
            number += 1;
        }
        let ended = opener.ended();
        let sample = |(number, window): (u32, OpenWindow<'_>)| {
            let samples = sampling.sample(number, window, ended);
            progress(None);
            samples
        };
        let sampled: Vec<Option<WindowSamples>> = windows.into_par_iter().map(sample).collect();
        let started: Vec<WindowSamples> = sampled.into_iter().flatten().collect();
        writer.description.never_started += part.len() - started.len();
        writer.write(&started)?;
    }
    ensure!(
        writer.description.rows > 0,
        "there is no window in which both chained jobs start"
    );
    writer.commit(key)
}

fn describe(
    trace: &JobTrace,
    world: &SlurmWorld,
    plan: &WindowPlan,
    begins_s: &[i64],
) -> SamplesDescription {
    SamplesDescription {
        job_nodes: plan.nodes,
        limit_s: plan.limit_s,
        length_s: plan.length_s,
        zone: trace.zone.name.clone(),
        cold_start: plan.cold_start,
        warmup_s: plan.warmup_s,
        workload_s: plan.workload_s,
        interval_h: plan.interval_h,
        excess_nodes: (-world.cluster().free_nodes()).max(0) as u32,
        too_large: world.too_large,
        probes: plan.probes,
        windows: begins_s.len(),
        never_started: 0,
        first_s: begins_s[0],
        last_s: begins_s[begins_s.len() - 1],
        known_until_s: i64::MIN,
        feature_names: feature_names(),
        rows: 0,
    }
}
