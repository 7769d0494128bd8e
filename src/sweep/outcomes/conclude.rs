//! Writes the results of a sweep whose trials were run in parts, like `sweep run` does at its end.
//! There are two steps. The choice needs only the rows. The scores of the chosen trials then need
//! only the files of these trials.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::best_model::BestModel;
use super::best_trial::BestTrial;
use super::bestmodel_info::write_best_model;
use super::choice::{SplitChoice, choose_pipelines};
use super::csv_table::csv_table;
use super::ensemble_choice::best_of_each_kind;
use super::outcome::TrialOutcomes;
use super::probed_scores::probed_scores;
use super::results::choose_model;
use crate::attempts::{trial_dataset, trial_dataset_split};
use crate::config::Config;
use crate::plan::{
    BEST_FILE, CHOSEN_FILE, PREDICTIONS_FILE, ROWS_FILE, SELECTION_FILE, TABLE_FILE, table_dir,
    tensors_dir, trial_dir,
};
use crate::plan::{SWEEP, SweepFolder, sweep_key};
use crate::plan::{TrialRow, whole_budget};
use poolcast_base::{files, manifest};
use poolcast_holds::training::{ModelEvaluation, TrainedModel, evaluate_run, evaluation_path};
use poolcast_queue::{ChunkEntry, WorkItem};
use poolcast_tensors::Split;

/// The row of `trial`, which `config` describes, for a trial that has no row from any part.
pub fn lost_row(config: &Config, trial: usize, error: &str) -> TrialRow {
    let item = WorkItem {
        trial,
        budget: whole_budget(config),
    };
    TrialRow::never_run(&ChunkEntry::new(item), error.to_owned(), config)
}

/// Writes the results of `sweep` to `out`, after all its trials have ended with `rows`. The results
/// are its rows, its best network, its manifest, and the list of files that [`evaluate_choices`]
/// needs.
///
/// # Errors
/// Fails if no trial has a value.
pub fn conclude_parts(sweep: &SweepFolder, rows: &[TrialRow], out: &Path) -> Result<()> {
    fs_err::create_dir_all(out)?;
    let best_pipelines = best_rows_of_splits(sweep, rows);
    let best_model = choose_model(sweep, rows);
    // Without pipelines the choice needs a network.
    let best_model = if best_pipelines.is_empty() {
        Some(best_model?)
    } else {
        best_model.ok()
    };

    if let Some(best) = &best_model {
        manifest::write_json(&out.join(BEST_FILE), best)?;
    }
    let needed = needed_files(sweep, rows, best_model.as_ref(), &best_pipelines)?;
    files::write_atomic(&out.join(CHOSEN_FILE), needed.into_text().as_bytes())?;

    files::write_atomic(&out.join(TABLE_FILE), csv_table(rows).as_bytes())?;
    manifest::write_json_lines(&out.join(ROWS_FILE), rows)?;
    let key = sweep_key(&sweep.config, &sweep.plan)?;
    manifest::write(out, SWEEP, &key, &sweep.plan)
}

/// Lists the files of the sweep's folder that [`evaluate_choices`] needs.
fn needed_files<'a>(
    sweep: &'a SweepFolder,
    rows: &[TrialRow],
    best_model: Option<&BestModel>,
    best_pipelines: &[&TrialRow],
) -> Result<NeededFiles<'a>> {
    let mut needed = NeededFiles::new(&sweep.dir);

    if let Some(best) = best_model {
        let row = row_of_trial(rows, best.trial)?;
        needed.add(&source_dir(sweep, row)?, &["*"]);
        let of_network = [
            "manifest.json",
            "model.safetensors",
            "predictions.safetensors",
            "metrics.json",
            "history.jsonl",
            "config.yaml",
        ];
        let of_trial = if sweep.config.pipelines.is_empty() {
            &of_network[..]
        } else {
            &["*"]
        };
        let mut outcomes = TrialOutcomes::from_rows(rows.to_vec());
        for trial in best_of_each_kind(&best.metric, best.trial, &mut outcomes)? {
            needed.add(&trial_dir(&sweep.dir, trial.trial), of_trial);
        }
        needed.add(&trial_dir(&sweep.dir, best.trial), of_trial);
    }

    for row in best_pipelines {
        needed.add(&trial_dir(&sweep.dir, row.trial), &["*"]);
        needed.add(&source_dir(sweep, row)?, &["*"]);
    }

    // The corrected score of a choice depends on the predictions of all trials.
    if !sweep.config.pipelines.is_empty() {
        for row in rows {
            needed.add(&trial_dir(&sweep.dir, row.trial), &[PREDICTIONS_FILE]);
        }
    }
    Ok(needed)
}

