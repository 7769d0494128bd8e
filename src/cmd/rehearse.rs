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
    AnswerRow, HoldTruth, RehearsalSettings, RehearsalTally, RehearsedHold, SettledAnswers,
};
use poolcast_simulate::{find_hold, read_truth};
use poolcast_sweep::config::Config;

/// Rehearses the log and prints the counts.
pub fn run(args: &RehearseArgs) -> Result<u8> {
    let config = Config::load(args.config.as_deref(), &BTreeMap::new())?;
    let store = read_store(&args.logs, args.year, &config, None)?;
    let history = HoldHistory::new(&store);
    let settings = RehearsalSettings {
        models: args.models,
        advice: &config.advice,
        seed: config.seed,
    };
    let stop = stop_signal()?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    let rehearsal = rehearse_with_progress(&history, &settings, &is_stopped)?;
    let settled = match &args.truth {
        None => SettledAnswers::by_evidence(&rehearsal, &history),
        Some(file) => {
            let truth = read_truth(file)?;
            SettledAnswers::by_truth(&rehearsal, &history, |asked| true_outcome(&truth, asked))
        }
    };
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

/// Returns what `truth` knows about a hold that was asked about.
fn true_outcome(truth: &[poolcast_simulate::HoldTruth], asked: RehearsedHold) -> Option<HoldTruth> {
    let job = (asked.cluster, asked.proc);
    let hold = find_hold(truth, job, asked.earlier_holds)?;
    let succeeds_now = hold.p_unmended(asked.asked_ms).map(|p| p >= 0.5);
    Some(HoldTruth {
        succeeds_now,
        // A fault that somebody has repaired for all is over.
        is_passing: hold
            .permanent
            .map(|is_permanent| !is_permanent || succeeds_now == Some(true)),
    })
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
