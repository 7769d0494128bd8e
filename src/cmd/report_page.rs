//! Advice on the held jobs of a finished sweep, and the page that contains it.

use std::path::Path;

use anyhow::Result;

use super::default_schedd::name_other_schedds;
use super::logs;
use super::run_answers::RunAnswers;
use poolcast_advice::{AdviceBasis, advise};
use poolcast_base::{files, output};
use poolcast_events::EventStore;
use poolcast_report::{self as report, HeldJobs, REPORT_FILE, ReportInputs};
use poolcast_sweep::{SweepFolder, TrialRow, events_dir};

/// The advice on the jobs held at the end of the log; `None` if there is no model yet, or if the
/// events of the log are missing or of another version.
pub(super) fn held_jobs(inputs: &ReportInputs) -> Result<Option<HeldJobs>> {
    let learned = RunAnswers::open(&inputs.dir)?;
    let model = learned.model();
    if model.is_none() && inputs.best_run().is_none() {
        return Ok(None);
    }
    let events = EventStore::open(&events_dir(&inputs.dir));
    let Some(store) = inputs.if_available(events)? else {
        return Ok(None);
    };
    let mut advice = advise(&store, model, &inputs.config.advice, None)?;
    if !inputs.is_anonymous {
        logs::add_words(&inputs.config, &inputs.dir, &mut advice).unwrap_or_else(|error| {
            output::note(&format!(
                "note: causes are named by their codes, because the log cannot be read: {error:#}"
            ));
        });
    }
    name_other_schedds(&mut advice);
    let basis = AdviceBasis::new(&store, model);
    Ok(Some(HeldJobs { basis, advice }))
}

/// Writes the page on `inputs` to `path`.
pub(super) fn write_page(
    inputs: &ReportInputs,
    held: Option<&HeldJobs>,
    path: &Path,
) -> Result<()> {
    let report = report::report(inputs, held)?;
    files::write_atomic(path, report::page(&report).as_bytes())
}

/// Writes the page of a DAG's job into `out`, beside its results. A failure only causes a note,
/// because the job must not fail for it.
pub(super) fn write_job_page(sweep: &SweepFolder, rows: &[TrialRow], out: &Path) {
    let left = ReportInputs::of_job(sweep, rows, out)
        .and_then(|inputs| write_page(&inputs, None, &out.join(REPORT_FILE)));
    if let Err(error) = left {
        output::note(&format!("note: cannot write {REPORT_FILE}: {error:#}"));
    }
}
