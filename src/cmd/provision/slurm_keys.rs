//! Converts the configuration of a Slurm cluster and of simulated windows into the units of the
//! simulation.

use anyhow::{Context as _, Result};

use poolcast_base::error::hinted;
use poolcast_provision::config::{NodeCount, ProvisionConfig};
use poolcast_provision::replay::{DatedNodes, SlurmReplay};
use poolcast_provision::trace::TraceZone;
use poolcast_provision::window::WindowPlan;

/// Parses `text`, the value of the option or key `name`, as epoch seconds.
pub(super) fn parse_key_time(name: &str, text: &str, zone: &TraceZone) -> Result<i64> {
    zone.moment_s(text).with_context(|| {
        hinted(
            format!("`{name} {text}` is not a date"),
            "write `2022-11-10`, or `2022-11-10T12:00`",
        )
    })
}

/// The settings of the simulated Slurm, with times in seconds.
pub(super) fn slurm_replay(provision: &ProvisionConfig, zone: &TraceZone) -> Result<SlurmReplay> {
    let mut nodes = Vec::new();
    match &provision.nodes {
        None => {}
        Some(NodeCount::Number(number)) => nodes.push(DatedNodes {
            from_s: 0,
            nodes: *number,
        }),
        Some(NodeCount::Dated(steps)) => {
            for (date, number) in steps {
                let from_s = zone.moment_s(date);
                let from_s = from_s.with_context(|| format!("`{date}` is not a date"))?;
                nodes.push(DatedNodes {
                    from_s,
                    nodes: *number,
                });
            }
            nodes.sort_by_key(|step| step.from_s);
        }
    }
    Ok(SlurmReplay {
        nodes,
        max_jobs_per_user: provision.max_jobs_per_user,
        bf_interval_s: provision.bf_interval.into(),
        bf_resolution_s: provision.bf_resolution.into(),
        bf_window_s: i64::from(provision.bf_window) * 60,
        bf_max_job_test: provision.bf_max_job_test,
        turnaround_s: provision.turnaround.into(),
        priority_weight_age: provision.priority_weight_age.into(),
        priority_weight_job_size: provision.priority_weight_job_size.into(),
        priority_max_age_s: i64::from(provision.priority_max_age) * 86_400,
    })
}

/// The plan of the windows, with times in seconds.
pub(super) fn window_plan(provision: &ProvisionConfig, zone: &TraceZone) -> Result<WindowPlan> {
    let moment_s = |name: &str, date: &Option<String>| {
        let date = date.as_deref();
        date.map(|date| parse_key_time(name, date, zone))
            .transpose()
    };
    let length = provision.job_length.unwrap_or(provision.job_limit);
    Ok(WindowPlan {
        from_s: moment_s("--start-time", &provision.start_time)?,
        until_s: moment_s("--end-time", &provision.end_time)?,
        interval_h: provision.interval.into(),
        cold_start: provision.cold_start,
        warmup_s: i64::from(provision.warmup_len) * 86_400,
        workload_s: i64::from(provision.workload_len) * 86_400,
        nodes: provision.job_nodes,
        limit_s: i64::from(provision.job_limit) * 60,
        length_s: i64::from(length) * 60,
        step_s: i64::from(provision.decision_interval) * 60,
        probes: provision.num_probe as usize,
        history_runs: provision.run_history,
        cost_ratios: provision.cost_ratio.list(),
    })
}
