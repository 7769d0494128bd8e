//! Loads the configuration with the flags that several steps of `poolcast provision` share.

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::cmd::flags::{flag, flags};
use poolcast_base::error::hinted;
use poolcast_cli::{ClusterArgs, WindowArgs};
use poolcast_provision::config::SchedulerKind;
use poolcast_sweep::config::Config;

/// The configuration of simulated windows, with the overrides of the flags and of `more`.
pub(super) fn windows_config<const N: usize>(
    args: &WindowArgs,
    more: [(&'static str, Option<Value>); N],
) -> Result<Config> {
    let mut given = flags([
        ("provision.nodes", flag(&args.nodes)),
        ("provision.max_jobs_per_user", flag(&args.max_jobs_per_user)),
        ("provision.start_time", flag(&args.start_time)),
        ("provision.end_time", flag(&args.end_time)),
        ("provision.interval", flag(&args.interval)),
        ("provision.job_nodes", flag(&args.job_nodes)),
        ("provision.job_limit", flag(&args.job_limit)),
        (
            "provision.cold_start",
            flag(&args.cold_start.then_some(true)),
        ),
    ]);
    given.extend(flags(more));
    let config = Config::load(args.config.as_deref(), &given)?;
    reject_published_scheduler(&config)?;
    Ok(config)
}

/// The configuration of forecasts on a live Slurm, with the overrides of the flags.
pub(super) fn cluster_config(args: &ClusterArgs, cost_ratio: Option<f64>) -> Result<Config> {
    let given = flags([
        ("provision.nodes", flag(&args.nodes)),
        ("provision.max_jobs_per_user", flag(&args.max_jobs_per_user)),
        ("provision.cost_ratio", flag(&cost_ratio)),
        ("provision.draws", flag(&args.draws)),
    ]);
    let config = Config::load(args.config.as_deref(), &given)?;
    reject_published_scheduler(&config)?;
    Ok(config)
}

/// Rejects the published scheduler, which only `replay` simulates.
fn reject_published_scheduler(config: &Config) -> Result<()> {
    ensure!(
        config.provision.scheduler == SchedulerKind::Slurm,
        hinted(
            "`provision.scheduler` is `published`, which only `provision replay` simulates",
            "leave out `provision.scheduler`, or set it to `slurm`"
        )
    );
    Ok(())
}