/// The directory of the data that the trial of `row` learned from: its tensors, or the joined
/// tables.
fn source_dir(sweep: &SweepFolder, row: &TrialRow) -> Result<PathBuf> {
    Ok(match row.trial_config()?.tensors {
        Some(settings) => tensors_dir(&sweep.dir, &settings),
        None => table_dir(&sweep.dir),
    })
}

/// Patterns of files in the folder of a sweep, as written to [`CHOSEN_FILE`].
struct NeededFiles<'a> {
    sweep_dir: &'a Path,
    patterns: Vec<String>,
}

impl NeededFiles<'_> {
    /// Begins with the files that every sweep has.
    fn new(sweep_dir: &Path) -> NeededFiles<'_> {
        let patterns = [poolcast_config::FILE, manifest::FILE, ROWS_FILE];
        NeededFiles {
            sweep_dir,
            patterns: patterns.map(str::to_owned).to_vec(),
        }
    }

    /// Adds the files `names` of the directory `dir`.
    fn add(&mut self, dir: &Path, names: &[&str]) {
        let dir = dir.strip_prefix(self.sweep_dir).unwrap_or(dir);
        for name in names {
            self.patterns
                .push(format!("{}/{name}", dir.to_string_lossy()));
        }
    }

    /// One pattern per line, sorted and without duplicates.
    fn into_text(mut self) -> String {
        self.patterns.sort_unstable();
        self.patterns.dedup();
        self.patterns.join("\n") + "\n"
    }
}

fn row_of_trial(rows: &[TrialRow], trial: usize) -> Result<&TrialRow> {
    rows.iter()
        .find(|row| row.trial == trial)
        .context("the best trial has no row")
}

/// The row of the best pipeline of each split.
fn best_rows_of_splits<'a>(sweep: &SweepFolder, rows: &'a [TrialRow]) -> Vec<&'a TrialRow> {
    let mut fits_by_split: BTreeMap<Option<&str>, Vec<TrialRow>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.fit.is_some()) {
        fits_by_split
            .entry(row.split.as_deref())
            .or_default()
            .push(row.clone());
    }

    let mut best_rows = Vec::new();
    for fits in fits_by_split.into_values() {
        let outcomes = TrialOutcomes::from_rows(fits);
        let best = BestTrial::among(&sweep.config.wandb.sweep.metric, outcomes.all());
        best_rows.extend(best.and_then(|best| rows.iter().find(|row| row.trial == best.trial)));
    }
    best_rows
}

/// The chosen trials of a sweep, scored on rows that they did not learn from.
#[derive(Debug)]
pub struct EvaluatedChoices {
    /// The best network, with its scores on the test split.
    pub network: Option<(BestModel, ModelEvaluation)>,
    /// The best pipeline of each split.
    pub choices: Vec<SplitChoice>,
}

/// Scores the best trials of the finished `sweep`. Writes the scores to `out`, next to the path of
/// the model, with `bestmodel.info` and `selection.json`.
///
/// # Errors
/// Fails if a model, its tensors or its table are missing.
pub fn evaluate_choices(
    sweep: &SweepFolder,
    rows: &[TrialRow],
    out: &Path,
) -> Result<EvaluatedChoices> {
    fs_err::create_dir_all(out)?;
    let network = match choose_model(sweep, rows) {
        Ok(best) => Some(evaluate_network(sweep, rows, best, out)?),
        Err(_) => None,
    };

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
    best: BestModel,
    out: &Path,
) -> Result<(BestModel, ModelEvaluation)> {
    let row = row_of_trial(rows, best.trial)?;
    let trial = row.trial_config()?;
    // A job of a DAG has the test split alone, in which nothing shows what the outcomes of probes are worth.
    let dataset = trial_dataset(sweep, &trial)
        .or_else(|_| trial_dataset_split(sweep, &trial, Split::Test))?;
    let model = TrainedModel::open(&best.judged_dir(&sweep.dir, out))?;
    let resamples = sweep.config.evaluation.resamples;
    let evaluation = ModelEvaluation {
        after_probes: probed_scores(&sweep.dir, &model, &dataset, resamples)?,
        ..evaluate_run(&model, &dataset, Split::Test, resamples, None)?
    };

    let beside = best.dir(out);
    fs_err::create_dir_all(&beside)?;
    manifest::write_json(&evaluation_path(&beside, Split::Test), &evaluation)?;
    write_best_model(&sweep.dir, out, &best)?;
    Ok((best, evaluation))
}
