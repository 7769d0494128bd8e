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
    let number = |n: usize| output::with_commas(n as u64);
    let head = [
        "leaks between the sides",
        "clusters",
        "hold seconds",
        "equal codes",
        "and label",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for shared in &audit.shared {
        let name = format!("  {} and {}", shared.from.name(), shared.to.name());
        let counts = [
            shared.clusters,
            shared.hold_seconds,
            shared.duplicates,
            shared.duplicates_of_one_label,
        ];
        rows.push(std::iter::once(name).chain(counts.map(number)).collect());
    }
    let mut text = output::aligned_table(&rows);
    text.push_str(&format!(
        "  windows that end after the first test hold: {}\n  outcomes that were not known by then: {}\n",
        number(audit.windows_after_test),
        number(audit.outcomes_after_test),
    ));
    let mut rows = vec![
        ["success by hold code", "train", "validate", "test"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for share in &audit.by_code {
        let cell = |side: SplitSide| {
            format!(
                "{} of {}",
                number(share.successes[&side]),
                number(share.samples[&side])
            )
        };
        let name = format!("  {}/{}", share.hold_code, share.hold_subcode);
        rows.push(
            std::iter::once(name)
                .chain(SplitSide::ALL.map(cell))
                .collect(),
        );
    }
    text + &output::aligned_table(&rows)
}
