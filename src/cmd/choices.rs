//! The choices of a sweep of pipelines: reads them from flags, and prints the chosen trials as
//! tables.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde_json::json;

use super::flags::{flag, flags};
use super::text;
use poolcast_base::error::{HintedError, hinted, too_early};
use poolcast_base::escape;
use poolcast_base::manifest;
use poolcast_base::output;
use poolcast_base::stats::Scores;
use poolcast_cli::{SweepChoiceArgs, SweepInitArgs};
use poolcast_config::{Metric, Parameter};
use poolcast_pipelines::ImportanceMeasure;
use poolcast_sweep::config::{Config, PipelineSpaces, TrialSource};
use poolcast_sweep::{
    self as sweep, EndedTrial, FrontTrial, SELECTION_FILE, ScoreEstimate, SplitChoice, SweepFolder,
    TrialOutcomes, TrialRow,
};

/// Version of the JSON document with the best trials.
pub(super) const BEST_SCHEMA_VERSION: u32 = 1;

/// Number of features shown, the most important first.
const MAX_SHOWN_FEATURES: usize = 10;

/// The configuration for `sweep init`, with the choices of its flags.
pub(super) fn sweep_config(args: &SweepInitArgs) -> Result<Config> {
    let SweepChoiceArgs {
        pipeline_names,
        split_names,
        cv,
        validate,
    } = &args.choice;
    let flags = flags([
        ("out", flag(&args.out)),
        (
            "data.split_names",
            (!split_names.is_empty()).then(|| json!(split_names)),
        ),
        ("data.cv", flag(cv)),
        ("data.validate", validate.then(|| json!(true))),
    ]);

    let mut config = Config::load(Some(&args.config), &flags)?;
    if !pipeline_names.is_empty() {
        config.choose_pipelines(pipeline_names)?;
    }
    Ok(config)
}

/// Rejects choices that differ from the choices of the sweep in the folder. A folder keeps its
/// choices for good, so that no finished trial is lost.
pub(super) fn check_same_choices(sweep: &SweepFolder, asked: &SweepChoiceArgs) -> Result<()> {
    let data = &sweep.config.data;
    let pipelines: Vec<String> = sweep.config.pipelines.keys().cloned().collect();
    let splits = if data.is_given() {
        data.chosen()?
    } else {
        Vec::new()
    };
    let is_same = names_match(&asked.pipeline_names, &pipelines)
        && names_match(&asked.split_names, &splits)
        && (asked.cv.is_none() || asked.cv == data.cv)
        && (!asked.validate || data.validate);

    let cv = data
        .cv
        .map_or("no folds".to_owned(), |k| format!("{k} folds"));
    let validate = if data.validate {
        "rows held out"
    } else {
        "no rows held out"
    };
    let pipelines = pipelines.join(",");
    let splits = splits.join(",");
    ensure!(
        is_same,
        hinted(
            format!(
                "`{}` holds a sweep of other choices: pipelines `{pipelines}`, splits `{splits}`, {cv}, {validate}",
                sweep.dir.display()
            ),
            "name another directory, or begin anew in one with `poolcast sweep init CONFIG -o DIR`"
        )
    );
    Ok(())
}

/// Returns true if `asked` is empty, or names exactly the elements of `present` in any order.
fn names_match(asked: &[String], present: &[String]) -> bool {
    let asked: BTreeSet<&String> = asked.iter().collect();
    let present: BTreeSet<&String> = present.iter().collect();
    asked.is_empty() || asked == present
}

/// Prints which draws do not become trials, because they repeat others.
pub(super) fn note_repeats(sweep: &SweepFolder) -> Result<()> {
    let trials = sweep.trials()?;
    let (of, but) = match sweep.config.trial_source() {
        TrialSource::WaitSamples => ("", " but for what does not count for its kind"),
        TrialSource::Logs | TrialSource::Tables => (" of the network", ""),
        // Equal draws of a program are trials of their own.
        TrialSource::Command => return Ok(()),
    };
    let mut equal_draws: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for repeat in trials.network_repeats() {
        let draws = equal_draws.entry(repeat.first).or_default();
        draws.push(repeat.draw.to_string());
    }
    for (first, draws) in equal_draws {
        let (draws, are) = match &draws[..] {
            [draw] => (format!("draw {draw}"), "is"),
            draws => (format!("draws {}", draws.join(", ")), "are"),
        };
        output::note(&format!(
            "{draws}{of} {are} equal to draw {first}{but}, and {are} not done again"
        ));
    }

    let repeats = trials.repeats();
    let draws = output::counted(repeats, "draw");
    match repeats {
        0 => {}
        1 => output::note(
            "1 draw repeats another but for parameters without effect, and is not done again",
        ),
        _ => output::note(&format!(
            "{draws} repeat others but for parameters without effect, and are not done again"
        )),
    }
    Ok(())
}

