//! `poolcast report`: renders a run, a sweep or a DAG as one HTML page or as JSON.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Result;

use super::report_page::{held_jobs, write_page};
use super::results_here::named_or_here;
use super::signals::stop_signal;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::{escape, output};
use poolcast_cli::ReportArgs;
use poolcast_report::{self as report, REPORT_FILE, ReportInputs};

/// Interval between rewrites of a page while trials run, in seconds.
const REWRITE_INTERVAL_S: u32 = 10;

/// Writes the page, or prints the report as JSON.
pub fn run(args: &ReportArgs) -> Result<u8> {
    let dir = named_or_here(args.dir.as_deref())?;
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
