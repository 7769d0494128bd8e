//! What tensors, and the audit of their sides, say to people.

use crate::output;
use crate::tensors::{LeakageAudit, SplitSide, TensorSummary};

/// The counts.
pub(in crate::cmd) fn summary(summary: &TensorSummary) -> String {
    let settings = &summary.settings;
    let mut text = format!(
        "{}; samples of j = {}, m = {} of {} s, split by {}\n",
        output::counted(summary.cycles_total, "hold cycle"),
        output::counted(settings.j, "job"),
        output::counted(settings.m, "frame"),
        settings.timeframe_len_s,
        settings.split,
    );

    let mut rows = Vec::new();
    for side in SplitSide::ALL {
        let side_summary = &summary.splits[&side];
        let share = 100.0 * side_summary.successes as f64 / side_summary.samples.max(1) as f64;
        rows.push(vec![
            format!("  {}", side.name()),
            output::with_commas(side_summary.samples as u64),
            format!("{share:.1} % success"),
        ]);
    }
    for (reason, count) in &summary.left_out {
        rows.push(vec![
            format!("  left out: {}", reason.name()),
            output::with_commas(*count as u64),
        ]);
    }
    text.push_str(&output::aligned_table(&rows));
    text
}

/// The audit.
pub(in crate::cmd) fn audit(audit: &LeakageAudit) -> String {
    format!(
        "{}  windows that end after the first test hold: {}\n  outcomes that were not known by then: {}\n{}",
        shared_table(audit),
        output::with_commas(audit.windows_after_test as u64),
        output::with_commas(audit.outcomes_after_test as u64),
        success_table(audit)
    )
}

/// What two sides share.
fn shared_table(audit: &LeakageAudit) -> String {
    let head = [
        "leaks between the sides",
        "clusters",
        "hold seconds",
        "equal codes",
        "and label",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for shared in &audit.shared {
        rows.push(vec![
            format!("  {} and {}", shared.from.name(), shared.to.name()),
            output::with_commas(shared.clusters as u64),
            output::with_commas(shared.hold_seconds as u64),
            output::with_commas(shared.duplicates as u64),
            output::with_commas(shared.duplicates_of_one_label as u64),
        ]);
    }
    output::aligned_table(&rows)
}

/// How many holds of each code end well on each side.
fn success_table(audit: &LeakageAudit) -> String {
    let head = ["success by hold code", "train", "validate", "test"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for share in &audit.by_code {
        let mut row = vec![format!("  {}/{}", share.hold_code, share.hold_subcode)];
        for side in SplitSide::ALL {
            let successes = output::with_commas(share.successes[&side] as u64);
            let samples = output::with_commas(share.samples[&side] as u64);
            row.push(format!("{successes} of {samples}"));
        }
        rows.push(row);
    }
    output::aligned_table(&rows)
}
