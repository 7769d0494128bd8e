//! Renders the summary of wait samples for people.

use super::cluster_warnings::{cluster_warnings, dropped_windows_note};
use super::submission::wall_time;
use poolcast_base::output;
use poolcast_provision::samples::{ProbeWaits, SamplesDescription, SamplesSummary};
use poolcast_provision::trace::TraceZone;

/// The whole summary: the windows, then the waits.
pub(in crate::cmd) fn summary(summary: &SamplesSummary, zone: &TraceZone) -> String {
    let mut text = windows(&summary.description, zone);
    let head = ["predecessor ends in, hours", "wait, hours", "p50", "p90"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(summary.waits.iter().map(row));
    text.push('\n');
    text.push_str(&output::aligned_table(&rows));
    text
}

fn windows(samples: &SamplesDescription, zone: &TraceZone) -> String {
    let start = if samples.cold_start {
        "each with an empty cluster"
    } else {
        "in one continuous simulation"
    };
    let mut text = format!(
        "{} from {} to {}, one every {} hours, {start}; the chained jobs have {} and run for {} of {} hours\n",
        output::counted(samples.windows, "window"),
        wall_time(samples.first_s, zone),
        wall_time(samples.last_s, zone),
        samples.interval_h,
        output::counted(samples.job_nodes as usize, "node"),
        samples.length_s as f64 / 3600.0,
        samples.limit_s as f64 / 3600.0,
    );
    text.push_str(&format!(
        "{} of {}; their outcomes are known by {}\n",
        output::counted(samples.rows, "sample"),
        output::counted(samples.feature_names.len(), "feature"),
        wall_time(samples.known_until_s, zone),
    ));
    text.push_str(&dropped_windows_note(samples.never_started));
    text.push_str(&cluster_warnings(samples.excess_nodes, samples.too_large));
    text
}

fn row(probe: &ProbeWaits) -> Vec<String> {
    [
        probe.left_mean_h,
        probe.wait_mean_h,
        probe.wait_p50_h,
        probe.wait_p90_h,
    ]
    .map(|hours| format!("{hours:.2}"))
    .into()
}
