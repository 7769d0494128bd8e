//! Renders the validation of submit policies for people.

use super::cluster_warnings::dropped_windows_note;
use super::submission::wall_time;
use poolcast_base::output;
use poolcast_provision::gap_scores::GapScores;
use poolcast_provision::trace::TraceZone;
use poolcast_provision::validation::{
    DrawnInterval, ForecastScores, LearnedScores, PolicyScores, RealWaits, ValidationSummary,
};

/// The whole validation: windows, policies, gaps by load and month, and real waits.
pub(in crate::cmd) fn summary(summary: &ValidationSummary, zone: &TraceZone) -> String {
    let mut text = windows(summary, zone);
    text.push_str(&policies(&summary.policies));
    text.push_str(&learned(&summary.learned));
    text.push_str(&parts(&summary.policies, "gap, by load", |scores| {
        &scores.loads
    }));
    let months = summary
        .policies
        .first()
        .map_or(0, |scores| scores.months.len());
    if months > 1 {
        text.push_str(&parts(&summary.policies, "gap, by month", |scores| {
            &scores.months
        }));
    }
    for waits in &summary.real_waits {
        text.push_str(&real_waits(waits));
    }
    text
}

fn windows(summary: &ValidationSummary, zone: &TraceZone) -> String {
    let windows = &summary.windows;
    let mut text = format!(
        "{} from {} to {}, one every {} hours; the chained jobs have {} and run for {} of {} hours\n",
        output::counted(windows.count, "window"),
        wall_time(windows.first_s, zone),
        wall_time(windows.last_s, zone),
        windows.interval_h,
        output::counted(summary.job_nodes as usize, "node"),
        summary.job_length_h,
        summary.job_limit_h,
    );
    if windows.cold_start {
        text.push_str("each window begins with an empty cluster\n");
    }
    text.push_str(&dropped_windows_note(windows.never_started));
    text
}

fn policies(policies: &[PolicyScores]) -> String {
    let head = [
        "hours",
        "interruption",
        "overlap",
        "gap",
        "none",
        "gap saved",
        "95 %",
        "interruption saved",
        "95 %",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for scores in policies {
        let mut row = vec![
            scores.policy.clone(),
            format!("{:.2}", scores.all.interruption_h),
            format!("{:.2}", scores.all.overlap_h),
            format!("{:.2}", scores.all.gap_h),
            percent(scores.all.uninterrupted),
        ];
        let is_reactive = std::ptr::eq(scores, &policies[0]);
        if !is_reactive {
            row.extend(interval(scores.gap_saved_h, |hours| format!("{hours:.2}")));
            row.extend(interval(scores.interruption_saved, percent));
        }
        rows.push(row);
    }
    format!("\n{}", output::aligned_table(&rows))
}

/// A line for each learned policy that does not beat its base policy.
fn learned(learned: &[LearnedScores]) -> String {
    let mut text = String::new();
    for scores in learned {
        if scores.cost_h >= scores.base_cost_h {
            text.push_str(&format!(
                "{} does not beat {}: with {} hours of overlap for one of interruption it costs {:.2} hours per window, the base {:.2}\n",
                scores.policy, scores.base, scores.cost_ratio, scores.cost_h, scores.base_cost_h,
            ));
        }
    }
    text
}

pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A value and its interval, as two cells.
fn interval(drawn: Option<DrawnInterval>, show: impl Fn(f64) -> String) -> [String; 2] {
    match drawn {
        Some(drawn) => [
            show(drawn.value),
            format!("{} to {}", show(drawn.low), show(drawn.high)),
        ],
        None => ["-".to_owned(), "-".to_owned()],
    }
}

/// A table of the gap of each policy, by groups of windows.
fn parts(
    policies: &[PolicyScores],
    name: &str,
    of: impl Fn(&PolicyScores) -> &Vec<GapScores>,
) -> String {
    let mut head = vec![name.to_owned()];
    let mut counts = vec!["windows".to_owned()];
    for part in policies.first().map_or(&[][..], |scores| of(scores)) {
        head.push(part.name.clone());
        counts.push(output::with_commas(part.windows as u64));
    }
    let mut rows = vec![head, counts];
    for scores in policies {
        let mut row = vec![scores.policy.clone()];
        for part in of(scores) {
            row.push(if part.windows == 0 {
                "-".to_owned()
            } else {
                format!("{:.2}", part.gap_h)
            });
        }
        rows.push(row);
    }
    format!("\n{}", output::aligned_table(&rows))
}

fn real_waits(waits: &RealWaits) -> String {
    let Some(all) = waits.scores.first().filter(|all| all.jobs > 0) else {
        return String::new();
    };
    let limit = match waits.limit_h {
        Some(limit_h) => format!("a limit of {limit_h} hours"),
        None => "any limit".to_owned(),
    };
    let mut text = format!(
        "\nwaits of {} in the trace, with {} and {limit}: {:.2} hours on average, {:.2} in the median\n",
        output::counted(all.jobs, "job"),
        output::counted(waits.nodes as usize, "node"),
        all.wait_mean_h,
        all.wait_p50_h,
    );
    let head = [
        "hours",
        "error",
        "bias",
        "in 10 min",
        "pinball .75",
        ".9",
        "within .75",
        ".9",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(all.forecasts.iter().map(forecast_row));
    text.push_str(&output::aligned_table(&rows));
    text
}

fn forecast_row(scores: &ForecastScores) -> Vec<String> {
    let mut row = vec![
        scores.name.clone(),
        format!("{:.2}", scores.error_h),
        format!("{:+.2}", scores.bias_h),
        percent(scores.within_10_min),
    ];
    let upper = scores.quantiles.iter().skip(1);
    row.extend(
        upper
            .clone()
            .map(|scores| format!("{:.2}", scores.pinball_h)),
    );
    row.extend(upper.map(|scores| percent(scores.coverage)));
    row
}
