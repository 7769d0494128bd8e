//! The advice on the held jobs of a finished sweep, and the page with it.

use std::path::Path;

use anyhow::Result;

use super::{logs, trained_run};
use poolcast_holds::advice::{self, AdviceBasis};
use poolcast_holds::events::EventStore;
use poolcast_report::{self as report, HeldJobs, REPORT_FILE, ReportInputs};
use poolcast_sweep::{SweepFolder, TrialRow, events_dir};
use poolcast_holds::training::RunModels;
use poolcast_base::{files, output};

/// The advice on the jobs that are held when the log ends; `None` where there is no model yet, and
/// where the events of the log are not there.
pub(super) fn held_jobs(inputs: &ReportInputs) -> Result<Option<HeldJobs>> {
    let events = events_dir(&inputs.dir);
    let (Some(run), true) = (inputs.best_run(), events.is_dir()) else {
        return Ok(None);
    };
    // Of a DAG whose models were not fetched there is nothing to ask.
    let Ok(models) = RunModels::open(run) else {
        return Ok(None);
    };

    let store = EventStore::open(&events)?;
    let model = models.at_moment(store.summary.end_ms);
    let mut advice = advice::advise(&store, model, &inputs.config.advice, None, None)?;
    if !inputs.is_anonymous {
        match logs::read_words(&inputs.config) {
            Ok(words) => words.add_to(&mut advice),
            Err(error) => output::note(&format!(
                "note: causes are named by their codes, as the log cannot be read: {error:#}"
            )),
        }
    }
    let origin = trained_run::model_origin(run, &inputs.dir);
    let basis = AdviceBasis::new(&store, model, origin, None);
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

/// Leaves the page of a DAG's job in `out`, beside its results. A page that cannot be made is no reason for
/// the job to fail.
pub(super) fn leave_page_of_job(sweep: &SweepFolder, rows: &[TrialRow], out: &Path) {
    let left = ReportInputs::of_job(sweep, rows, out)
        .and_then(|inputs| write_page(&inputs, None, &out.join(REPORT_FILE)));
    if let Err(error) = left {
        output::note(&format!("note: there is no {REPORT_FILE}: {error:#}"));
    }
}
