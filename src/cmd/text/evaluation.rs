//! Renders the evaluation of a model for people.

use super::tensors::success_cells;
use poolcast_base::output;
use poolcast_base::stats::Scores;
use poolcast_holds::training::{ModelEvaluation, ScoreInterval, find_score};

/// Describes the samples, compares the scores with baselines, and shows the calibration.
pub(in crate::cmd) fn summary(evaluation: &ModelEvaluation) -> String {
    let rate = |successes: usize, samples: usize| 100.0 * successes as f64 / samples.max(1) as f64;
    let mut text = format!(
        "{} of {} in the {} split (by {}), {:.1} % success; trained on {} with {:.1} %\n",
        output::counted(evaluation.samples, "sample"),
        output::counted(evaluation.clusters, "cluster"),
        evaluation.side.name(),
        evaluation.split,
        rate(evaluation.successes, evaluation.samples),
        output::with_commas(evaluation.train_samples as u64),
        rate(evaluation.train_successes, evaluation.train_samples),
    );

    if let Some(words) = evaluation.source.words() {
        text.push_str(&format!("{words}\n"));
    }

    let mut left_out = Vec::new();
    for (reason, of_reason) in &evaluation.left_out {
        let count = output::with_commas(of_reason.cycles as u64);
        let share = success_cells(of_reason).join(" ");
        left_out.push(if share.is_empty() {
            format!("{count} {}", reason.name())
        } else {
            format!("{count} {} ({share})", reason.name())
        });
    }
    text.push_str(&format!(
        "not used, of {}: {}\n",
        output::counted(evaluation.cycles_total, "hold cycle"),
        if left_out.is_empty() {
            "none".to_owned()
        } else {
            left_out.join(", ")
        }
    ));

    text.push_str(&score_table(evaluation));
    text.push_str(&probed_text(evaluation));
    text.push_str(&calibration_text(evaluation));
    text.push_str(&format!(
        "[95 % intervals: {} of clusters]\n",
        output::counted(evaluation.resamples, "bootstrap resample")
    ));
    text
}

/// A table with one line per score and one column per method.
fn score_table(evaluation: &ModelEvaluation) -> String {
    let mut head = vec![String::new()];
    head.extend(evaluation.methods.iter().map(|method| method.name.clone()));

    let mut rows = vec![head];
    for (index, name) in Scores::NAMES.iter().enumerate() {
        let mut row = vec![Scores::title(name)];
        for method in &evaluation.methods {
            row.push(score_cell(&method.scores[index]));
        }
        rows.push(row);
    }
    output::aligned_table(&rows)
}

/// The scores after probes, in one line.
fn probed_text(evaluation: &ModelEvaluation) -> String {
    let Some(probed) = &evaluation.after_probes else {
        return String::new();
    };
    let cell = |name| find_score(&probed.scores, name).map_or("-".to_owned(), score_cell);
    format!(
        "once one job of each cause was tried ({} of {}): ROC-AUC {}; Brier score {}\n",
        output::with_commas(probed.samples as u64),
        output::counted(evaluation.samples, "sample"),
        cell("roc_auc"),
        cell("brier")
    )
}

/// The effect of the temperature on the scores, in one line.
fn calibration_text(evaluation: &ModelEvaluation) -> String {
    let before = &evaluation.uncalibrated;
    format!(
        "calibrated on the validation samples, temperature {:.3}: Brier score {}; ECE {}; success is predicted from {:.3}\n",
        evaluation.temperature,
        change_text(before.brier, model_score(evaluation, "brier")),
        change_text(before.ece, model_score(evaluation, "ece")),
        evaluation.threshold
    )
}

/// A score of the model, which is the first of the methods.
fn model_score(evaluation: &ModelEvaluation, name: &str) -> Option<f64> {
    let model = evaluation.methods.first()?;
    find_score(&model.scores, name)?.value
}

fn change_text(before: Option<f64>, after: Option<f64>) -> String {
    let digits = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    format!("{} before, {} after", digits(before), digits(after))
}

fn score_cell(score: &ScoreInterval) -> String {
    match (score.value, score.interval) {
        (Some(value), Some((low, high))) => format!("{value:.3} [{low:.3}, {high:.3}]"),
        (Some(value), None) => format!("{value:.3}"),
        (None, _) => "-".to_owned(),
    }
}
