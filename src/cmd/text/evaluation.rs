//! What an evaluation says to people.

use crate::output;
use crate::training::{ModelEvaluation, ScoreInterval, Scores};

/// The scores beside those of baselines.
pub(in crate::cmd) fn summary(evaluation: &ModelEvaluation) -> String {
    let rate = |successes: usize, samples: usize| 100.0 * successes as f64 / samples.max(1) as f64;
    let mut text = format!(
        "{} of {} on the {} side (split by {}), {:.1} % success; trained on {} with {:.1} %\n",
        output::counted(evaluation.samples, "sample"),
        output::counted(evaluation.clusters, "cluster"),
        evaluation.side.name(),
        evaluation.split,
        rate(evaluation.successes, evaluation.samples),
        output::with_commas(evaluation.train_samples as u64),
        rate(evaluation.train_successes, evaluation.train_samples),
    );
    let left_out: Vec<String> = evaluation
        .left_out
        .iter()
        .map(|(reason, count)| format!("{} {}", output::with_commas(*count as u64), reason.name()))
        .collect();
    text.push_str(&format!(
        "of {} left out: {}\n",
        output::counted(evaluation.cycles_total, "hold cycle"),
        if left_out.is_empty() {
            "none".to_owned()
        } else {
            left_out.join(", ")
        }
    ));
    let head = std::iter::once(String::new())
        .chain(evaluation.methods.iter().map(|method| method.name.clone()));
    let mut rows = vec![head.collect::<Vec<String>>()];
    for (index, name) in Scores::NAMES.iter().enumerate() {
        let cells = evaluation
            .methods
            .iter()
            .map(|method| score_cell(&method.scores[index]));
        rows.push(std::iter::once(Scores::title(name)).chain(cells).collect());
    }
    text.push_str(&output::aligned_table(&rows));
    text.push_str(&calibration_text(evaluation));
    text.push_str(&format!(
        "[95 % intervals: {} of clusters]\n",
        output::counted(evaluation.resamples, "bootstrap resample")
    ));
    text
}

/// What the temperature changed, on one line.
fn calibration_text(evaluation: &ModelEvaluation) -> String {
    let calibrated = |name: &str| {
        let scores = evaluation
            .methods
            .first()
            .map_or(&[][..], |model| &model.scores);
        scores
            .iter()
            .find(|score| score.name == name)
            .and_then(|score| score.value)
    };
    let change = |before: Option<f64>, after: Option<f64>| {
        let digits =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
        format!("{} before, {} after", digits(before), digits(after))
    };
    format!(
        "calibrated on the validation samples, temperature {:.3}: Brier score {}; ECE {}; success is predicted from {:.3} on\n",
        evaluation.temperature,
        change(evaluation.uncalibrated.brier, calibrated("brier")),
        change(evaluation.uncalibrated.ece, calibrated("ece")),
        evaluation.threshold
    )
}

fn score_cell(score: &ScoreInterval) -> String {
    match (score.value, score.interval) {
        (Some(value), Some((low, high))) => format!("{value:.3} [{low:.3}, {high:.3}]"),
        (Some(value), None) => format!("{value:.3}"),
        (None, _) => "-".to_owned(),
    }
}
