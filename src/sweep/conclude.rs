//! The rows of a sweep whose trials were done by parts → what `sweep run` leaves at its end, in two steps: the choice, for which
//! rows are enough, and then the scores of what was chosen, for which only its own files are needed.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::best_network::BestNetwork;
use super::best_trial::BestTrial;
use super::bestmodel_info::best_model_info;
use super::choice::{SplitChoice, choose_pipelines};
use super::csv_table::csv_table;
use super::folder::{SWEEP, SweepFolder, sweep_key};
use super::outcome::TrialOutcomes;
use super::paths::{
    BEST_FILE, CHOSEN_FILE, INFO_FILE, ROWS_FILE, SELECTION_FILE, TABLE_FILE, table_dir,
    tensors_dir, trial_dir,
};
use super::results::choose_network;
use super::trial_data::trial_dataset_side;
use super::trial_row::{TrialEnd, TrialRow};
use crate::config::Config;
use crate::queue::{ChunkEntry, WorkItem};
use crate::tensors::SplitSide;
use crate::training::{ModelEvaluation, TrainingRun, evaluate_run, evaluation_path};
use crate::{files, manifest};

/// The row of `trial`, which `config` describes, and of which no part has left one.
pub fn lost_row(config: &Config, trial: usize, error: &str) -> Result<TrialRow> {
    let budget = if config.pipelines.is_empty() {
        config.epochs
    } else {
        1
    };
    let row = TrialRow::begin(&ChunkEntry::new(WorkItem { trial, budget }), "", config)?;
    Ok(TrialRow {
        ended: TrialEnd::Quarantined,
        error: Some(error.to_owned()),
        began: String::new(),
        ..row
    })
}

/// Leaves in `out` the results of `sweep`, all of whose trials have ended as `rows` say: its rows, its best network, its
/// manifest, and what [`evaluate_choices`] needs.
///
/// # Errors
/// Fails where no trial has a value.
pub fn conclude_parts(sweep: &SweepFolder, rows: &[TrialRow], out: &Path) -> Result<()> {
    fs_err::create_dir_all(out)?;
    let best = choose_network(sweep, rows);
    let leaders = leaders(sweep, rows);
    let best = if leaders.is_empty() {
        Some(best?)
    } else {
        best.ok()
    };

    let mut needed = [crate::config::FILE, manifest::FILE, ROWS_FILE]
        .map(str::to_owned)
        .to_vec();
    let mut need = |path: PathBuf, names: &[&str]| {
        let path = path
            .strip_prefix(&sweep.dir)
            .unwrap_or(&path)
            .to_string_lossy()
            .into_owned();
        needed.extend(names.iter().map(|name| format!("{path}/{name}")));
    };
    if let Some(best) = &best {
        manifest::write_json(&out.join(BEST_FILE), best)?;
        let row = rows
            .iter()
            .find(|row| row.trial == best.trial)
            .context("the best trial has a row")?;
        need(
            trial_dir(&sweep.dir, best.trial),
            &[
                "manifest.json",
                "model.safetensors",
                "metrics.json",
                "config.yaml",
            ],
        );
        need(
            tensors_dir(&sweep.dir, &row.config)?,
            &["manifest.json", "test-*.safetensors"],
        );
    }
    for row in &leaders {
        need(trial_dir(&sweep.dir, row.trial), &["*"]);
        match row.config.data.is_given() {
            true => need(table_dir(&sweep.dir), &["*"]),
            false => need(tensors_dir(&sweep.dir, &row.config)?, &["*"]),
        }
    }
    // What a choice is worth without its luck follows from what every trial predicted.
    for row in rows.iter().filter(|row| row.fit.is_some()) {
        need(
            trial_dir(&sweep.dir, row.trial),
            &["predictions.safetensors"],
        );
    }
    needed.sort_unstable();
    needed.dedup();

    files::write_atomic(
        &out.join(CHOSEN_FILE),
        (needed.join("\n") + "\n").as_bytes(),
    )?;
    files::write_atomic(&out.join(TABLE_FILE), csv_table(rows).as_bytes())?;
    manifest::write_json_lines(&out.join(ROWS_FILE), rows)?;
    manifest::write(
        out,
        SWEEP,
        &sweep_key(&sweep.config, &sweep.plan)?,
        &sweep.plan,
    )
}

/// The rows of the best pipelines, one of each split.
fn leaders<'a>(sweep: &SweepFolder, rows: &'a [TrialRow]) -> Vec<&'a TrialRow> {
    let fits = || rows.iter().filter(|row| row.fit.is_some());
    let splits: std::collections::BTreeSet<Option<&str>> =
        fits().map(|row| row.split.as_deref()).collect();
    let of_split = |split| {
        let of_split: Vec<TrialRow> = fits()
            .filter(|row| row.split.as_deref() == split)
            .cloned()
            .collect();
        let leader = BestTrial::among(
            &sweep.config.wandb.sweep.metric,
            TrialOutcomes::from_rows(of_split).all(),
        )?;
        rows.iter().find(|row| row.trial == leader.trial)
    };
    splits.into_iter().filter_map(of_split).collect()
}

/// What was chosen of a sweep, on rows that it has not learned from.
#[derive(Debug)]
pub struct EvaluatedChoices {
    /// The best network, with its scores on the test side.
    pub network: Option<(BestNetwork, ModelEvaluation)>,
    /// The best pipeline of each split.
    pub choices: Vec<SplitChoice>,
}

/// Scores the best trials of the finished `sweep`, and leaves in `out` the scores beside the model's place, `bestmodel.info` and
/// `selection.json`.
///
/// # Errors
/// Fails where a model, its tensors or its table are missing.
pub fn evaluate_choices(
    sweep: &SweepFolder,
    rows: &[TrialRow],
    out: &Path,
) -> Result<EvaluatedChoices> {
    fs_err::create_dir_all(out)?;
    let network = choose_network(sweep, rows).ok();
    let network = network
        .map(|best| evaluate_network(sweep, rows, best, out))
        .transpose()?;
    let choices = if sweep.config.pipelines.is_empty() {
        Vec::new()
    } else {
        choose_pipelines(sweep, &mut TrialOutcomes::from_rows(rows.to_vec()))?
    };
    if !choices.is_empty() {
        manifest::write_json(&out.join(SELECTION_FILE), &choices)?;
    }
    Ok(EvaluatedChoices { network, choices })
}

fn evaluate_network(
    sweep: &SweepFolder,
    rows: &[TrialRow],
    best: BestNetwork,
    out: &Path,
) -> Result<(BestNetwork, ModelEvaluation)> {
    let row = rows
        .iter()
        .find(|row| row.trial == best.trial)
        .context("the best trial has a row")?;
    let (dir, beside) = (
        trial_dir(&sweep.dir, best.trial),
        trial_dir(out, best.trial),
    );
    let dataset = trial_dataset_side(sweep, &row.config, SplitSide::Test)?;
    let evaluation = evaluate_run(
        &TrainingRun::open(&dir)?,
        &dataset,
        SplitSide::Test,
        sweep.config.evaluation.resamples,
        None,
    )?;
    fs_err::create_dir_all(&beside)?;
    manifest::write_json(&evaluation_path(&beside, SplitSide::Test), &evaluation)?;
    manifest::write_json(&out.join(BEST_FILE), &best)?;
    files::write_atomic(
        &out.join(INFO_FILE),
        best_model_info(&sweep.dir, &best, Some(&evaluation))?.as_bytes(),
    )?;
    Ok((best, evaluation))
}
