//! Writes the results of a sweep: the rows for programs, a table for spreadsheets, the best trial,
//! and the models of the best trials.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use anyhow::{Result, ensure};

use super::best_model::{BestModel, TrialResult};
use super::best_trial::BestTrial;
use super::bestmodel_info::{write_best_model, write_best_row, write_split_choices};
use super::choice::choose_pipelines;
use super::csv_table::CsvColumns;
use super::ensemble_choice::choose_ensemble;
use super::outcome::{TrialOutcome, TrialOutcomes};
use super::pareto_front::pareto_front;
use crate::attempts::publish_attempt;
use crate::attempts::{KeptTrials, MAX_COMPARED_TRIALS};
use crate::config::TrialSource;
use crate::plan::SweepFolder;
use crate::plan::TrialRow;
use crate::plan::{
    ROWS_FILE, SELECTION_FILE, TABLE_FILE, TrialDir, existing_trial_dirs, queue_dir, trial_dir,
};
use poolcast_base::error::hinted;
use poolcast_base::files::AtomicFile;
use poolcast_base::{files, manifest};
use poolcast_holds::training;
use poolcast_queue::{ChunkEntry, ChunkState, ItemStateCounts, Queue};

/// Number of best trials whose models are kept, unless the user chooses another one.
const DEFAULT_KEEP: usize = 1000;

/// The same number if a split has more fits than are compared with each other. Each model that is kept
/// takes longer to write than a short fit.
const DEFAULT_KEEP_OF_MANY_FITS: usize = 10;

/// Returns the number of best trials of `sweep` whose models are kept, for pipelines of each split,
/// unless the user chooses another one. Sweeps over logs keep more, because an ensemble needs the best
/// of each kind.
///
/// # Errors
/// Fails if the trials cannot be found.
pub fn default_keep(sweep: &SweepFolder) -> Result<usize> {
    let is_over_tables = sweep.config.trial_source() == TrialSource::Tables;
    let has_many_fits = sweep.trials()?.fits_per_split() > MAX_COMPARED_TRIALS;
    Ok(match is_over_tables && has_many_fits {
        true => DEFAULT_KEEP_OF_MANY_FITS,
        false => DEFAULT_KEEP,
    })
}

/// Writes the results of `sweep`, whose trials have all ended or will not be made. The file of rows
/// is written last, because it marks the results as complete.
pub(crate) fn write_results(
    sweep: &SweepFolder,
    queue: &Queue,
    counts: &ItemStateCounts,
    keep: usize,
) -> Result<TrialOutcomes> {
    let entries = queue.chunk_entries()?;
    let ended: usize = entries.iter().map(|entry| entry.ended).sum();
    let are_all = counts.sealed.is_none_or(|sealed| ended >= sealed);
    ensure!(
        are_all || queue.hand_out().is_final(),
        "the queue of `{}` changed while it was read",
        sweep.dir.display()
    );

    let mut outcomes = TrialOutcomes::from_queue(sweep, queue, &entries)?;
    publish_left_attempts(sweep, queue, &mut outcomes)?;

    let source = sweep.config.trial_source();
    // The files of a program belong to the user.
    if source != TrialSource::Command {
        let trials = sweep.trials()?;
        let networks = outcomes
            .all()
            .iter()
            .filter(|one| trials.is_network(one.trial));
        for network in networks {
            training::remove_checkpoint(&trial_dir(&sweep.dir, network.trial))?;
        }
    }
    let best = best_of_outcomes(sweep, &mut outcomes).ok();
    if let Some(best) = &best {
        write_best_model(&sweep.dir, &sweep.dir, best)?;
    }

    if !sweep.config.pipelines.is_empty() {
        let choices = choose_pipelines(sweep, &mut outcomes)?;
        manifest::write_json(&sweep.dir.join(SELECTION_FILE), &choices)?;
        if sweep.config.data.is_given() {
            write_split_choices(&sweep.dir, &choices, &mut outcomes)?;
        }
    }

    if matches!(source, TrialSource::WaitSamples | TrialSource::Command)
        && let Some(best) = BestTrial::among(&sweep.config.wandb.sweep.metric, outcomes.all())
        && let Some(row) = outcomes.row_of(best.trial)?
    {
        write_best_row(sweep, &row)?;
    }

    remove_other_models(sweep, &outcomes, best.as_ref(), keep)?;
    write_table(&sweep.dir.join(TABLE_FILE), &mut outcomes)?;
    write_rows(&sweep.dir.join(ROWS_FILE), &mut outcomes)?;
    Ok(outcomes)
}

