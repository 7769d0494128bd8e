//! `poolcast provision samples`: turns a trace into training samples for wait models.

use anyhow::Result;

use super::shared_flags::windows_config;
use super::slurm_keys::{slurm_replay, window_plan};
use super::window_progress::with_window_progress;
use crate::cmd::flags::flag;
use crate::cmd::text;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::{manifest, output};
use poolcast_cli::ProvisionSamplesArgs;
use poolcast_provision::samples::{SAMPLES_FORMAT, WaitSamples, write_samples};
use poolcast_provision::trace::{JobTrace, TRACE_FORMAT};
use poolcast_provision::window::WindowPlan;

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Simulates the windows, and prints a summary of the samples.
pub(super) fn run(args: &ProvisionSamplesArgs) -> Result<u8> {
    let config = windows_config(
        &args.windows,
        [("provision.num_probe", flag(&args.num_probe))],
    )?;
    let trace = JobTrace::open(&args.trace)?;
    let replay = slurm_replay(&config.provision, &trace.zone)?;
    let plan = WindowPlan {
        cost_ratios: Vec::new(),
        ..window_plan(&config.provision, &trace.zone)?
    };
    let key = manifest::key(&(
        manifest::finished_key(&args.trace, TRACE_FORMAT),
        &replay,
        &plan,
        env!("CARGO_PKG_VERSION"),
    ))?;
    let is_done = manifest::finished_key(&args.out, SAMPLES_FORMAT).as_deref() == Some(&key);
    if is_done && !args.overwrite {
        output::note_nothing_new(&args.out, "these samples");
    } else {
        let target = (&*key, args.out.as_path(), args.overwrite);
        with_window_progress("sampled", |progress| {
            write_samples(&trace, &replay, &plan, target, progress)
        })?;
    }

    let summary = WaitSamples::open(&args.out)?.summary();
    if args.json {
        output::print_json(SCHEMA_VERSION, &summary)?;
    } else {
        output::print(&text::samples::summary(&summary, &trace.zone))?;
    }
    Ok(EXIT_DONE)
}