/// Notes `max_features: 1`, which is one feature, where the share of all features may be meant.
pub(super) fn note_single_features(config: &Config) {
    let spaces = config.pipelines.values().flat_map(PipelineSpaces::all);
    let mut given = spaces.filter_map(|space| space.parameters.get("max_features"));
    let is_one = given.any(|parameter| match parameter {
        Parameter::Constant(value) => *value == 1,
        Parameter::Drawn(distribution) => distribution.examples().iter().any(|value| *value == 1),
    });
    if is_one {
        output::note("note: `max_features: 1` is one feature; write `1.0` for all features");
    }
}

/// The choices of a sweep: the final ones if it has finished, otherwise a choice among the trials
/// that have ended so far.
pub(super) fn split_choices(
    sweep: &SweepFolder,
    outcomes: &mut TrialOutcomes,
) -> Result<Vec<SplitChoice>> {
    let path = sweep.dir.join(SELECTION_FILE);
    let choices = if sweep.is_finished() {
        manifest::read_json(&path)?
    } else {
        sweep::choose_pipelines(sweep, outcomes)?
    };
    ensure!(!choices.is_empty(), no_best_error(sweep));
    Ok(choices)
}

/// The error for a sweep without a best trial: either it is too early, or all trials have failed.
pub(super) fn no_best_error(sweep: &SweepFolder) -> HintedError {
    let kind = if sweep.is_finished() {
        hinted
    } else {
        too_early
    };
    kind(
        format!("the sweep in `{}` has no best trial", sweep.dir.display()),
        "`poolcast sweep status DIR` shows its progress, and why trials failed".to_owned(),
    )
}

/// A choice with the row of its trial.
#[derive(Serialize)]
struct ChosenTrial<'a> {
    #[serde(flatten)]
    choice: &'a SplitChoice,
    /// The whole trial.
    row: WholeRow<'a>,
}

/// A row of a sweep's results with its configuration.
#[derive(Serialize)]
pub(super) struct WholeRow<'a> {
    #[serde(flatten)]
    trial: &'a EndedTrial,
    /// The whole configuration, as `poolcast config` explains it. To make the trial again, use
    /// `poolcast train`; for samples of waits use `poolcast provision train`, and for a pipeline or
    /// a program use `poolcast sweep`.
    config: &'a Config,
}

impl WholeRow<'_> {
    pub(super) fn new(row: &TrialRow) -> WholeRow<'_> {
        WholeRow {
            trial: &row.result,
            config: &row.config,
        }
    }
}

/// The document that `--json` prints for a sweep with pipelines.
#[derive(Serialize)]
struct ChosenTrials<'a> {
    /// The best trial of each split.
    choices: Vec<ChosenTrial<'a>>,
}

/// Prints the choices and the details of each chosen trial.
pub(super) fn print_choices(
    sweep: &SweepFolder,
    outcomes: &mut TrialOutcomes,
    as_json: bool,
) -> Result<()> {
    let mut choices = split_choices(sweep, outcomes)?;
    for importances in choices
        .iter_mut()
        .flat_map(|choice| &mut choice.importances)
    {
        importances.features.truncate(MAX_SHOWN_FEATURES);
    }

    let row_of = |choice: &SplitChoice| {
        let row = outcomes.row_of(choice.trial)?;
        row.context("the best trial has a row")
    };
    let rows: Vec<TrialRow> = choices.iter().map(row_of).collect::<Result<_>>()?;
    let chosen = choices.iter().zip(rows.iter().map(WholeRow::new));
    let chosen: Vec<_> = chosen
        .map(|(choice, row)| ChosenTrial { choice, row })
        .collect();

    if as_json {
        return output::print_json(BEST_SCHEMA_VERSION, &ChosenTrials { choices: chosen });
    }
    output::print(&choice_table(&choices))?;
    for trial in &chosen {
        print_chosen(sweep, trial)?;
    }
    if !sweep.config.data.is_given() {
        let best = sweep::choose_model(sweep, &sweep::trial_rows(sweep)?)?;
        let together = text::trials::ensemble_text(&best, &sweep.dir);
        output::print(&together)?;
        output::print(&text::trials::inputs_text(&best))?;
        let of_best = sweep::no_better_than_chance(sweep, &best)?;
        output::print(&text::trials::chance_text(of_best))?;
    }
    Ok(())
}

