//! `poolcast policy`: events, or event logs → which jobs HTCondor is to release by itself, and what
//! that would have come to.

use std::collections::BTreeMap;

use anyhow::Result;

use super::advice_sources::find_logs_of_run;
use super::logs::read_store;
use super::text;
use crate::cli::PolicyArgs;
use poolcast_config::Config;
use poolcast_base::error::EXIT_DONE;
use poolcast_holds::events::EventStore;
use poolcast_base::output;
use poolcast_base::pager;
use poolcast_holds::policy::{StudySettings, past_holds, required_share, study_releases};

/// The events that `args` mean, and the configuration: where neither events nor logs are named, those
/// of the configuration, or of the run of this directory.
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
        let (of_run, logs) = find_logs_of_run()?;
        let is_given = args.config.is_some();
        (if is_given { config } else { of_run }, logs)
    };
    let store = read_store(&logs, args.year, &config, None)?;
    Ok((config, store))
}

/// Learns from the holds, and prints the expression and what it would have come to.
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
    // What is pasted into a file must not be folded at the width of a terminal.
    let mut shown = output::shown_file(&text::policy::expressions(&study)).into_owned();
    shown.push_str(&output::shown_text(&text::policy::replay(&study)));
    shown.push_str(&output::shown_text(&text::policy::codes(&study)));
    pager::show(&shown)?;
    Ok(EXIT_DONE)
}
