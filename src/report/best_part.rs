//! The part on the best model: its scores beside the baselines, and estimates without selection
//! bias.

use std::collections::BTreeSet;

use super::document::{MissingInput, ReportBlock, ReportCell, ReportPart, ReportTable};
use super::inputs::{ReportInputs, ReportedKind};
use super::words;
use poolcast_base::output;
use poolcast_base::stats::Scores;
use poolcast_holds::training::{
    MethodScores, ModelEvaluation, ProbedScores, ScoreInterval, find_score,
};
use poolcast_sweep::config::TrialSource;
use poolcast_sweep::{BestModel, InputValue, ScoreEstimate, SplitChoice, pareto_front};

/// Makes the part.
pub(super) fn best_part(inputs: &ReportInputs) -> ReportPart {
    let mut blocks = Vec::new();
    blocks.extend(choice_sentence(inputs).map(ReportBlock::paragraph));
    blocks.extend(ranked_blocks(inputs));
    match &inputs.evaluation {
        Some(evaluation) => blocks.extend(evaluation_blocks(evaluation)),
        None if inputs.config.trial_source() != TrialSource::Logs => {}
        None => blocks.push(ReportBlock::Missing(no_scores(inputs))),
    }
    if let Some(best) = &inputs.best {
        blocks.extend(input_blocks(best, inputs));
    }
    if !inputs.choices.is_empty() {
        blocks.push(ReportBlock::Table(choice_table(inputs)));
    }
    blocks.extend(front_table(inputs).map(ReportBlock::Table));
    if blocks.is_empty() {
        blocks.push(ReportBlock::Missing(MissingInput {
            text: "No trial has a value yet.".to_owned(),
            command: Some(format!("poolcast sweep status {}", inputs.dir_argument())),
        }));
    }
    ReportPart {
        id: "best",
        title: if inputs.runs_program() {
            "The best trial"
        } else {
            "The best model"
        },
        blocks,
    }
}