/// Moves the files of killed workers' attempts to their trials' names, and removes the files of an
/// earlier sweep there.
fn publish_left_attempts(
    sweep: &SweepFolder,
    queue: &Queue,
    outcomes: &mut TrialOutcomes,
) -> Result<()> {
    let mut left: BTreeSet<usize> = queue.begun_trials()?.into_iter().collect();
    left.extend(existing_trial_dirs(&sweep.dir)?.iter().map(|dir| dir.trial));

    for trial in left {
        let Some(row) = outcomes.row_of(trial)? else {
            continue;
        };
        let state = ChunkState::Leased(row.worker.clone());
        let entry = ChunkEntry {
            attempt: row.attempt,
            ..ChunkEntry::new(row.item()).with_state(state)
        };
        publish_attempt(sweep, queue, &entry, &row)?;
    }
    Ok(())
}

/// Writes the rows of `outcomes` to the file of all rows, `path`.
pub(crate) fn write_rows(path: &Path, outcomes: &mut TrialOutcomes) -> Result<()> {
    write_lines(path, outcomes, TrialOutcomes::ended_trial, |row, line| {
        Ok(serde_json::to_writer(line, row)?)
    })
}

fn write_table(path: &Path, outcomes: &mut TrialOutcomes) -> Result<()> {
    let mut columns = CsvColumns::default();
    for at in 0..outcomes.all().len() {
        columns.add_row(&outcomes.row(at)?);
    }
    let mut head = Some(columns.header_line());
    write_lines(path, outcomes, TrialOutcomes::row, |row, line| {
        line.extend(head.take().unwrap_or_default().into_bytes());
        line.extend(columns.row_line(row).trim_end_matches('\n').as_bytes());
        Ok(())
    })
}

