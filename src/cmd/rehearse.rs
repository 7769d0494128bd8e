//! `poolcast rehearse`: replays a log as if the program had been used, and counts what came of its
//! answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;

use super::logs::read_store;
use super::signals::stop_signal;
use super::text;
use super::whole_sweep::rehearse_with_progress;
use crate::cli::RehearseArgs;
use poolcast_base::error::EXIT_DONE;
use poolcast_base::output::{self, JsonDocument};
use poolcast_base::{files, manifest};
use poolcast_holds::answers::HoldHistory;
use poolcast_holds::rehearsal::{
    AnswerRow, RehearsalSettings, RehearsalTally, SettledAnswers,
};
use poolcast_sweep::config::Config;

/// Rehearses the log and prints the counts.
pub fn run(args: &RehearseArgs) -> Result<u8> {
    let config = Config::load(args.config.as_deref(), &BTreeMap::new())?;
    let store = read_store(&args.logs, args.year, &config, None)?;
    let history = HoldHistory::new(&store);
    let settings = RehearsalSettings {
        moments: args.moments,
        advice: &config.advice,
        seed: config.seed,
    };
    let stop = stop_signal()?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    let rehearsal = rehearse_with_progress(&history, &settings, &is_stopped)?;
    let settled = SettledAnswers::by_evidence(&rehearsal, &history);
    let tally = RehearsalTally::new(&settled);
    if let Some(out) = &args.out {
        write_results(out, &settled.rows(&history), &tally)?;
    }
    if args.output.json {
        output::print_json(text::rehearsal::SCHEMA_VERSION, &tally)?;
    } else {
        output::print(&text::rehearsal::page(&tally))?;
    }
    Ok(EXIT_DONE)
}

/// Writes the answers and the counts to `out`.
fn write_results(out: &Path, rows: &[AnswerRow], tally: &RehearsalTally) -> Result<()> {
    fs_err::create_dir_all(out)?;
    let mut lines = Vec::new();
    for row in rows {
        serde_json::to_writer(&mut lines, row)?;
        lines.push(b'\n');
    }
    files::write_atomic(&out.join("answers.jsonl"), &lines)?;
    let document = JsonDocument {
        schema_version: text::rehearsal::SCHEMA_VERSION,
        body: tally,
    };
    manifest::write_json(&out.join("rehearsal.json"), &document)
}
