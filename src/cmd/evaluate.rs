//! `poolcast evaluate`: a model and a split → scores beside baselines.

use std::path::Path;

use anyhow::{Context as _, Result};

use crate::cli::EvaluateArgs;
use crate::config::Config;
use crate::error::{EXIT_DONE, hinted};
use crate::tensors::{Dataset, SplitSide};
use crate::training::{Evaluation, Run, Score, Scores, evaluate};
use crate::{condor, manifest, output, simulate, sweep};

/// Scores the model, keeps the scores beside it, prints them.
pub fn run(args: &EvaluateArgs) -> Result<u8> {
    let dir = sweep::resolve_run(&condor::results(&args.run)?)?;
    let dataset = Dataset::open(&args.tensors)?;
    let resamples = args
        .resamples
        .map_or_else(|| Ok(Config::read(&dir)?.evaluation.resamples), anyhow::Ok)?;
    let best = args
        .truth
        .as_deref()
        .map(|truth| best_possible(truth, &dataset, args.side))
        .transpose()?;
    let run = Run::open(&dir)?.on(&args.device.open()?);
    let evaluation = score(&run, &dir, &dataset, args.side, resamples, best)?;
    if args.json {
        output::print_json(&evaluation)?
    } else {
        output::print(&text(&evaluation))?
    }
    Ok(EXIT_DONE)
}

/// The probabilities that a simulation planted for the holds of one side.
fn best_possible(truth: &Path, dataset: &Dataset, side: SplitSide) -> Result<Vec<f64>> {
    let known = simulate::read_truth(truth)?;
    let cluster: Vec<i32> = dataset.column(side, "cluster")?;
    let proc: Vec<i32> = dataset.column(side, "proc")?;
    let earlier_holds: Vec<u32> = dataset.column(side, "earlier_holds")?;
    let holds = cluster.into_iter().zip(proc).zip(earlier_holds);
    let planted =
        holds.map(|((cluster, proc), earlier)| simulate::p_hold(&known, (cluster, proc), earlier));
    planted.collect::<Option<_>>().with_context(|| {
        let message = format!(
            "`{}` does not know all holds of these tensors",
            truth.display()
        );
        hinted(
            message,
            "name the truth that `poolcast simulate` wrote beside the log",
        )
    })
}

/// Scores `run`, which is in `dir`, on one side and writes the scores beside it.
pub(super) fn score(
    run: &Run,
    dir: &Path,
    dataset: &Dataset,
    side: SplitSide,
    resamples: usize,
    best: Option<Vec<f64>>,
) -> Result<Evaluation> {
    let evaluation = evaluate(run, dataset, side, resamples, best)?;
    if run.summary.tensors_key != dataset.key {
        output::note(
            "note: the model was trained on other tensors; holds that it learned from may be among these",
        );
    }
    manifest::write_json(&Evaluation::path(dir, side), &evaluation)?;
    Ok(evaluation)
}

/// The table for people.
pub(super) fn text(evaluation: &Evaluation) -> String {
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
            .map(|method| cell(&method.scores[index]));
        rows.push(std::iter::once(Scores::title(name)).chain(cells).collect());
    }
    text.push_str(&output::aligned_table(&rows));
    text.push_str(&calibration(evaluation));
    text.push_str(&format!(
        "[95 % intervals: {} of clusters]\n",
        output::counted(evaluation.resamples, "bootstrap resample")
    ));
    text
}

/// What the temperature changed, on one line.
fn calibration(evaluation: &Evaluation) -> String {
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

fn cell(score: &Score) -> String {
    match (score.value, score.interval) {
        (Some(value), Some((low, high))) => format!("{value:.3} [{low:.3}, {high:.3}]"),
        (Some(value), None) => format!("{value:.3}"),
        (None, _) => "-".to_owned(),
    }
}