/// Writes a file row by row, because all rows together may not fit into memory.
fn write_lines<T>(
    path: &Path,
    outcomes: &mut TrialOutcomes,
    read: impl Fn(&mut TrialOutcomes, usize) -> Result<T>,
    mut write: impl FnMut(&T, &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    let mut file = AtomicFile::new(path)?;
    let mut waiting = Vec::new();
    for at in 0..outcomes.all().len() {
        write(&read(outcomes, at)?, &mut waiting)?;
        waiting.push(b'\n');
        if waiting.len() >= 1 << 16 {
            file.file().write_all(&waiting)?;
            waiting.clear();
        }
    }
    file.file().write_all(&waiting)?;
    file.commit(path)
}

/// The rows of the ended trials, in order. A trial that is promoted from rung to rung has its last
/// row.
pub fn trial_rows(sweep: &SweepFolder) -> Result<Vec<TrialRow>> {
    let mut outcomes = TrialOutcomes::read(sweep)?;
    (0..outcomes.all().len())
        .map(|at| outcomes.row(at))
        .collect()
}

/// Like [`choose_model`], with one row in memory at a time.
pub(crate) fn best_of_outcomes(
    sweep: &SweepFolder,
    outcomes: &mut TrialOutcomes,
) -> Result<BestModel> {
    let mut trials = Vec::new();
    if sweep.config.trial_source() == TrialSource::Logs {
        for at in 0..outcomes.all().len() {
            trials.push(TrialResult::from(&outcomes.row(at)?));
        }
    }
    let mut best = BestModel::choose(&sweep.config.wandb.sweep.metric, trials)?;
    best.ensemble = choose_ensemble(sweep, &best.metric, best.trial, outcomes)?;
    Ok(best)
}

/// Chooses the best model of the ended trials over samples of logs, of any kind, and the ensemble
/// that replaces it.
///
/// # Errors
/// Fails if no trial has a value.
pub fn choose_model(sweep: &SweepFolder, rows: &[TrialRow]) -> Result<BestModel> {
    best_of_outcomes(sweep, &mut TrialOutcomes::from_rows(rows.to_vec()))
}

/// Removes the models of all but the `keep` best networks. Also removes all files of pipeline fits,
/// except for the `keep` best of each split. The members of the ensemble of `best` and of the Pareto front
/// are kept, and all files of programs.
fn remove_other_models(
    sweep: &SweepFolder,
    outcomes: &TrialOutcomes,
    best: Option<&BestModel>,
    keep: usize,
) -> Result<()> {
    if sweep.config.trial_source() == TrialSource::Command {
        return Ok(());
    }
    let all = outcomes.all();
    let mut kept = trials_to_keep(sweep, all, keep);
    if let Some(ensemble) = best.and_then(|best| best.ensemble.as_ref()) {
        kept.extend(ensemble.trials.iter().map(|member| member.trial));
    }
    let splits: BTreeSet<_> = all.iter().map(|outcome| &outcome.split).collect();
    for split in splits {
        let of_split = all.iter().filter(|outcome| outcome.split == *split);
        let values = of_split.map(TrialOutcome::metric_values);
        let front = pareto_front(&sweep.config.wandb.sweep.metric, values);
        kept.extend(front.into_iter().map(|one| one.trial));
    }

    let is_over_waits = sweep.config.trial_source() == TrialSource::WaitSamples;
    for TrialDir { trial, path } in existing_trial_dirs(&sweep.dir)? {
        let Ok(at) = all.binary_search_by_key(&trial, |outcome| outcome.trial) else {
            continue;
        };
        if all[at].value.is_none() || kept.contains(&trial) {
            continue;
        }
        if all[at].is_fit || is_over_waits {
            files::remove_all([path])?;
        } else {
            training::remove_model(&path)?;
        }
    }
    Ok(())
}

/// The trials whose models and predictions are kept: the `keep` best networks, and the `keep` best
/// pipelines of each split.
fn trials_to_keep(sweep: &SweepFolder, outcomes: &[TrialOutcome], keep: usize) -> BTreeSet<usize> {
    let mut kept = KeptTrials::new(sweep.config.wandb.sweep.metric.goal, keep);
    for outcome in outcomes {
        if let Some(rank) = outcome.rank() {
            kept.add(outcome.comparison_group(), rank, outcome.trial);
        }
    }
    kept.trials().collect()
}

/// Cleans up the folder of a finished sweep. Removes the rest of the queue that a killed manager
/// left, and the models of all but the `keep` best trials.
///
/// # Errors
/// Fails while there are trials that have not ended.
pub fn clean_up(sweep: &SweepFolder, keep: Option<usize>) -> Result<()> {
    ensure!(
        sweep.is_finished(),
        hinted(
            format!("the sweep in `{}` has not finished", sweep.dir.display()),
            "finish it with `poolcast sweep run DIR`; `poolcast sweep status DIR` shows its progress"
        )
    );
    if let Some(keep) = keep {
        let mut outcomes = TrialOutcomes::read(sweep)?;
        let best = best_of_outcomes(sweep, &mut outcomes).ok();
        remove_other_models(sweep, &outcomes, best.as_ref(), keep)?;
    }
    files::remove_all([queue_dir(&sweep.dir)])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::Config;
    use crate::plan::SweepPlan;
    use serde_json::json;

    #[test]
    fn sweeps_with_many_fits_keep_fewer_models() {
        let keep = |runs: usize| {
            let splits = json!({"train_A": "a == 1", "validate_A": "a == 2"});
            let enet = json!({"runs": runs, "parameters": {"C": {"min": 0.1, "max": 1.0}}});
            let flags = BTreeMap::from([
                ("data.features", json!("f.csv")),
                ("data.metadata", json!("m.csv")),
                ("data.index", json!("i")),
                ("data.target", json!("t")),
                ("data.splits", splits),
                ("data.validate", json!(true)),
                ("pipelines.enet", enet),
            ]);
            let config = Config::load(None, &flags).expect("a configuration");
            let plan = SweepPlan {
                trials: runs,
                source_key: String::new(),
                numbers: None,
            };
            let sweep = SweepFolder::new(Path::new("none"), config, plan);
            default_keep(&sweep).expect("trials")
        };
        assert_eq!([keep(1000), keep(1001)], [1000, 10]);
    }
}
