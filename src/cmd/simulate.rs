//! `poolcast simulate`: a seed → a global event log of a pool whose truth is known.

use anyhow::{Context as _, Result};

use crate::cli::SimulateArgs;
use crate::error::EXIT_DONE;
use crate::simulate::{self, SimulationSettings, SimulationSummary};
use crate::{advice, escape, output};

/// Simulates, and prints what the log holds.
pub fn run(args: &SimulateArgs) -> Result<u8> {
    let start = args
        .start
        .to_zoned(jiff::tz::TimeZone::UTC)
        .context("the first day has no begin")?;
    let settings = SimulationSettings {
        seed: args.seed,
        jobs: args.jobs,
        days: args
            .days
            .unwrap_or_else(|| SimulationSettings::usual_days(args.jobs)),
        start_ms: start.timestamp().as_millisecond(),
        rotate_bytes: args.rotate_bytes,
    };
    let before = if args.overwrite {
        None
    } else {
        simulate::finished_summary(&settings, &args.out, &args.truth)
    };
    let summary = match before {
        Some(summary) => {
            output::note(&format!(
                "nothing new: `{}` holds this simulation already",
                args.out.display()
            ));
            summary
        }
        None => simulate_log(args, &settings)?,
    };
    if args.json {
        output::print_json(&summary)?;
    } else {
        output::print(&summary_text(args, &settings, &summary))?;
    }
    Ok(EXIT_DONE)
}

/// Simulates, with a progress bar.
fn simulate_log(args: &SimulateArgs, settings: &SimulationSettings) -> Result<SimulationSummary> {
    let bar = output::item_bar(args.jobs, "simulate");
    let summary = simulate::simulate(settings, &args.out, &args.truth, args.overwrite, |jobs| {
        bar.inc(jobs)
    });
    bar.finish_and_clear();
    summary
}

fn summary_text(
    args: &SimulateArgs,
    settings: &SimulationSettings,
    summary: &SimulationSummary,
) -> String {
    let count = output::with_commas;
    let many = |n: u64, what| output::counted(n as usize, what);
    let share = |part: u64, whole: u64| match whole {
        0 => "-".to_owned(),
        _ => format!("{:.1} %", 100.0 * part as f64 / whole as f64),
    };
    let log = escape::path(&args.out);
    let mut text = format!(
        "{log}: {} of {} in {}, {} in {}\n",
        many(summary.records, "record"),
        many(summary.jobs, "job"),
        many(settings.days.into(), "day"),
        many(summary.bytes, "byte"),
        many(summary.rotated as u64 + 1, "file")
    );
    let mut rows = vec![
        vec![
            "  jobs held".to_owned(),
            share(summary.held_jobs, summary.jobs),
        ],
        vec![
            "  holds a held job".to_owned(),
            format!(
                "{:.1}",
                summary.holds as f64 / summary.held_jobs.max(1) as f64
            ),
        ],
        vec![
            "  jobs removed".to_owned(),
            share(summary.removed_jobs, summary.jobs),
        ],
    ];
    let scores = [
        ("  ROC-AUC of the truth", summary.best_roc_auc),
        ("  ROC-AUC of rates by code", summary.by_code_roc_auc),
    ];
    for (name, score) in scores {
        rows.push(vec![
            name.to_owned(),
            score.map_or("-".to_owned(), |score| format!("{score:.3}")),
        ]);
    }
    text.push_str(&output::aligned_table(&rows));
    let mut rows = vec![
        ["  holds by code", "holds", "released", "then succeeded"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for kind in &summary.by_code {
        let (code, subcode) = (kind.hold_code, kind.hold_subcode);
        rows.push(vec![
            format!("  {code}/{subcode} {}", advice::code_meaning(code, subcode)),
            count(kind.holds),
            share(kind.released, kind.holds),
            share(kind.succeeded, kind.known),
        ]);
    }
    text + &output::aligned_table(&rows)
}
