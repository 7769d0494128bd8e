//! `poolcast policy`: learns from events or event logs which held jobs HTCondor should release
//! automatically, and replays that policy.

use std::collections::BTreeMap;

use anyhow::Result;

use super::advice_sources::find_run_logs;
use super::logs::read_store;
use super::text;
use crate::cli::PolicyArgs;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::output;
use poolcast_base::pager;
use poolcast_holds::events::EventStore;
use poolcast_holds::policy::{StudySettings, past_holds, required_share, study_releases};
use poolcast_sweep::config::Config;

/// Reads the configuration and the events that `args` name. If they name neither events nor logs,
/// the logs come from the configuration, or from the run in this directory.
fn read_sources(args: &PolicyArgs) -> Result<(Config, EventStore)> {
    let config = Config::load(args.config.as_deref(), &BTreeMap::new())?;
    if let Some(events) = &args.events {
        return Ok((config, EventStore::open(events)?));
    }

    let (config, logs) = if !args.logs.is_empty() {
        (config, args.logs.clone())
    } else if !config.logs.is_empty() {
        let logs = config.logs.clone();
        (config, logs)
    } else {
        let (from_run, logs) = find_run_logs()?;
        let is_given = args.config.is_some();
        (if is_given { config } else { from_run }, logs)
    };
    let store = read_store(&logs, args.year, &config, None)?;
    Ok((config, store))
}

/// Learns from the holds; prints the expression and the results of its replay.
pub fn run(args: &PolicyArgs) -> Result<u8> {
    let (config, store) = read_sources(args)?;

    let settings = StudySettings {
        required_share: required_share(&config.advice),
        resamples: config.evaluation.resamples,
        seed: config.seed,
    };
    let study = study_releases(&past_holds(&store), settings);

    if args.json {
        output::print_json(
            text::policy::SCHEMA_VERSION,
            &text::policy::document(&store, &study),
        )?;
        return Ok(EXIT_DONE);
    }
    // The expressions must not be wrapped at the terminal width, because users paste them into
    // files.
    let mut shown = output::shown_file(&text::policy::expressions(&study)).into_owned();
    shown.push_str(&output::shown_text(&text::policy::replay(&study)));
    shown.push_str(&output::shown_text(&text::policy::codes(&study)));
    pager::show(&shown)?;
    Ok(EXIT_DONE)
}
