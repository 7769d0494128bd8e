//! `poolcast provision start`: forecasts when a pending job starts.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::advise::planned_start_s;
use super::live_sources::{LiveCluster, LivePast, advice_settings};
use super::shared_flags::cluster_config;
use crate::cmd::text;
use poolcast_base::{output, user_directories};
use poolcast_cli::ProvisionStartArgs;
use poolcast_slurm::live::{ListedJob, StartForecast, StartJournal, StartRecord, forecast_start};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Reads files or queries Slurm, and prints the forecast. The exit code encodes the answer.
pub(super) fn run(args: &ProvisionStartArgs) -> Result<u8> {
    let config = cluster_config(&args.cluster, None)?;
    // A queue in a file may be of any time and cluster.
    let dir = user_directories::state_directory().filter(|_| args.queue.queue.is_none());
    let read = dir.as_deref().map(StartJournal::read);
    let journal = read.unwrap_or_else(|| Ok(StartJournal::default()));
    let no_journal = StartJournal::default();
    let known = journal.as_ref().unwrap_or(&no_journal);
    let mut cluster = LiveCluster::read(args.trace.as_deref(), &args.queue, known)?;

    // Nothing is decided, so there is no interval of decisions.
    let settings = advice_settings(&config, &cluster.past.zone, 0)?;
    let view = cluster.view(&config.provision);
    let job = cluster.job(&args.job)?;
    let mut unplanned = Vec::new();
    let plan = |job: &ListedJob, shares_nodes| match args.queue.queue {
        Some(_) => None,
        None => planned_start_s(job, shares_nodes, &mut unplanned),
    };
    let forecast = forecast_start(&view, job, &settings, &args.shape, plan)?;
    let submit_s = job.submit_s;
    cluster.past.missing.extend(unplanned);

    let kept = dir.map(|dir| keep_in_journal(&dir, journal, &forecast, submit_s, &cluster.past));
    let record = kept.transpose().unwrap_or_else(|error| {
        let missing = format!("the journal of forecasts ({error:#})");
        cluster.past.missing.push(missing);
        None
    });

    if args.json {
        let printed = PrintedForecast {
            forecast: &forecast,
            earlier: record.as_ref(),
            missing: &cluster.past.missing,
        };
        output::print_json(SCHEMA_VERSION, &printed)?;
    } else {
        output::print(&text::start::forecast(
            &forecast,
            record.as_ref(),
            &cluster.past.zone,
        ))?;
        cluster.past.note_missing();
    }
    Ok(forecast.answer.exit_code())
}

/// Adds `forecast` to the journal in `dir`; returns what became of the earlier ones.
fn keep_in_journal(
    dir: &Path,
    journal: Result<StartJournal>,
    forecast: &StartForecast,
    submit_s: i64,
    past: &LivePast,
) -> Result<StartRecord> {
    let earlier = journal?;
    StartJournal::add(dir, forecast, submit_s)?;
    Ok(earlier.record(&past.jobs, Some(forecast.now_s)))
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct PrintedForecast<'a> {
    #[serde(flatten)]
    forecast: &'a StartForecast,
    /// What became of the user's earlier forecasts; `None` for a queue in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier: Option<&'a StartRecord>,
    /// Missing inputs, in words.
    missing: &'a [String],
}
