//! Renders the training of a wait model for people.

use super::validation::percent;
use poolcast_base::output;
use poolcast_provision::wait_model::{
    ComparedCost, HeldBackPolicy, HeldBackScores, LearningEpoch, WaitModelSummary,
};

/// One epoch on one line, for output without a progress bar.
pub(in crate::cmd) fn epoch_line(epoch: &LearningEpoch) -> String {
    let best = if epoch.is_best {
        ", the best so far"
    } else {
        ""
    };
    format!(
        "epoch {}: loss {:.4}, held-back loss {:.4}{best}",
        epoch.epoch, epoch.train_loss, epoch.judged_loss
    )
}

/// The result of the training: the windows, the best epoch and the held-back scores.
pub(in crate::cmd) fn summary(summary: &WaitModelSummary) -> String {
    let mut text = format!(
        "{} learned from {}; held back: the last {}, with {} between them skipped\n",
        summary.description.kind,
        output::counted(summary.learned_windows, "window"),
        output::counted(summary.held_back_windows, "window"),
        summary.left_out_windows,
    );
    if let Some(parameters) = summary.parameters {
        text.push_str(&format!(
            "{} parameters",
            output::with_commas(parameters as u64)
        ));
        if let Some(best) = summary.epochs.iter().rev().find(|epoch| epoch.is_best) {
            let epochs = output::counted(summary.epochs.len(), "epoch");
            text.push_str(&format!("; best of {epochs}: number {}", best.epoch));
        }
        text.push('\n');
    }
    text.push_str(&held_back(&summary.held_back));
    for score in &summary.held_back.quantiles {
        if score.pinball_h >= score.constant_pinball_h {
            let (kind, ratio) = (summary.description.kind, score.cost_ratio);
            text.push_str(&format!(
                "{kind}-{ratio} predicts waits no better than a constant\n"
            ));
        }
    }
    text.push_str(&weak_policy_lines(&summary.held_back.policies));
    text
}

/// The scores of a model on the held-back windows.
pub(in crate::cmd) fn held_back(scores: &HeldBackScores) -> String {
    quantiles(scores) + &policies(&scores.policies)
}

fn quantiles(scores: &HeldBackScores) -> String {
    if scores.quantiles.is_empty() {
        return String::new();
    }
    let head = [
        "hours",
        "quantile",
        "pinball",
        "of a constant",
        "error",
        "within",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for score in &scores.quantiles {
        rows.push(vec![
            format!("cost ratio {}", score.cost_ratio),
            format!("{:.2}", score.quantile),
            format!("{:.2}", score.pinball_h),
            format!("{:.2}", score.constant_pinball_h),
            format!("{:.2}", score.error_h),
            percent(score.coverage),
        ]);
    }
    format!("\n{}", output::aligned_table(&rows))
}

fn policies(policies: &[HeldBackPolicy]) -> String {
    let head = [
        "hours",
        "interruption",
        "overlap",
        "gap",
        "none",
        "cost",
        "of its base",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for policy in policies {
        let gaps = &policy.gaps;
        let mut row = vec![
            gaps.name.clone(),
            format!("{:.2}", gaps.interruption_h),
            format!("{:.2}", gaps.overlap_h),
            format!("{:.2}", gaps.gap_h),
            percent(gaps.uninterrupted),
        ];
        if let Some(compared) = &policy.compared {
            row.push(format!("{:.2}", compared.cost_h));
            row.push(format!("{:.2}", compared.base_cost_h));
        }
        rows.push(row);
    }
    format!("\n{}", output::aligned_table(&rows))
}

/// A line for each policy that does not beat its base policy.
fn weak_policy_lines(policies: &[HeldBackPolicy]) -> String {
    let mut lines = String::new();
    for policy in policies {
        let Some(ComparedCost {
            base, beats_base, ..
        }) = &policy.compared
        else {
            continue;
        };
        if !beats_base {
            lines.push_str(&format!("{} does not beat {base}\n", policy.gaps.name));
        }
    }
    lines
}
