//! `poolcast provision start`: forecasts when a pending job starts.

use anyhow::Result;
use serde::Serialize;

use super::advise::planned_start_s;
use super::live_sources::{LiveCluster, advice_settings};
use super::shared_flags::cluster_config;
use crate::cmd::text;
use poolcast_base::output;
use poolcast_cli::ProvisionStartArgs;
use poolcast_slurm::live::{ListedJob, StartForecast, forecast_start};

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Reads files or queries Slurm, and prints the forecast. The exit code encodes the answer.
pub(super) fn run(args: &ProvisionStartArgs) -> Result<u8> {
    let config = cluster_config(&args.cluster, None)?;
    let mut cluster = LiveCluster::read(args.trace.as_deref(), &args.queue)?;
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
    cluster.past.missing.extend(unplanned);

    if args.json {
        let printed = PrintedForecast {
            forecast: &forecast,
            missing: &cluster.past.missing,
        };
        output::print_json(SCHEMA_VERSION, &printed)?;
    } else {
        output::print(&text::submission::start(&forecast, &cluster.past.zone))?;
        cluster.past.note_missing();
    }
    Ok(forecast.answer.exit_code())
}

/// The document that `--json` prints.
#[derive(Serialize)]
struct PrintedForecast<'a> {
    #[serde(flatten)]
    forecast: &'a StartForecast,
    /// Missing inputs, in words.
    missing: &'a [String],
}
