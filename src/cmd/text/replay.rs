//! Renders the replay of a trace for people.

use super::cluster_warnings::cluster_warnings;
use poolcast_base::output;
use poolcast_provision::replay::{ComparedJobs, ReplayComparison, ReplayedTrace};
use poolcast_provision::trace::JobTrace;

/// The settings of the simulation, and the counts of its jobs.
pub(in crate::cmd) fn settings(trace: &JobTrace, replayed: &ReplayedTrace) -> String {
    let mut steps = Vec::new();
    for step in &replayed.nodes {
        let wall_s = trace.zone.wall_s(step.from_s.max(replayed.begin_s));
        let from = jiff::Timestamp::from_second(wall_s).unwrap_or_default();
        steps.push(format!("{} from {}", step.nodes, from.strftime("%Y-%m-%d")));
    }
    let limit = match replayed.max_jobs_per_user {
        Some(most) => format!(
            "a user runs at most {}",
            output::counted(most as usize, "job")
        ),
        None => "users run any number of jobs".to_owned(),
    };

    let mut text = format!("nodes: {}; {limit}\n", steps.join(", "));
    text.push_str(&format!(
        "{} started, {} of them before a job ahead of it in the queue",
        output::counted(replayed.started(), "job"),
        output::with_commas(replayed.backfilled() as u64),
    ));
    if replayed.running_at_begin > 0 {
        let running = output::counted(replayed.running_at_begin, "job");
        text.push_str(&format!("; {running} ran at the beginning"));
    }
    text.push('\n');
    text.push_str(&cluster_warnings(replayed.excess_nodes, replayed.too_large));
    text
}

/// A table of the simulated waits beside the logged ones.
pub(in crate::cmd) fn comparison(comparison: &ReplayComparison) -> String {
    let head = [
        "waits, hours",
        "jobs",
        "simulated",
        "logged",
        "error p50",
        "p90",
        "mean",
        "correlation",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec(), row(&comparison.all)];
    rows.extend(comparison.months.iter().map(row));
    rows.extend(comparison.sizes.iter().map(row));
    format!("\n{}", output::aligned_table(&rows))
}

fn row(jobs: &ComparedJobs) -> Vec<String> {
    vec![
        jobs.name.clone(),
        output::with_commas(jobs.jobs as u64),
        format!("{:.2}", jobs.simulated_mean_h),
        format!("{:.2}", jobs.logged_mean_h),
        format!("{:.3}", jobs.error_p50_h),
        format!("{:.2}", jobs.error_p90_h),
        format!("{:.2}", jobs.error_mean_h),
        format!("{:.2}", jobs.correlation),
    ]
}