fn print_chosen(sweep: &SweepFolder, chosen: &ChosenTrial<'_>) -> Result<()> {
    let (choice, row) = (chosen.choice, chosen.row.trial);
    let split = match &choice.split {
        Some(split) => format!(" of {}", escape::value(split)),
        None => String::new(),
    };
    let pipeline = escape::value(&row.pipeline);
    output::print(&format!(
        "\nthe best{split}: trial {}, {pipeline}\n",
        row.trial
    ))?;

    let mut parameters = Vec::new();
    for (name, value) in &row.parameters {
        parameters.push(vec![format!("  {name}"), sweep::plain_value(value)]);
    }
    output::print(&output::aligned_table(&parameters))?;
    output::print(&front_text(&sweep.config, &choice.front))?;
    output::print(&evaluation_rows(choice))?;
    output::print(&importance_rows(choice))?;

    let dir = sweep::trial_dir(&sweep.dir, row.trial);
    output::print(&format!("its model is in {}\n", escape::path(&dir)))
}

/// The Pareto front of a sweep with several metrics, one trial a line; empty for other sweeps.
pub(super) fn front_text(config: &Config, front: &[FrontTrial]) -> String {
    if front.is_empty() {
        return String::new();
    }
    let metrics: Vec<&Metric> = config.wandb.sweep.metric.all().collect();
    let mut rows = vec![vec!["  trial".to_owned()]];
    rows[0].extend(metrics.iter().map(|metric| metric.title()));
    for one in front {
        let values = metrics.iter().zip(&one.values);
        let values = values.map(|(metric, value)| metric.value_text(*value));
        rows.push([vec![format!("  {}", one.trial)], values.collect()].concat());
    }
    format!(
        "Pareto front, {} that no other trial dominates:\n{}",
        output::counted(front.len(), "trial"),
        output::aligned_table(&rows)
    )
}

/// The scores on further splits, one line each.
fn evaluation_rows(choice: &SplitChoice) -> String {
    let mut rows = Vec::new();
    for (name, score) in &choice.evaluation {
        rows.push(vec![format!("  on {name}"), estimate_cell(*score)]);
    }
    output::aligned_table(&rows)
}

/// The most important features, one line each.
fn importance_rows(choice: &SplitChoice) -> String {
    let Some(importances) = choice
        .importances
        .as_ref()
        .filter(|all| !all.features.is_empty())
    else {
        return String::new();
    };

    let measure = importances.measure.map_or("-", |measure| match measure {
        ImportanceMeasure::Coefficient => "coefficient",
        ImportanceMeasure::SplitGain => "split gain",
    });
    let metric = score_title(&choice.metric.of_predictions());
    let mut rows = vec![vec![
        "  features".to_owned(),
        measure.to_owned(),
        format!("{metric} lost if permuted"),
    ]];
    for feature in &importances.features {
        rows.push(vec![
            format!("  {}", feature.feature),
            importance_cell(feature.own),
            importance_cell(feature.permutation),
        ]);
    }
    output::aligned_table(&rows)
}

fn importance_cell(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.4}"))
}

/// Display name of the score by which a choice was made.
fn score_title(metric: &Metric) -> String {
    let name = metric.name.to_string();
    Scores::title(name.strip_prefix("validation_").unwrap_or(&name))
}

/// The choices as a table with one line per split.
pub(super) fn choice_table(choices: &[SplitChoice]) -> String {
    let by = choices
        .first()
        .map_or(String::new(), |choice| score_title(&choice.metric));
    let head = [
        "split",
        "best",
        "trial",
        "of",
        &by,
        "corrected (95 %)",
        "held out (95 %)",
        "one answer for all (95 %)",
        "test (95 %)",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for choice in choices {
        rows.push(vec![
            choice.split.clone().unwrap_or("-".to_owned()),
            choice.pipeline.clone(),
            choice.trial.to_string(),
            choice.trials.to_string(),
            format!("{:.4}", choice.value),
            estimate_cell(choice.corrected),
            estimate_cell(choice.validation),
            estimate_cell(choice.baseline),
            estimate_cell(choice.test),
        ]);
    }

    // Drop columns without a value: a ROC-AUC has no such baseline, and the user's own tables have no test split.
    let test = head.len() - 1;
    for (column, is_empty) in [
        (test, choices.iter().all(|choice| choice.test.is_none())),
        (
            test - 1,
            choices.iter().all(|choice| choice.baseline.is_none()),
        ),
    ] {
        if is_empty {
            rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }
    output::aligned_table(&rows)
}

fn estimate_cell(estimate: Option<ScoreEstimate>) -> String {
    estimate.map_or("-".to_owned(), |ScoreEstimate { value, low, high }| {
        format!("{value:.4} ({low:.4} to {high:.4})")
    })
}
