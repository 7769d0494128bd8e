//! `poolcast simulate`: writes the global event log of a simulated pool, whose true probabilities
//! are known.

use anyhow::{Context as _, Result};

use poolcast_base::error::EXIT_DONE;
use poolcast_base::{escape, output};
use poolcast_cli::SimulateArgs;
use poolcast_holds::decision;
use poolcast_simulate::{self as simulate, SimulationSettings, SimulationSummary};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Simulates the log, unless it already exists, and prints its contents.
pub fn run(args: &SimulateArgs) -> Result<u8> {
    let start = args
        .start
        .to_zoned(jiff::tz::TimeZone::UTC)
        .context("cannot convert the first day to UTC")?;
    let settings = SimulationSettings {
        seed: args.seed,
        jobs: args.jobs,
        days: args
            .days
            .unwrap_or_else(|| SimulationSettings::usual_days(args.jobs)),
        start_ms: start.timestamp().as_millisecond(),
        rotate_bytes: args.rotate_bytes,
    };

    let earlier = if args.overwrite {
        None
    } else {
        simulate::finished_summary(&settings, &args.out, &args.truth)
    };
    let summary = match earlier {
        Some(summary) => {
            output::note_nothing_new(&args.out, "this simulation");
            summary
        }
        None => simulate_log(args, &settings)?,
    };

    if args.output.json {
        output::print_json(SCHEMA_VERSION, &summary)?;
        return Ok(EXIT_DONE);
    }
    output::print(&log_line(args, &settings, &summary))?;
    output::print(&outcome_table(&summary))?;
    output::print(&code_table(&summary))?;
    Ok(EXIT_DONE)
}

/// Runs the simulation with a progress bar.
fn simulate_log(args: &SimulateArgs, settings: &SimulationSettings) -> Result<SimulationSummary> {
    let bar = output::item_bar(args.jobs, "simulate");
    let summary = simulate::simulate(settings, &args.out, &args.truth, args.overwrite, |jobs| {
        bar.inc(jobs)
    });
    bar.finish_and_clear();
    summary
}

/// The size of the log, on one line.
fn log_line(
    args: &SimulateArgs,
    settings: &SimulationSettings,
    summary: &SimulationSummary,
) -> String {
    format!(
        "{}: {} of {} in {}, {} in {}\n",
        escape::path(&args.out),
        output::counted(summary.records as usize, "record"),
        output::counted(summary.jobs as usize, "job"),
        output::counted(settings.days as usize, "day"),
        output::counted(summary.bytes as usize, "byte"),
        output::counted(summary.rotated + 1, "file")
    )
}

/// A table of the outcomes of the jobs, with the best possible scores on their holds.
fn outcome_table(summary: &SimulationSummary) -> String {
    let holds_per_job = summary.holds as f64 / summary.held_jobs.max(1) as f64;
    let rows = [
        ("  jobs held", percent(summary.held_jobs, summary.jobs)),
        ("  holds per held job", format!("{holds_per_job:.1}")),
        (
            "  jobs removed",
            percent(summary.removed_jobs, summary.jobs),
        ),
        (
            "  ROC-AUC of the truth at the hold",
            score_cell(summary.best_roc_auc),
        ),
        ("  at the release", score_cell(summary.best_release_roc_auc)),
        (
            "  ROC-AUC of rates by code",
            score_cell(summary.by_code_roc_auc),
        ),
    ];
    output::aligned_table(&rows.map(|(name, cell)| vec![name.to_owned(), cell]))
}

/// A table of the outcomes of the holds of each code.
fn code_table(summary: &SimulationSummary) -> String {
    let head = ["  holds by code", "holds", "released", "then succeeded"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for count in &summary.by_code {
        let code = count.hold_code;
        let subcode = count.hold_subcode;
        rows.push(vec![
            format!(
                "  {code}/{subcode} {}",
                decision::code_meaning(code, subcode)
            ),
            output::with_commas(count.holds),
            percent(count.released, count.holds),
            percent(count.succeeded, count.known),
        ]);
    }
    output::aligned_table(&rows)
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.1} %", 100.0 * part as f64 / whole as f64)
}

fn score_cell(score: Option<f64>) -> String {
    score.map_or("-".to_owned(), |score| format!("{score:.3}"))
}
