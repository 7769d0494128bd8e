//! The best trial → `best.json` for programs, and `bestmodel.info` for people and scripts, a line of `key = value` each.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::best_network::{BestNetwork, TrialResult};
use super::choice::SplitChoice;
use super::outcome::TrialOutcomes;
use super::paths::{BEST_FILE, INFO_FILE, trial_dir};
use super::trial_row::{hyper_parameters, plain_value};
use crate::config::Config;
use crate::tensors::SplitSide;
use crate::training::{ModelEvaluation, TrainingRun, evaluation_path};
use crate::{escape, files, manifest, pipelines};

/// Writes `best`, of the sweep in `dir`, for programs and for people.
pub fn write_best_network(dir: &Path, best: &BestNetwork) -> Result<()> {
    manifest::write_json(&dir.join(BEST_FILE), best)?;
    files::write_atomic(
        &dir.join(INFO_FILE),
        best_model_info(dir, best, None)?.as_bytes(),
    )
}

/// What is known of the best trial: why it was chosen, its scores on the test samples where it was evaluated on them, its
/// hyper-parameters, where its model is. `evaluation` are those scores, if they are not beside the model yet.
pub fn best_model_info(
    dir: &Path,
    best: &BestNetwork,
    evaluation: Option<&ModelEvaluation>,
) -> Result<String> {
    let (run, relative) = (
        trial_dir(dir, best.trial),
        trial_dir(Path::new(""), best.trial),
    );
    let failed: Vec<String> = best
        .trials
        .iter()
        .filter(|trial| trial.best().is_none())
        .map(failure_text)
        .collect();
    let chosen = best
        .trials
        .iter()
        .find(|trial| trial.trial == best.trial)
        .and_then(|trial| trial.best());
    let mut lines = vec![
        ("trial".to_owned(), best.trial.to_string()),
        ("metric".to_owned(), best.metric.name.to_string()),
        (
            "goal".to_owned(),
            format!("{:?}", best.metric.goal).to_lowercase(),
        ),
        ("value".to_owned(), best.value.to_string()),
        (
            "epoch".to_owned(),
            chosen.map_or(String::new(), |epoch| epoch.epoch.to_string()),
        ),
        (
            "model".to_owned(),
            relative.join("model.safetensors").display().to_string(),
        ),
        (
            "model_sha256".to_owned(),
            TrainingRun::open(&run)?.summary.model_sha256,
        ),
        ("trials".to_owned(), best.trials.len().to_string()),
        ("failed".to_owned(), failed.len().to_string()),
    ];
    lines.extend(
        failed
            .into_iter()
            .map(|failure| ("failed_trial".to_owned(), failure)),
    );
    lines.extend(test_score_lines(&run, evaluation.cloned())?);
    lines.extend(
        hyper_parameters(&Config::read(&run)?)?
            .into_iter()
            .map(|(name, value)| (name, plain_value(&value))),
    );
    Ok(lines
        .into_iter()
        .map(|(key, value)| format!("{} = {}\n", escape::value(&key), escape::value(&value)))
        .collect())
}

/// A trial without a model, and why.
fn failure_text(trial: &TrialResult) -> String {
    let why = trial
        .error
        .as_deref()
        .unwrap_or("its loss was no number")
        .replace('\n', " ");
    format!("{}: {why}", trial.trial)
}

fn test_score_lines(
    run: &Path,
    evaluation: Option<ModelEvaluation>,
) -> Result<Vec<(String, String)>> {
    let path = evaluation_path(run, SplitSide::Test);
    let is_beside = evaluation.is_none() && path.is_file();
    let beside = is_beside
        .then(|| manifest::read_json::<ModelEvaluation>(&path))
        .transpose()?;
    let evaluation = evaluation.or(beside);
    let scores = evaluation
        .and_then(|evaluation| evaluation.methods.into_iter().next())
        .map(|model| model.scores);
    let defined = scores
        .into_iter()
        .flatten()
        .filter_map(|score| Some((score.name, score.value?)));
    Ok(defined
        .map(|(name, value)| (format!("test_{name}"), value.to_string()))
        .collect())
}

/// Writes what is known of the best trial of each split for people, as [`write_best_network`] does: each line begins with the name of the
/// split and a dot.
pub(super) fn write_split_choices(
    dir: &Path,
    choices: &[SplitChoice],
    outcomes: &mut TrialOutcomes,
) -> Result<()> {
    let mut text = String::new();
    for choice in choices {
        let split = choice
            .split
            .as_ref()
            .map_or(String::new(), |split| format!("{}.", escape::value(split)));
        for (key, value) in choice_lines(dir, choice, outcomes)? {
            text.push_str(&format!(
                "{split}{} = {}\n",
                escape::value(&key),
                escape::value(&value)
            ));
        }
    }
    files::write_atomic(&dir.join(INFO_FILE), text.as_bytes())
}

fn choice_lines(
    dir: &Path,
    choice: &SplitChoice,
    outcomes: &mut TrialOutcomes,
) -> Result<Vec<(String, String)>> {
    let row = outcomes
        .row_of(choice.trial)?
        .context("the best trial has a row")?;
    let model = trial_dir(dir, choice.trial).join(pipelines::PIPELINE_FILE);
    let relative = model
        .strip_prefix(dir)
        .unwrap_or(&model)
        .display()
        .to_string();
    let all = outcomes
        .all()
        .iter()
        .filter(|outcome| outcome.split.as_deref() == choice.split.as_deref());
    let mut lines = vec![
        ("trial", choice.trial.to_string()),
        ("pipeline", choice.pipeline.clone()),
        ("metric", choice.metric.name.to_string()),
        ("goal", format!("{:?}", choice.metric.goal).to_lowercase()),
        ("value", choice.value.to_string()),
        ("model", relative),
        ("model_sha256", manifest::sha256(&fs_err::read(&model)?)),
        ("trials", all.clone().count().to_string()),
        (
            "failed",
            all.filter(|outcome| outcome.value.is_none())
                .count()
                .to_string(),
        ),
    ];
    for (name, estimate) in [
        ("corrected", choice.corrected),
        ("held_out", choice.validation),
    ] {
        lines.extend(estimate.map(|estimate| (name, estimate.value.to_string())));
    }
    let lines = lines
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value));
    Ok(lines
        .chain(
            row.parameters
                .into_iter()
                .map(|(name, value)| (name, plain_value(&value))),
        )
        .collect())
}
