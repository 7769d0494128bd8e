//! `poolcast provision samples`: a trace → what models of waits learn from.

use anyhow::Result;

use super::slurm_keys::{slurm_replay, window_plan};
use crate::cli::ProvisionSamplesArgs;
use crate::cmd::flags::{flag, flags};
use crate::cmd::text;
use crate::config::Config;
use crate::error::EXIT_DONE;
use crate::provision::replay::SlurmReplay;
use crate::provision::samples::{SAMPLES_FORMAT, WaitSamples, write_samples};
use crate::provision::trace::{JobTrace, TRACE_FORMAT};
use crate::provision::window::WindowPlan;
use crate::{manifest, output};

/// The version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Simulates the windows, says what the samples are like.
pub(super) fn run(args: &ProvisionSamplesArgs) -> Result<u8> {
    let config = read_config(args)?;
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
        output::note(&format!(
            "nothing new: `{}` holds these samples already",
            args.out.display()
        ));
    } else {
        write(args, &trace, &replay, &plan, &key)?;
    }

    let summary = WaitSamples::open(&args.out)?.summary();
    if args.json {
        output::print_json(SCHEMA_VERSION, &summary)?;
    } else {
        output::print(&text::samples::summary(&summary, &trace.zone))?;
    }
    Ok(EXIT_DONE)
}

fn read_config(args: &ProvisionSamplesArgs) -> Result<Config> {
    Config::load(
        args.config.as_deref(),
        &flags([
            ("provision.nodes", flag(&args.nodes)),
            ("provision.max_jobs_per_user", flag(&args.max_jobs_per_user)),
            ("provision.start_time", flag(&args.start_time)),
            ("provision.end_time", flag(&args.end_time)),
            ("provision.interval", flag(&args.interval)),
            ("provision.num_probe", flag(&args.num_probe)),
            ("provision.job_nodes", flag(&args.job_nodes)),
            ("provision.job_limit", flag(&args.job_limit)),
            (
                "provision.cold_start",
                flag(&args.cold_start.then_some(true)),
            ),
        ]),
    )
}

fn write(
    args: &ProvisionSamplesArgs,
    trace: &JobTrace,
    replay: &SlurmReplay,
    plan: &WindowPlan,
    key: &str,
) -> Result<()> {
    let bar = output::item_bar(0, "windows");
    let progress = |total: Option<usize>| match total {
        Some(total) => bar.set_length(total as u64),
        None => bar.inc(1),
    };
    let far = || {
        let done = output::counted(bar.position() as usize, "window");
        format!("{done} sampled")
    };
    let target = (key, args.out.as_path(), args.overwrite);
    let written =
        output::with_progress_notes(far, || write_samples(trace, replay, plan, target, progress));
    bar.finish_and_clear();
    written
}
