//! Renders the summary of tensors, and the audit of their splits, for people.

use poolcast_base::output;
use poolcast_tensors::{
    self as tensors, BaseRateShift, ExcludedCycles, LeakageAudit, Split, TensorSummary,
};

/// The counts of samples and dropped cycles, with warnings on shifts of the success rate.
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
    for split in Split::ALL {
        let of_split = &summary.splits[&split];
        let share = 100.0 * of_split.success_share();
        rows.push(vec![
            format!("  {}", split.name()),
            output::with_commas(of_split.samples as u64),
            format!("{share:.1} % success"),
        ]);
    }
    for (reason, left_out) in &summary.left_out {
        let mut row = vec![
            format!("  not used: {}", reason.name()),
            output::with_commas(left_out.cycles as u64),
        ];
        row.extend(success_cells(left_out));
        rows.push(row);
    }
    text.push_str(&output::aligned_table(&rows));
    for shift in tensors::base_rate_shifts(summary) {
        text.push_str(&shift_line(&shift));
    }
    text
}

/// The share of successes among dropped cycles, and the number of labelled cycles if not all have
/// an outcome. Empty if no cycle has an outcome.
pub(super) fn success_cells(left_out: &ExcludedCycles) -> Vec<String> {
    let ExcludedCycles {
        cycles,
        labelled,
        successes,
    } = *left_out;
    if labelled == 0 {
        return Vec::new();
    }
    let share = 100.0 * successes as f64 / labelled as f64;
    let mut cells = vec![format!("{share:.1} % success")];
    if labelled < cycles {
        cells.push(format!("among {}", output::with_commas(labelled as u64)));
    }
    cells
}

/// A warning that the success rate differs between two splits.
fn shift_line(shift: &BaseRateShift) -> String {
    let (low, high) = shift.difference;
    let (change, least, most) = if low > 0.0 {
        ("higher", low, high)
    } else {
        ("lower", -high, -low)
    };
    format!(
        "  warning: success is {:.0} to {:.0} points {change} in the {} split than in the {} split \
         (95 % interval, by cluster): probabilities learned on one are biased on the other\n",
        100.0 * least,
        100.0 * most,
        shift.to.name(),
        shift.from.name()
    )
}

/// The audit: leaks between the splits, then success by hold code.
pub(in crate::cmd) fn audit(audit: &LeakageAudit) -> String {
    shared_table(audit) + &success_table(audit)
}

/// A table of the overlaps between each pair of splits.
fn shared_table(audit: &LeakageAudit) -> String {
    let head = [
        "leaks across the splits",
        "clusters",
        "seconds",
        "equal codes",
        "and label",
        "late windows",
        "late outcomes",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for shared in &audit.shared {
        rows.push(vec![
            format!("  {} and {}", shared.from.name(), shared.to.name()),
            output::with_commas(shared.clusters as u64),
            output::with_commas(shared.asked_seconds as u64),
            output::with_commas(shared.duplicates as u64),
            output::with_commas(shared.duplicates_of_one_label as u64),
            output::with_commas(shared.late_windows as u64),
            output::with_commas(shared.late_outcomes as u64),
        ]);
    }
    output::aligned_table(&rows)
}

/// A table of the successful holds of each code in each split.
fn success_table(audit: &LeakageAudit) -> String {
    let head = ["success by hold code", "train", "validate", "test"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for share in &audit.by_code {
        let mut row = vec![format!("  {}/{}", share.hold_code, share.hold_subcode)];
        for split in Split::ALL {
            let successes = output::with_commas(share.successes[&split] as u64);
            let samples = output::with_commas(share.samples[&split] as u64);
            row.push(format!("{successes} of {samples}"));
        }
        rows.push(row);
    }
    output::aligned_table(&rows)
}
