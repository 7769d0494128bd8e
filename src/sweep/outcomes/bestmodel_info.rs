//! Writes the best trial to `best.json` for programs, and to `bestmodel.info` for people and
//! scripts. The latter has one `key = value` per line.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::best_model::{BestModel, TrialResult};
use super::choice::SplitChoice;
use super::outcome::{TrialOutcome, TrialOutcomes};
use crate::config::Config;
use crate::plan::SweepFolder;
use crate::plan::{BEST_FILE, INFO_FILE, trial_dir};
use crate::plan::{TrialRow, hyper_parameters, plain_value};
use poolcast_base::{escape, files, manifest};
use poolcast_holds::training::{ModelEvaluation, TrainedModel, evaluation_path};
use poolcast_pipelines as pipelines;
use poolcast_tensors::Split;

/// Writes `best`, of the sweep in `dir`, to `out`, for programs and for people.
pub fn write_best_model(dir: &Path, out: &Path, best: &BestModel) -> Result<()> {
    manifest::write_json(&out.join(BEST_FILE), best)?;
    files::write_atomic(
        &out.join(INFO_FILE),
        best_model_info(dir, out, best)?.as_bytes(),
    )
}

/// The facts about the best trial: the reason of the choice, the hyper-parameters, and the path of
/// the model that answers (the trial or an ensemble). If the model was evaluated on the test
/// samples, its scores on them follow. Reads the scores and the ensemble from `out`.
pub fn best_model_info(dir: &Path, out: &Path, best: &BestModel) -> Result<String> {
    let run = best.judged_dir(dir, out);
    let later = best.dir(out);
    let trained = TrainedModel::open(&run)?;
    let relative = later.strip_prefix(out).unwrap_or(&later).to_owned();
    let chosen = best.trials.iter().find(|trial| trial.trial == best.trial);
    let epoch = chosen.and_then(TrialResult::best_epoch);
    let failed: Vec<&TrialResult> = best
        .trials
        .iter()
        .filter(|trial| trial.has_failed())
        .collect();

    let mut info = InfoLines::default();
    info.add("trial", best.trial);
    info.add("metric", best.metric.name);
    info.add("goal", format!("{:?}", best.metric.goal).to_lowercase());
    info.add("value", best.value);
    if let Some(epoch) = epoch {
        info.add("epoch", epoch.epoch);
    }
    if let Some(ensemble) = &best.ensemble {
        info.add("ensemble", ensemble.words());
        info.add("ensemble_value", ensemble.value);
    }
    info.add("model", relative.join(trained.file).display());
    info.add("model_sha256", trained.sha256);
    info.add("trials", best.trials.len());
    info.add("failed", failed.len());
    for trial in failed {
        info.add("failed_trial", failure_text(trial));
    }
    add_test_scores(&mut info, &later)?;
    for (name, value) in hyper_parameters(&Config::read(&run)?) {
        info.add(&name, plain_value(&value));
    }
    Ok(info.text)
}

/// Lines of `key = value`.
#[derive(Default)]
struct InfoLines {
    /// The prefix of each key.
    prefix: String,
    text: String,
}

impl InfoLines {
    fn add(&mut self, key: &str, value: impl std::fmt::Display) {
        let key = escape::value(key);
        let value = value.to_string();
        self.text += &format!("{}{key} = {}\n", self.prefix, escape::value(&value));
    }
}

/// A trial without a model, with the reason.
fn failure_text(trial: &TrialResult) -> String {
    let why = trial
        .error
        .as_deref()
        .unwrap_or("its loss is not a number")
        .replace('\n', " ");
    format!("{}: {why}", trial.trial)
}

/// Adds the scores on the test samples from `run`, if there are any.
fn add_test_scores(info: &mut InfoLines, run: &Path) -> Result<()> {
    let path = evaluation_path(run, Split::Test);
    if !path.is_file() {
        return Ok(());
    }

    let evaluation: ModelEvaluation = manifest::read_json(&path)?;
    // The first method is the model; the others are baselines.
    let Some(model) = evaluation.methods.first() else {
        return Ok(());
    };
    for score in &model.scores {
        if let Some(value) = score.value {
            info.add(&format!("test_{}", score.name), value);
        }
    }
    Ok(())
}

/// Writes the facts about the best trial of `sweep` over wait samples, or of a program, for people.
/// `row` is the trial's row.
pub(crate) fn write_best_row(sweep: &SweepFolder, row: &TrialRow) -> Result<()> {
    let metric = &row.config.wandb.sweep.metric;
    let model = trial_dir(&sweep.dir, row.trial);
    let model = model.strip_prefix(&sweep.dir).unwrap_or(&model);
    let mut info = InfoLines::default();
    info.add("trial", row.trial);
    info.add("metric", metric.title());
    info.add("goal", format!("{:?}", metric.goal).to_lowercase());
    if let Some(value) = row.value {
        info.add("value", value);
    }
    let key = match row.reported {
        Some(_) => "files",
        None => "model",
    };
    info.add(key, model.display());
    for (name, value) in hyper_parameters(&row.config) {
        info.add(&name, plain_value(&value));
    }
    files::write_atomic(&sweep.dir.join(INFO_FILE), info.text.as_bytes())
}

/// Writes the facts about the best trial of each split for people, like [`write_best_model`]. Each
/// line begins with the name of the split and a dot.
pub(crate) fn write_split_choices(
    dir: &Path,
    choices: &[SplitChoice],
    outcomes: &mut TrialOutcomes,
) -> Result<()> {
    let mut info = InfoLines::default();
    for choice in choices {
        info.prefix = match &choice.split {
            Some(split) => format!("{}.", escape::value(split)),
            None => String::new(),
        };
        add_choice(&mut info, dir, choice, outcomes)?;
    }
    files::write_atomic(&dir.join(INFO_FILE), info.text.as_bytes())
}

fn add_choice(
    info: &mut InfoLines,
    dir: &Path,
    choice: &SplitChoice,
    outcomes: &mut TrialOutcomes,
) -> Result<()> {
    let row = outcomes
        .row_of(choice.trial)?
        .context("the best trial has no row")?;
    let model = trial_dir(dir, choice.trial).join(pipelines::PIPELINE_FILE);
    let relative = model.strip_prefix(dir).unwrap_or(&model);
    let compared: Vec<&TrialOutcome> = outcomes
        .all()
        .iter()
        .filter(|outcome| outcome.split.as_deref() == choice.split.as_deref())
        .collect();
    let failed = compared
        .iter()
        .filter(|outcome| outcome.value.is_none())
        .count();

    info.add("trial", choice.trial);
    info.add("pipeline", &choice.pipeline);
    info.add("metric", choice.metric.name);
    info.add("goal", format!("{:?}", choice.metric.goal).to_lowercase());
    info.add("value", choice.value);
    info.add("model", relative.display());
    info.add("model_sha256", manifest::sha256(&fs_err::read(&model)?));
    info.add("trials", compared.len());
    info.add("failed", failed);
    if let Some(corrected) = choice.corrected {
        info.add("corrected", corrected.value);
    }
    if let Some(held_out) = choice.validation {
        info.add("held_out", held_out.value);
    }
    for (name, value) in &row.parameters {
        info.add(name, plain_value(value));
    }
    Ok(())
}
