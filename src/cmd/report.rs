//! `poolcast report`: renders a run, a sweep or a DAG as one HTML page or as JSON.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::learned_report::RUN_REPORT_FILE;
use super::report_page::{held_jobs, write_page};
use super::results_here::named_or_here;
use super::signals::stop_signal;
use super::text::advice::AdviceView;
use super::text::changes::{HeldReport, RunChanges, is_run_report};
use poolcast_base::error::{EXIT_DONE, HintedError, hinted};
use poolcast_base::{escape, manifest, output};
use poolcast_cli::ReportArgs;
use poolcast_events::EventStore;
use poolcast_report::{self as report, REPORT_FILE, ReportInputs};
use poolcast_sweep::events_dir;

/// Version of the JSON document of `--diff`.
const CHANGES_SCHEMA_VERSION: u32 = 1;

/// Maximum number of jobs or things of one kind that `--diff` names.
const MAX_NAMED: usize = 10;

/// Interval between rewrites of a page while trials run, in seconds.
const REWRITE_INTERVAL_S: u32 = 10;

/// Writes the page, or prints the report as JSON.
pub fn run(args: &ReportArgs) -> Result<u8> {
    let dir = named_or_here(args.dir.as_deref())?;
    if let Some(earlier) = &args.diff {
        show_changes(earlier, &dir, args.json)?;
        return Ok(EXIT_DONE);
    }
    if args.json {
        let inputs = ReportInputs::read(&dir, args.anonymous)?;
        let held = held_jobs(&inputs)?;
        let document = report::report(&inputs, held.as_ref())?;
        output::print_json(report::SCHEMA_VERSION, &document)?;
        return Ok(EXIT_DONE);
    }

    let stop = stop_signal()?;
    let mut is_printed = false;
    loop {
        let mut inputs = ReportInputs::read(&dir, args.anonymous)?;
        let continues = args.watch && inputs.is_running() && !stop.load(Ordering::Relaxed);
        inputs.reload_s = continues.then_some(REWRITE_INTERVAL_S);

        let path = match &args.out {
            Some(out) => out.clone(),
            None => inputs.dir.join(REPORT_FILE),
        };
        write_page(&inputs, held_jobs(&inputs)?.as_ref(), &path)?;
        if !is_printed {
            output::print(&format!("{}\n", escape::path(&path)))?;
            is_printed = true;
        }
        if !continues {
            return Ok(EXIT_DONE);
        }
        wait_for(REWRITE_INTERVAL_S, || stop.load(Ordering::Relaxed));
    }
}

/// Prints what has changed between the report in the file `earlier` and the results in `dir`.
fn show_changes(earlier: &Path, dir: &Path, as_json: bool) -> Result<()> {
    let other = || {
        hinted(
            format!("`{}` is not a report on all held jobs", earlier.display()),
            "name the `report.json` of a run, or what `poolcast advise --json` printed without options that choose jobs",
        )
    };
    let before: Value = manifest::read_json(earlier).with_context(other)?;
    let inputs = ReportInputs::read(dir, false)?;
    let after = match is_run_report(&before) {
        true => manifest::read_json(&inputs.dir.join(RUN_REPORT_FILE))
            .with_context(|| no_results(&inputs.dir))?,
        false => advice_document(&inputs)?,
    };
    let before = HeldReport::read(&before).with_context(other)?;
    let after = HeldReport::read(&after).with_context(|| no_results(&inputs.dir))?;
    let store = inputs.if_available(EventStore::open(&events_dir(&inputs.dir)))?;
    let changes = RunChanges::between(&before, &after, store.as_ref());
    match as_json {
        true => output::print_json(CHANGES_SCHEMA_VERSION, &changes),
        false => output::print(&changes.text(MAX_NAMED)),
    }
}

/// The document that `poolcast advise --json` prints for `inputs`.
fn advice_document(inputs: &ReportInputs) -> Result<Value> {
    let held = held_jobs(inputs)?.with_context(|| no_results(&inputs.dir))?;
    let document = AdviceView::new(&held.basis, &held.advice).document();
    Ok(serde_json::to_value(document)?)
}

fn no_results(dir: &Path) -> HintedError {
    hinted(
        format!(
            "`{}` has no results on held jobs of this version",
            dir.display()
        ),
        "`poolcast learn --log FILE -o DIR` makes them",
    )
}

/// Waits for `seconds`, or until `is_stopped` returns true.
fn wait_for(seconds: u32, is_stopped: impl Fn() -> bool) {
    const STEP: Duration = Duration::from_millis(200);
    for _ in 0..5 * seconds {
        if is_stopped() {
            return;
        }
        std::thread::sleep(STEP);
    }
}
