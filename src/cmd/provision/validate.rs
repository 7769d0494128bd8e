//! `poolcast provision validate`: compares submit policies on the same windows of a trace.

use std::sync::Arc;

use anyhow::Result;

use super::shared_flags::windows_config;
use super::slurm_keys::{slurm_replay, window_plan};
use super::window_progress::with_window_progress;
use crate::cmd::best_wait_model::open_wait_model;
use crate::cmd::flags::flag;
use crate::cmd::text;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::{manifest, output};
use poolcast_cli::ProvisionValidateArgs;
use poolcast_provision::trace::{JobTrace, TRACE_FORMAT};
use poolcast_provision::validation::{
    VALIDATION_FORMAT, ValidationSettings, read_validation, validate_policies, write_validation,
};
use poolcast_provision::wait_model::WaitModel;
use poolcast_sweep::config::Config;

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Simulates the windows, and prints the table of the policies.
pub(super) fn run(args: &ProvisionValidateArgs) -> Result<u8> {
    let more = [
        ("provision.cost_ratio", flag(&args.cost_ratio)),
        ("provision.draws", flag(&args.draws)),
    ];
    let config = windows_config(&args.windows, more)?;
    let trace = JobTrace::open(&args.trace)?;
    let mut models = Vec::with_capacity(args.model.len());
    for dir in &args.model {
        models.push(Arc::new(open_wait_model(dir)?));
    }
    let model_keys: Vec<&str> = models
        .iter()
        .map(|model| &*model.description().key)
        .collect();
    let key = manifest::key(&(
        manifest::finished_key(&args.trace, TRACE_FORMAT),
        model_keys,
        &config.provision,
        config.seed,
        env!("CARGO_PKG_VERSION"),
    ))?;
    let is_done = manifest::finished_key(&args.out, VALIDATION_FORMAT).as_deref() == Some(&key);
    if is_done && !args.earlier.overwrite {
        output::note_nothing_new(&args.out, "this validation");
    } else {
        write(args, &config, &trace, &models, &key)?;
    }

    let summary = read_validation(&args.out)?;
    if args.output.json {
        output::print_json(SCHEMA_VERSION, &summary)?;
    } else {
        output::print(&text::validation::summary(&summary, &trace.zone))?;
    }
    Ok(EXIT_DONE)
}

fn write(
    args: &ProvisionValidateArgs,
    config: &Config,
    trace: &JobTrace,
    models: &[Arc<WaitModel>],
    key: &str,
) -> Result<()> {
    let provision = &config.provision;
    let replay = slurm_replay(provision, &trace.zone)?;
    let settings = ValidationSettings {
        windows: window_plan(provision, &trace.zone)?,
        draws: provision.draws as usize,
        seed: config.seed,
    };
    let (summary, logs) = with_window_progress("compared", |progress| {
        validate_policies(trace, &replay, &settings, models, progress)
    })?;
    write_validation(&summary, &logs, key, &args.out, args.earlier.overwrite)
}