/// Lists the Pareto front of each split; `None` for a sweep with one metric.
fn front_table(inputs: &ReportInputs) -> Option<ReportTable> {
    let metrics = &inputs.config.wandb.sweep.metric;
    let titles: Vec<String> = metrics.all().map(words::metric_title).collect();
    let mut columns = vec![("trial", 0), ("model", 0), ("split", 0)];
    columns.extend(titles.iter().map(|title| (title.as_str(), 4)));
    let mut table = ReportTable::new(
        "Pareto front: trials that no other trial dominates",
        &columns,
    );

    let splits: BTreeSet<&Option<String>> = inputs.trials.iter().map(|one| &one.split).collect();
    for split in splits {
        let of_split = inputs.trials.iter().filter(|one| one.split == *split);
        let values = of_split.map(|one| (one.trial, one.value, &one.more_values[..]));
        for one in pareto_front(metrics, values) {
            let trial = inputs
                .trials
                .iter()
                .find(|known| known.trial == one.trial)?;
            let split = split.as_deref().map_or(ReportCell::Empty, ReportCell::from);
            let mut row = vec![one.trial.into(), trial.model.as_str().into(), split];
            row.extend(one.values.into_iter().map(ReportCell::from));
            table.rows.push(row);
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// Says which trial was chosen by which metric.
fn choice_sentence(inputs: &ReportInputs) -> Option<String> {
    let best = inputs.best.as_ref()?;
    let trial = best.trials.iter().find(|trial| trial.trial == best.trial)?;
    let mut sentence = format!(
        "Trial {} ({}) is the best of {}, chosen by the {}: {:.3}.",
        best.trial,
        words::shown(&trial.model),
        output::counted(best.trials.len(), "trial"),
        inputs.value_title(),
        best.value
    );
    sentence.push_str(&judged_sentence(inputs));
    if let Some(ensemble) = &best.ensemble {
        sentence.push_str(&format!(
            " An ensemble of the best trials of {} kinds is used, which reaches {:.3}: {}. The best \
             trial alone is not shown to be better.",
            ensemble.trials.len(),
            ensemble.value,
            words::shown(&ensemble.words())
        ));
    }
    if inputs.evaluation.is_some() {
        sentence.push_str(" The holds in the table below were not used for this choice.");
    }
    if inputs.rehearsal.is_some() {
        sentence.push_str(" The answers about held jobs come from models of their own.");
    }
    Some(sentence)
}

/// Explains the values by which networks are compared; empty without networks.
fn judged_sentence(inputs: &ReportInputs) -> String {
    let best = inputs.ranked_trials().into_iter().next();
    let Some(best) = best.filter(|_| inputs.has_epochs()) else {
        return String::new();
    };
    let mut sentence = " Judged values are of the predictions after each time cut, from the epoch that the other cuts chose, so that the choice of the epoch does not flatter them.".to_owned();
    if let (Some(epoch), Some(kept)) = (best.kept_epoch, best.kept_value) {
        sentence.push_str(&format!(
            " Epoch {epoch} of this trial was kept; its own value is {kept:.3}."
        ));
    }
    sentence
}

/// Says which trial over samples of waits, or of a program, is the best, and how to validate the
/// former; empty for other sweeps.
fn ranked_blocks(inputs: &ReportInputs) -> Vec<ReportBlock> {
    let best = inputs.best_ranked;
    let mut trials = inputs.trials.iter();
    let Some(best) = trials.find(|trial| Some(trial.trial) == best) else {
        return Vec::new();
    };
    let mut sentence = format!(
        "Trial {} ({}) is the best of {}, chosen by the {}",
        best.trial,
        best.model,
        output::counted(inputs.trials.len(), "trial"),
        words::metric_title(inputs.metric()),
    );
    if inputs.runs_program() {
        let value = best
            .value
            .map_or(String::new(), |value| format!(": {value:.4}"));
        return vec![ReportBlock::paragraph(format!("{sentence}{value}."))];
    }
    if let Some(value) = best.value {
        sentence.push_str(&format!(": {value:.3} hours"));
    }
    vec![
        ReportBlock::paragraph(sentence + "."),
        ReportBlock::Missing(MissingInput {
            text: "Its submission times have not been scored on later windows. To compare them with policies without a model:".to_owned(),
            command: Some(format!(
                "poolcast provision validate TRACE --model {}",
                inputs.dir_argument()
            )),
        }),
    ]
}

fn no_scores(inputs: &ReportInputs) -> MissingInput {
    let dir = inputs.dir_argument();
    let (text, command) = match (inputs.kind, inputs.is_running()) {
        (ReportedKind::Run, _) => (
            "This run has not been scored on unseen holds. To score it:",
            Some(format!("poolcast evaluate {dir} TENSORS")),
        ),
        (_, true) => (
            "The best model is scored on unseen holds once all trials have ended. To see their progress:",
            Some(format!("poolcast sweep status {dir}")),
        ),
        (_, false) if inputs.best_trial().is_none() => (
            "No trial has a model, so there is nothing to score. The trials and their failures are listed below.",
            None,
        ),
        (_, false) => (
            "The best model has not been scored on unseen holds. To score it:",
            Some(format!("poolcast sweep evaluate {dir}")),
        ),
    };
    MissingInput {
        text: text.to_owned(),
        command,
    }
}

fn evaluation_blocks(evaluation: &ModelEvaluation) -> Vec<ReportBlock> {
    let share = |successes: usize, samples: usize| 100.0 * successes as f64 / samples.max(1) as f64;
    let about = format!(
        "Scored on {} of {} that the model has not seen; {:.1} % of them succeeded after release. The model has learned from {}, of which {:.1} % succeeded. \
         Each score is followed by its 95 % interval, from {} of whole clusters.",
        output::counted(evaluation.samples, "hold"),
        output::counted(evaluation.clusters, "cluster"),
        share(evaluation.successes, evaluation.samples),
        output::counted(evaluation.train_samples, "hold"),
        share(evaluation.train_successes, evaluation.train_samples),
        output::counted(evaluation.resamples, "bootstrap resample"),
    );
    let mut blocks = vec![ReportBlock::paragraph(about)];
    blocks.extend(evaluation.source.sentence().map(ReportBlock::paragraph));
    blocks.extend(verdict(evaluation).map(ReportBlock::paragraph));
    let probed = evaluation.after_probes.as_ref();
    let probed = probed.and_then(|probed| probed_sentence(probed, evaluation.samples));
    blocks.extend(probed.map(ReportBlock::paragraph));
    blocks.push(ReportBlock::Table(score_table(evaluation)));
    blocks
}

/// Says how well the model separates releases after probes.
fn probed_sentence(probed: &ProbedScores, samples: usize) -> Option<String> {
    let area = find_score(&probed.scores, "roc_auc")?;
    let (value, (low, high)) = (area.value?, area.interval?);
    Some(format!(
        "Of the {}, {} were released before the outcome of another job with the same cause was known. If that job is tried first, and its outcome changes their odds, the ROC-AUC is {value:.3} [{low:.3}, {high:.3}].",
        output::counted(samples, "hold"),
        output::with_commas(probed.samples as u64)
    ))
}

/// Compares the ROC-AUC of the model with the best baseline.
fn verdict(evaluation: &ModelEvaluation) -> Option<String> {
    let area = |method: &MethodScores| {
        let score = find_score(&method.scores, "roc_auc")?;
        Some((score.value?, score.interval?))
    };
    let (model, baselines) = evaluation.methods.split_first()?;
    let (value, (low, _)) = area(model)?;
    let best = baselines
        .iter()
        .filter(|method| method.name != "best possible")
        .filter_map(|method| Some((words::shown(&method.name), area(method)?.0)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (name, baseline_area) = best;
    Some(if low > baseline_area {
        format!(
            "The model separates releases that succeed from those that fail better than the best baseline, \"{name}\": its ROC-AUC is {value:.3}, with a 95 % interval above the {baseline_area:.3} of the baseline."
        )
    } else {
        format!(
            "The model is not shown to be better than the best baseline, \"{name}\": its ROC-AUC is {value:.3}, that of the baseline is {baseline_area:.3}, and the 95 % interval of the model begins at {low:.3}."
        )
    })
}

fn score_table(evaluation: &ModelEvaluation) -> ReportTable {
    let mut columns = vec![("score".to_owned(), 0)];
    for method in &evaluation.methods {
        let name = words::shown(&method.name);
        columns.extend([(name, 3), ("from".to_owned(), 3), ("to".to_owned(), 3)]);
    }
    let named: Vec<(&str, usize)> = columns
        .iter()
        .map(|(name, decimals)| (name.as_str(), *decimals))
        .collect();

    let mut table = ReportTable::new("Scores on holds that the model has not seen", &named);
    for (at, name) in Scores::NAMES.iter().enumerate() {
        let mut row = vec![ReportCell::from(better_title(name))];
        for method in &evaluation.methods {
            row.extend(score_cells(method.scores.get(at)));
        }
        table.rows.push(row);
    }
    table
}

/// Returns the name of a score, with its better direction.
fn better_title(name: &str) -> String {
    let better = match name {
        "brier" | "ece" => "lower",
        _ => "higher",
    };
    format!("{} ({better} is better)", Scores::title(name))
}

fn score_cells(score: Option<&ScoreInterval>) -> [ReportCell; 3] {
    let Some(score) = score else {
        return [ReportCell::Empty, ReportCell::Empty, ReportCell::Empty];
    };
    let (low, high) = score.interval.unzip();
    [score.value.into(), low.into(), high.into()]
}

/// Shows the value of each input alone and of all together, and how to also try the others.
fn input_blocks(best: &BestModel, inputs: &ReportInputs) -> Vec<ReportBlock> {
    let columns = [("input", 0), ("trial", 0), ("model", 0), ("value", 3)];
    let name = inputs.value_title();
    let mut table = ReportTable::new(format!("The best {name} of each input"), &columns);
    let mut untried = Vec::new();
    for InputValue { input, best: found } in best.best_by_input() {
        let Some(found) = found else {
            untried.push(format!("{}: {}", input.title(), input.setting()));
            table.push([
                input.title().into(),
                "not tried".into(),
                ReportCell::Empty,
                ReportCell::Empty,
            ]);
            continue;
        };
        let mut trials = best.trials.iter();
        let of_trial = trials.find(|trial| trial.trial == found.trial);
        table.push([
            input.title().into(),
            found.trial.into(),
            of_trial.map(|trial| words::shown(&trial.model)).into(),
            found.value.into(),
        ]);
    }
    let answering = match &best.ensemble {
        Some(_) => ["all together".into(), ReportCell::Empty, "ensemble".into()],
        None => [
            "the model that answers".into(),
            best.trial.into(),
            ReportCell::Empty,
        ],
    };
    let [title, trial, model] = answering;
    table.push([title, trial, model, best.answering_value().into()]);

    let mut blocks = vec![ReportBlock::Table(table)];
    if !untried.is_empty() {
        let text = format!(
            "To try the other inputs, add to the search: {}.",
            untried.join("; ")
        );
        blocks.push(ReportBlock::paragraph(text));
    }
    blocks
}

/// Lists the choice in each split, with estimates of its value without selection bias.
fn choice_table(inputs: &ReportInputs) -> ReportTable {
    let has_splits = inputs.choices.iter().any(|choice| choice.split.is_some());
    let mut columns = vec![
        (if has_splits { "split" } else { "samples" }, 0),
        ("trial", 0),
        ("pipeline", 0),
        ("trials", 0),
        ("value", 3),
    ];
    let estimates = shown_estimates(inputs);
    for (title, _) in estimates {
        columns.extend([(*title, 3), ("from", 3), ("to", 3)]);
    }
    let name = inputs.value_title();
    let mut table = ReportTable::new(
        format!("The choice by {name}, with estimates that are free of selection bias"),
        &columns,
    );
    for choice in &inputs.choices {
        table.rows.push(choice_cells(choice, estimates));
    }
    table
}

/// The title of an estimate, and how to get it from a choice.
type NamedEstimate = (&'static str, fn(&SplitChoice) -> Option<ScoreEstimate>);

const WITHOUT_SELECTION_BIAS: NamedEstimate =
    ("corrected for selection bias", |choice| choice.corrected);
const ON_HELD_OUT_ROWS: NamedEstimate = ("on held-out rows", |choice| choice.validation);
const ONE_ANSWER: NamedEstimate = ("one answer for all rows", |choice| choice.baseline);
const ON_TEST_SPLIT: NamedEstimate = ("on the test split", |choice| choice.test);

/// Selects the estimates to show. Tables have no test split, and a ROC-AUC has no baseline.
fn shown_estimates(inputs: &ReportInputs) -> &'static [NamedEstimate] {
    if inputs
        .choices
        .iter()
        .any(|choice| choice.baseline.is_some())
    {
        &[WITHOUT_SELECTION_BIAS, ON_HELD_OUT_ROWS, ONE_ANSWER]
    } else if inputs.config.data.is_given() {
        &[WITHOUT_SELECTION_BIAS, ON_HELD_OUT_ROWS]
    } else {
        &[WITHOUT_SELECTION_BIAS, ON_TEST_SPLIT]
    }
}

fn choice_cells(choice: &SplitChoice, estimates: &[NamedEstimate]) -> Vec<ReportCell> {
    let split = choice.split.as_deref().map(words::shown);
    let mut row: Vec<ReportCell> = vec![
        split.unwrap_or_else(|| "from the log".to_owned()).into(),
        choice.trial.into(),
        words::shown(&choice.pipeline).into(),
        choice.trials.into(),
        choice.value.into(),
    ];
    for (_, estimate_of) in estimates {
        row.extend(estimate_cells(estimate_of(choice)));
    }
    row
}

fn estimate_cells(estimate: Option<ScoreEstimate>) -> [ReportCell; 3] {
    match estimate {
        Some(ScoreEstimate { value, low, high }) => [value.into(), low.into(), high.into()],
        None => [ReportCell::Empty, ReportCell::Empty, ReportCell::Empty],
    }
}
