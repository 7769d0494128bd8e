//! `poolcast policy`: events, or event logs → which jobs HTCondor is to release by itself, and what
//! that would have come to.

use std::collections::BTreeMap;

use anyhow::Result;

use super::logs::read_store;
use super::text;
use crate::cli::PolicyArgs;
use crate::config::Config;
use crate::error::EXIT_DONE;
use crate::events::EventStore;
use crate::output;
use crate::policy::{StudySettings, past_holds, required_share, study_releases};

/// Learns from the holds, and prints the expression and what it would have come to.
pub fn run(args: &PolicyArgs) -> Result<u8> {
    let config = Config::load(args.config.as_deref(), &BTreeMap::new())?;
    let store = match &args.events {
        Some(events) => EventStore::open(events)?,
        None => read_store(&args.logs, args.year, &config, None)?,
    };

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
    output::print_file(&text::policy::expressions(&study))?;
    output::print(&text::policy::replay(&study))?;
    output::print(&text::policy::codes(&study))?;
    Ok(EXIT_DONE)
}
