//! What a sweep of pipelines tries, and what was chosen: flags in, tables out.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use serde_json::json;

use super::flags::{flag, flags};
use crate::cli::{SweepChoiceArgs, SweepInitArgs};
use crate::config::Config;
use crate::error::{HintedError, hinted, too_early};
use crate::escape;
use crate::manifest;
use crate::output;
use crate::pipelines::ImportanceMeasure;
use crate::sweep::{
    self, FeatureImportance, SELECTION_FILE, ScoreEstimate, SplitChoice, SweepFolder,
    TrialOutcomes, TrialRow,
};
use crate::training::Scores;

/// So many features are shown, the most important first.
const SHOWN: usize = 10;

/// The configuration that `sweep init` is given, with what its flags choose.
pub(super) fn config(args: &SweepInitArgs) -> Result<Config> {
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

/// Refuses another choice than that of the sweep in the folder: it is fixed, and nothing that was
/// done is thrown away.
pub(super) fn check_same(sweep: &SweepFolder, asked: &SweepChoiceArgs) -> Result<()> {
    let (config, data) = (&sweep.config, &sweep.config.data);
    let set = |names: &[String]| names.iter().cloned().collect::<BTreeSet<String>>();
    let pipelines: Vec<String> = config.pipelines.keys().cloned().collect();
    let splits = if data.is_given() {
        data.chosen()?
    } else {
        Vec::new()
    };
    let is_same = (asked.pipeline_names.is_empty()
        || set(&asked.pipeline_names) == set(&pipelines))
        && (asked.split_names.is_empty() || set(&asked.split_names) == set(&splits))
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
    let (pipelines, splits) = (pipelines.join(","), splits.join(","));
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

/// Says how many draws of pipelines are no trials of their own.
pub(super) fn note_repeats(sweep: &SweepFolder) -> Result<()> {
    let repeats = sweep.trials()?.repeats();
    if repeats > 0 {
        let (counted, verbs) = match repeats {
            1 => ("1 draw repeats another".to_owned(), "is"),
            _ => (
                format!("{} repeat others", output::counted(repeats, "draw")),
                "are",
            ),
        };
        output::note(&format!(
            "{counted} but for parameters without effect, and {verbs} not done again"
        ));
    }
    Ok(())
}

/// The choices of a sweep: those kept, or made anew of the trials that have ended so far.
pub(super) fn of(sweep: &SweepFolder, outcomes: &mut TrialOutcomes) -> Result<Vec<SplitChoice>> {
    let path = sweep.dir.join(SELECTION_FILE);
    let choices = if sweep.is_finished() {
        manifest::read_json(&path)?
    } else {
        sweep::choose_pipelines(sweep, outcomes)?
    };
    ensure!(!choices.is_empty(), no_best(sweep));
    Ok(choices)
}

/// A sweep without a best trial: it is too early, or all have failed.
pub(super) fn no_best(sweep: &SweepFolder) -> HintedError {
    let kind = if sweep.is_finished() {
        hinted
    } else {
        too_early
    };
    kind(
        format!("the sweep in `{}` has no best trial", sweep.dir.display()),
        "`poolcast sweep status DIR` shows how far it is, and why trials failed".to_owned(),
    )
}

/// A choice with the row of its trial.
#[derive(Serialize)]
struct Chosen<'a> {
    #[serde(flatten)]
    choice: &'a SplitChoice,
    row: TrialRow,
}

/// Prints the choices, and what each of the chosen is.
pub(super) fn show(sweep: &SweepFolder, outcomes: &mut TrialOutcomes, as_json: bool) -> Result<()> {
    let mut choices = of(sweep, outcomes)?;
    choices
        .iter_mut()
        .flat_map(|choice| &mut choice.importances)
        .for_each(|all| all.features.truncate(SHOWN));
    let chosen = choices.iter().map(|choice| {
        let row = outcomes
            .row_of(choice.trial)?
            .context("the best trial has a row")?;
        Ok(Chosen { choice, row })
    });
    let chosen: Vec<Chosen<'_>> = chosen.collect::<Result<_>>()?;
    if as_json {
        return output::print_json(&chosen);
    }
    output::print(&text(&choices))?;
    for Chosen { choice, row } in chosen {
        let split = choice.split.as_ref().map_or(String::new(), |split| {
            format!(" of {}", escape::value(split))
        });
        let parameters = row
            .parameters
            .iter()
            .map(|(name, value)| vec![format!("  {name}"), sweep::plain_value(value)]);
        output::print(&format!(
            "\nthe best{split}: trial {}, {}\n",
            row.trial,
            escape::value(&row.pipeline)
        ))?;
        output::print(&output::aligned_table(&parameters.collect::<Vec<_>>()))?;
        output::print(&evaluation_rows(choice))?;
        output::print(&importance_rows(choice))?;
        let dir = sweep::trial_dir(&sweep.dir, row.trial);
        output::print(&format!("its model is in {}\n", escape::path(&dir)))?;
    }
    Ok(())
}

/// The scores on further splits, a line each.
fn evaluation_rows(choice: &SplitChoice) -> String {
    let scores = choice
        .evaluation
        .iter()
        .map(|(name, score)| vec![format!("  on {name}"), estimate_cell(*score)]);
    output::aligned_table(&scores.collect::<Vec<_>>())
}

/// The features that matter most, a line each.
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
    let metric = score_title(choice);
    let head = vec![
        "  features".to_owned(),
        measure.to_owned(),
        format!("{metric} lost if permuted"),
    ];
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    let line = |feature: &FeatureImportance| {
        vec![
            format!("  {}", feature.feature),
            number(feature.own),
            number(feature.permutation),
        ]
    };
    output::aligned_table(
        &std::iter::once(head)
            .chain(importances.features.iter().map(line))
            .collect::<Vec<_>>(),
    )
}

/// What people call the score that a choice was made by.
fn score_title(choice: &SplitChoice) -> String {
    let name = choice.metric.name.to_string();
    Scores::title(name.strip_prefix("validation_").unwrap_or(&name))
}

/// A line a split.
pub(super) fn text(choices: &[SplitChoice]) -> String {
    let by = choices.first().map_or(String::new(), score_title);
    let head = [
        "split",
        "best",
        "trial",
        "of",
        &by,
        "corrected (95 %)",
        "held out (95 %)",
        "test (95 %)",
    ];
    let line = |choice: &SplitChoice| {
        vec![
            choice.split.clone().unwrap_or("-".to_owned()),
            choice.pipeline.clone(),
            choice.trial.to_string(),
            choice.trials.to_string(),
            format!("{:.4}", choice.value),
            estimate_cell(choice.corrected),
            estimate_cell(choice.validation),
            estimate_cell(choice.test),
        ]
    };
    // Tables have no test side.
    let columns = if choices.iter().any(|choice| choice.test.is_some()) {
        head.len()
    } else {
        head.len() - 1
    };
    let head = head.map(str::to_owned).to_vec();
    let cut = |line: Vec<String>| line.into_iter().take(columns).collect::<Vec<_>>();
    output::aligned_table(
        &std::iter::once(head)
            .chain(choices.iter().map(line))
            .map(cut)
            .collect::<Vec<_>>(),
    )
}

fn estimate_cell(estimate: Option<ScoreEstimate>) -> String {
    estimate.map_or("-".to_owned(), |ScoreEstimate { value, low, high }| {
        format!("{value:.4} ({low:.4} to {high:.4})")
    })
}
