//! Reads the rows of a DAG's ended trials from its directory, during the DAG or after it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::layout::{ROWS_DIRECTORY, TrialDivision};
use super::parts::parse_trial_ranges;
use crate::config::Config;
use crate::plan::RowCompleter;
use crate::{self as sweep, EndedTrial, SweepFolder, SweepPlan, SweepTrials, TrialRow};
use poolcast_base::error::hinted;
use poolcast_base::{files, manifest};
use poolcast_events::EVENTS_FORMAT;
use poolcast_tables::TABLE;

/// Opens the sweep of the DAG in `dir`, also before its trials have ended.
///
/// # Errors
/// Fails as long as the source data of its samples is missing.
pub fn open_sweep(dir: &Path) -> Result<SweepFolder> {
    let config = Config::read(dir)?;
    let source_key = match config.data.is_given() {
        true => manifest::read::<serde_json::Value>(&sweep::table_dir(dir), TABLE)?.key,
        false => manifest::read::<serde_json::Value>(&dir.join("events"), EVENTS_FORMAT)?.key,
    };
    let plan = SweepPlan {
        trials: SweepTrials::from_config(&config)?.count(),
        source_key,
        numbers: None,
    };
    Ok(SweepFolder::new(dir, config, plan))
}

/// The rows of the ended trials of the DAG in `dir`, in order. If a part has failed permanently,
/// its trials have ended too. Those without a row get a row with the part's error.
pub fn read_rows(dir: &Path, config: &Config) -> Result<Vec<TrialRow>> {
    let finished = dir.join(sweep::ROWS_FILE);
    let completer = RowCompleter::new(config);
    let stored_rows = |path: &Path| {
        let rows: Vec<EndedTrial> = manifest::read_json_lines(path)?;
        rows.into_iter().map(|row| completer.row(row)).collect()
    };
    if files::is_regular(&finished) {
        return stored_rows(&finished);
    }
    let (mut rows, drawn) = (BTreeMap::new(), SweepTrials::from_config(config)?);
    for (part, ranges) in TrialDivision::read(dir)?.parts {
        let trials = parse_trial_ranges(&ranges)
            .with_context(|| format!("`{ranges}` is not a list of trials"))?;
        let file = |kind: &str| dir.join(ROWS_DIRECTORY).join(format!("{part}.{kind}"));
        let path = file("jsonl");
        if path.is_file() {
            let of_part: Vec<TrialRow> = stored_rows(&path)?;
            rows.extend(
                of_part
                    .into_iter()
                    .filter(|row| trials.contains(&row.trial))
                    .map(|row| (row.trial, row)),
            );
        }
        let path = file("failed");
        if path.is_file() {
            let error = fs_err::read_to_string(path)?;
            for trial in trials {
                if let Entry::Vacant(entry) = rows.entry(trial) {
                    entry.insert(sweep::lost_row(
                        &drawn.draw(trial)?,
                        trial,
                        error.trim_end(),
                    ));
                }
            }
        }
    }
    Ok(rows.into_values().collect())
}

/// The rows of all trials of `sweep`, which must have ended.
///
/// # Errors
/// Fails if some have not ended.
pub fn read_all_rows(sweep: &SweepFolder) -> Result<Vec<TrialRow>> {
    let rows = read_rows(&sweep.dir, &sweep.config)?;
    ensure!(
        rows.len() == sweep.plan.trials,
        hinted(
            format!(
                "{} of {} have ended",
                rows.len(),
                poolcast_base::output::counted(sweep.plan.trials, "trial")
            ),
            "`poolcast sweep status DIR` shows their progress"
        )
    );
    Ok(rows)
}
