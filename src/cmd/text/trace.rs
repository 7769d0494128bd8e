//! Renders the summary and the statistics of a cluster's trace for people.

use poolcast_base::escape;
use poolcast_base::output;
use poolcast_provision::trace::{
    JobFate, MonthlyWaits, NamedQuantiles, TraceSource, TraceStatistics, TraceSummary,
};

/// The counts of the sources and their jobs.
pub(in crate::cmd) fn summary(summary: &TraceSummary) -> String {
    let mut text = String::new();
    for source in &summary.sources {
        text.push_str(&source_lines(source));
    }

    text.push_str(&format!(
        "{} from {} to {}; the time zone is {}\n",
        output::counted(summary.jobs, "job"),
        output::utc_time(summary.begin_s * 1000),
        output::utc_time(summary.end_s * 1000),
        escape::value(&summary.zone),
    ));
    for fate in JobFate::ALL.iter().rev() {
        let jobs = summary.fates.get(fate).copied().unwrap_or(0);
        if jobs > 0 {
            let count = output::with_commas(jobs);
            text.push_str(&format!("  {count} {}\n", describe_fate(*fate)));
        }
    }
    if summary.without_limit > 0 {
        let jobs = output::with_commas(summary.without_limit);
        text.push_str(&format!("  {jobs} without a time limit of their own\n"));
    }
    if summary.repeated_rows > 0 {
        let rows = output::counted(summary.repeated_rows as usize, "row");
        text.push_str(&format!(
            "{rows} ignored, because another row describes the same run\n"
        ));
    }
    text
}

fn describe_fate(fate: JobFate) -> &'static str {
    match fate {
        JobFate::Pending => "still waiting",
        JobFate::Running => "still running",
        JobFate::Cancelled => "left the queue before they ran",
        JobFate::Ended => "ran",
    }
}

fn source_lines(source: &TraceSource) -> String {
    let mut text = format!(
        "{}: {} ({})\n",
        escape::value(&source.name),
        output::counted(source.rows as usize, "row"),
        source.form.describe()
    );
    for rejected in &source.rejected {
        text.push_str(&format!(
            "  {} rejected, {}: the first is line {}\n",
            output::counted(rejected.rows as usize, "row"),
            rejected.fault,
            rejected.first_line
        ));
    }
    if source.step_rows > 0 {
        let steps = output::counted(source.step_rows as usize, "row");
        text.push_str(&format!("  {steps} of job steps ignored\n"));
    }
    if source.limits_from_runs > 0 {
        let jobs = output::counted(source.limits_from_runs as usize, "job");
        text.push_str(&format!(
            "  {jobs} without a requested time: the run time is used instead\n"
        ));
    }
    if let Some(lines) = source.announced_lines {
        let lines = output::with_commas(lines);
        text.push_str(&format!(
            "  its header announces {lines} lines, but it has fewer\n"
        ));
    }
    text
}

/// The load, run times and waits of the cluster, according to the trace.
pub(in crate::cmd) fn statistics(statistics: &TraceStatistics) -> String {
    let arrivals = &statistics.arrivals_per_day;
    let cancelled = &statistics.cancelled;
    let busiest = &statistics.busiest_users;
    let mut text = format!(
        "\n{}, of which {} ran for {} node hours; {:.0} a day in the median, {:.0} at most\n",
        output::counted(statistics.jobs, "job"),
        output::with_commas(statistics.ran as u64),
        output::with_commas(statistics.node_hours.round() as u64),
        arrivals.median,
        arrivals.most,
    );
    text.push_str(&format!(
        "cancelled while they waited: {}, of which {} after more than a minute (p90 {:.1} h, at most {:.0} h)\n",
        output::counted(cancelled.jobs, "job"),
        output::with_commas(cancelled.waited as u64),
        cancelled.wait_h.p90,
        cancelled.wait_h.max,
    ));
    if statistics.users > 0 {
        text.push_str(&format!(
            "of {} users, none ran more than {} at once; {} ran that many\n",
            output::with_commas(statistics.users as u64),
            output::counted(busiest.jobs as usize, "job"),
            output::with_commas(busiest.users as u64),
        ));
    }
    text.push_str(&format!(
        "{} ran for less than a minute, {:.1} % to their limit, {} for more than five minutes longer\n\n",
        output::with_commas(statistics.shorter_than_a_minute as u64),
        100.0 * statistics.at_limit,
        output::with_commas(statistics.over_limit as u64),
    ));
    text + &quantile_table(statistics)
        + "\n"
        + &share_table(statistics)
        + "\n"
        + &months(statistics)
}

fn quantile_table(statistics: &TraceStatistics) -> String {
    let head = ["", "p10", "p25", "p50", "p75", "p90", "p99", "max", "mean"];
    let row = |name: &str, of: NamedQuantiles| {
        let values = [
            of.p10, of.p25, of.p50, of.p75, of.p90, of.p99, of.max, of.mean,
        ];
        let mut cells = vec![name.to_owned()];
        cells.extend(values.map(|value| format!("{value:.3}")));
        cells
    };
    output::aligned_table(&[
        head.map(str::to_owned).to_vec(),
        row("run time, hours", statistics.run_h),
        row("run time / limit", statistics.used_share),
    ])
}

fn share_table(statistics: &TraceStatistics) -> String {
    let mut rows = vec![["nodes", "jobs", "node hours"].map(str::to_owned).to_vec()];
    for share in &statistics.nodes {
        let nodes = share.nodes.map(|nodes| nodes.to_string());
        rows.push(vec![
            nodes.unwrap_or_else(|| "others".to_owned()),
            format!("{:.1} %", 100.0 * share.jobs),
            format!("{:.1} %", 100.0 * share.node_hours),
        ]);
    }
    let mut text = output::aligned_table(&rows) + "\n";

    let mut rows = vec![["time limit", "jobs"].map(str::to_owned).to_vec()];
    for limit in &statistics.limits {
        let share = format!("{:.0} %", 100.0 * limit.jobs);
        rows.push(vec![format!("up to {} h", limit.up_to_h), share]);
    }
    text.push_str(&output::aligned_table(&rows));
    text
}

fn months(statistics: &TraceStatistics) -> String {
    let long = format!("1 node, {} h", statistics.long_limit_h);
    let head = [
        "wait, hours",
        "jobs",
        "p50",
        "p90",
        "p99",
        "mean",
        &long,
        "p50",
        "p90",
        "mean",
        "busy nodes",
        "most",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for month in &statistics.months {
        rows.push(month_row(month));
    }
    output::aligned_table(&rows)
}

fn month_row(month: &MonthlyWaits) -> Vec<String> {
    let hours = |hours: f64| format!("{hours:.2}");
    let (all, long) = (month.wait_h, month.long_wait_h);
    vec![
        month.month.clone(),
        output::with_commas(month.jobs as u64),
        hours(all.p50),
        hours(all.p90),
        hours(all.p99),
        hours(all.mean),
        output::with_commas(month.long_jobs as u64),
        hours(long.p50),
        hours(long.p90),
        hours(long.mean),
        format!("{:.0}", month.mean_busy_nodes),
        month.peak_busy_nodes.to_string(),
    ]
}
