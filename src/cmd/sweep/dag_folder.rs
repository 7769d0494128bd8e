//! The steps of `sweep` for the directory of a DAG: shows its status and its best trial, and tidies
//! the directory.

use std::path::Path;

use anyhow::{Context as _, Result};

use super::dag_page::dag_page;
use super::dag_status::{DagStatus, held_nodes};
use super::status_watch;
use super::tracker_lines::{TrackedStatus, add_trackers};
use crate::cmd::choices;
use poolcast_base::error::{EXIT_DONE, too_early};
use poolcast_base::{escape, output};
use poolcast_cli::{SweepCleanupArgs, SweepShowArgs, SweepStatusArgs};
use poolcast_sweep::condor;
use poolcast_sweep::{self as sweep, SweepFolder};
use poolcast_tracking::tracker_states;

/// Version of the JSON document of a DAG's status.
const STATUS_SCHEMA_VERSION: u32 = 1;

/// Shows the status of the DAG of `named`, which a cleanup may have moved into a directory there.
pub(super) fn show_status(args: &SweepStatusArgs, named: &Path) -> Result<u8> {
    if args.show.json {
        let dir = condor::results_directory(named)?;
        let status = TrackedStatus {
            status: DagStatus::read(named, &dir)?,
            trackers: tracker_states(&dir),
        };
        output::print_json(STATUS_SCHEMA_VERSION, &status)?;
        return Ok(EXIT_DONE);
    }
    status_watch::show(args, |columns| {
        // Somebody may tidy the DAG between two reads, which changes the directory.
        let dir = condor::results_directory(named)?;
        let status = DagStatus::read(named, &dir)?;
        let mut page = dag_page(&status, &held_nodes(&dir, &status), columns);
        add_trackers(&mut page, &tracker_states(&dir), columns);
        if dir != named {
            page.text += &format!("everything is in {}\n", escape::path(&dir));
        }
        Ok(page)
    })
}

/// Shows the best trial so far of the DAG whose results are in `dir`.
pub(super) fn show_best(args: &SweepShowArgs, dir: &Path) -> Result<u8> {
    let sweep = condor::open_sweep(dir)?;
    let rows = condor::read_rows(dir, &sweep.config)?;
    if !sweep.config.pipelines.is_empty() {
        choices::print_choices(
            &sweep,
            &mut sweep::TrialOutcomes::from_rows(rows),
            args.json,
        )?;
        return Ok(EXIT_DONE);
    }

    let best = sweep::choose_model(&sweep, &rows).map_err(|error| {
        // Once all trials have ended, the error itself explains why there is no best trial.
        let hint = "`poolcast sweep status DIR` shows its progress";
        let context = || {
            too_early(
                format!("the sweep in `{}` has no best trial", dir.display()),
                hint,
            )
        };
        if rows.len() == sweep.plan.trials {
            error
        } else {
            error.context(context())
        }
    })?;

    if args.json {
        let row = rows.iter().find(|row| row.trial == best.trial);
        let row = row.context("the best trial has no row")?;
        output::print_json(choices::BEST_SCHEMA_VERSION, &choices::WholeRow::new(row))?;
    } else {
        output::print_file(&sweep::best_model_info(dir, dir, &best)?)?;
    }
    Ok(EXIT_DONE)
}

/// Moves the files of a finished DAG into one directory.
pub(super) fn clean_up(args: &SweepCleanupArgs) -> Result<u8> {
    let tidy = condor::plan_cleanup(&args.dir)?;
    if let Some(directory) = &tidy.removes {
        output::print(&format!("{} is removed\n", escape::path(directory)))?;
    }
    if tidy.moves.is_empty() {
        output::print(&format!("everything is in {}\n", escape::path(&tidy.to)))?;
    }
    for (from, to) in &tidy.moves {
        output::print(&format!("{} -> {}\n", escape::path(from), escape::path(to)))?;
    }
    if args.dry_run {
        output::note("nothing was moved");
        return Ok(EXIT_DONE);
    }
    tidy.apply()?;
    if args.keep.is_some() {
        sweep::clean_up(
            &SweepFolder::open(&tidy.to)?,
            args.keep.map(|keep| keep as usize),
        )?;
    }
    Ok(EXIT_DONE)
}
