//! `poolcast provision validate`: a trace → policies of submission on the same windows.

use anyhow::Result;

use super::slurm_keys::{moment_of_key, slurm_replay};
use crate::cli::ProvisionValidateArgs;
use crate::cmd::flags::{flag, flags};
use crate::cmd::text;
use crate::config::{Config, ProvisionConfig};
use crate::error::EXIT_DONE;
use crate::provision::trace::{JobTrace, TRACE_FORMAT, TraceZone};
use crate::provision::validation::{
    VALIDATION_FORMAT, ValidationSettings, WindowPlan, read_validation, validate_policies,
    write_validation,
};
use crate::{manifest, output};

/// The version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Simulates the windows, prints the table.
pub(super) fn run(args: &ProvisionValidateArgs) -> Result<u8> {
    let config = read_config(args)?;
    let trace = JobTrace::open(&args.trace)?;
    let key = manifest::key(&(
        manifest::finished_key(&args.trace, TRACE_FORMAT),
        &config.provision,
        config.seed,
        env!("CARGO_PKG_VERSION"),
    ))?;
    let is_done = manifest::finished_key(&args.out, VALIDATION_FORMAT).as_deref() == Some(&key);
    if is_done && !args.overwrite {
        output::note(&format!(
            "nothing new: `{}` holds this validation already",
            args.out.display()
        ));
    } else {
        write(args, &config, &trace, &key)?;
    }

    let summary = read_validation(&args.out)?;
    if args.json {
        output::print_json(SCHEMA_VERSION, &summary)?;
    } else {
        output::print(&text::validation::summary(&summary, &trace.zone))?;
    }
    Ok(EXIT_DONE)
}

fn read_config(args: &ProvisionValidateArgs) -> Result<Config> {
    Config::load(
        args.config.as_deref(),
        &flags([
            ("provision.nodes", flag(&args.nodes)),
            ("provision.max_jobs_per_user", flag(&args.max_jobs_per_user)),
            ("provision.start_time", flag(&args.start_time)),
            ("provision.end_time", flag(&args.end_time)),
            ("provision.interval", flag(&args.interval)),
            ("provision.job_nodes", flag(&args.job_nodes)),
            ("provision.job_limit", flag(&args.job_limit)),
            ("provision.cost_ratio", flag(&args.cost_ratio)),
            ("provision.draws", flag(&args.draws)),
        ]),
    )
}

fn write(args: &ProvisionValidateArgs, config: &Config, trace: &JobTrace, key: &str) -> Result<()> {
    let provision = &config.provision;
    let replay = slurm_replay(provision, &trace.zone)?;
    let settings = validation_settings(provision, &trace.zone, config.seed)?;
    let bar = output::item_bar(0, "windows");
    let progress = |total: Option<usize>| match total {
        Some(total) => bar.set_length(total as u64),
        None => bar.inc(1),
    };
    let far = || {
        let done = output::counted(bar.position() as usize, "window");
        format!("{done} compared")
    };
    let validated = output::with_progress_notes(far, || {
        validate_policies(trace, &replay, &settings, progress)
    });
    bar.finish_and_clear();
    let (summary, logs) = validated?;
    write_validation(&summary, &logs, key, &args.out, args.overwrite)
}

/// What the configuration says, in seconds.
fn validation_settings(
    provision: &ProvisionConfig,
    zone: &TraceZone,
    seed: u64,
) -> Result<ValidationSettings> {
    let moment_s = |name: &str, date: &Option<String>| {
        let date = date.as_deref();
        date.map(|date| moment_of_key(name, date, zone)).transpose()
    };
    let length = provision.job_length.unwrap_or(provision.job_limit);
    Ok(ValidationSettings {
        from_s: moment_s("--start-time", &provision.start_time)?,
        until_s: moment_s("--end-time", &provision.end_time)?,
        interval_h: provision.interval.into(),
        windows: WindowPlan {
            warmup_s: i64::from(provision.warmup_len) * 86_400,
            workload_s: i64::from(provision.workload_len) * 86_400,
            nodes: provision.job_nodes,
            limit_s: i64::from(provision.job_limit) * 60,
            length_s: i64::from(length) * 60,
            step_s: i64::from(provision.decision_interval) * 60,
            probes: provision.num_probe as usize,
            history_runs: provision.run_history,
            cost_ratios: provision.cost_ratio.list(),
        },
        draws: provision.draws as usize,
        seed,
    })
}
