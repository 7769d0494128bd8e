//! `poolcast rehearse`: replays a log as if the program had been used, and counts the results of its
//! answers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::Result;

use super::logs::read_store;
use super::progress::{Progress, Stage};
use super::signals::stop_signal;
use super::text;
use super::whole_sweep::rehearse_with_progress;
use poolcast_base::error::{EXIT_DONE, EXIT_RETRY, hinted};
use poolcast_base::output;
use poolcast_cli::RehearseArgs;
use poolcast_holds::answers::HoldHistory;
use poolcast_holds::rehearsal::{
    KnownOutcome, REHEARSAL_SCHEMA_VERSION, RehearsalDir, RehearsalSettings, RehearsalTally,
    RehearsalTimes, RehearsedHold, SettledAnswers,
};
use poolcast_simulate::{HoldTruth, find_hold, read_truth};
use poolcast_sweep::config::Config;
use poolcast_sweep::find_members;

/// Rehearses the log and prints the counts.
pub fn run(args: &RehearseArgs) -> Result<u8> {
    let config = Config::load(args.config.as_deref(), &BTreeMap::new())?;
    let truth = args.truth.as_deref().map(read_settling_truth).transpose()?;
    let store = read_store(&args.logs, args.year, &config, None)?;
    let history = HoldHistory::new(&store);
    let advice = find_members(&config)?;
    let settings = RehearsalSettings {
        times: times(args),
        advice: &advice,
        seed: config.seed,
    };
    let open = |dir: &Path| RehearsalDir::open(dir, &store, &settings, args.overwrite);
    let kept = args.out.as_deref().map(open).transpose()?;
    let stop = stop_signal()?;
    let is_stopped = || stop.load(Ordering::Relaxed);
    let progress = Progress::new(&[Stage::Answers]);
    let holds = store.summary.hold_count();
    let kept_in = kept.as_ref();
    let rehearse =
        || rehearse_with_progress(&history, holds, &settings, kept_in, &is_stopped, &progress);
    let rehearsal = match progress.show(rehearse) {
        Err(_) if is_stopped() => {
            output::note(stopped_words(args));
            return Ok(EXIT_RETRY);
        }
        rehearsal => rehearsal?,
    };

    let settled = match &truth {
        None => SettledAnswers::by_evidence(&rehearsal.answers, &history),
        Some(truth) => SettledAnswers::by_truth(&rehearsal.answers, &history, |asked| {
            true_outcome(truth, asked)
        }),
    };
    let tally = RehearsalTally::of_rehearsal(&settled, &settings);
    if let Some(kept) = &kept {
        kept.write_results(&settled.rows(&history), &tally)?;
    }
    if args.output.json {
        output::print_json(REHEARSAL_SCHEMA_VERSION, &tally)?;
    } else {
        output::print(&text::rehearsal::page(&tally))?;
    }
    Ok(EXIT_DONE)
}

/// Reads a truth file that says for each moment whether a held job would have succeeded.
fn read_settling_truth(path: &Path) -> Result<Vec<HoldTruth>> {
    let truth = read_truth(path)?;
    if truth.iter().all(|hold| hold.unmended.is_empty()) {
        return Err(hinted(
            format!(
                "`{}` does not say whether a job would have succeeded while it was held",
                path.display()
            ),
            "without `--truth`, the log settles the answers",
        )
        .into());
    }
    Ok(truth)
}

/// The times at which models learn and are asked.
fn times(args: &RehearseArgs) -> RehearsalTimes {
    match args.learn_every {
        None => RehearsalTimes::Models(args.models),
        Some(learn_ms) => RehearsalTimes::Every {
            learn_ms,
            ask_ms: args.ask_every.unwrap_or_else(|| (learn_ms / 3).max(1)),
        },
    }
}

fn stopped_words(args: &RehearseArgs) -> &'static str {
    if args.out.is_some() {
        "stopped; the same command goes on from there"
    } else {
        "stopped; with `-o DIR`, the same command would go on from there"
    }
}

/// Returns what `truth` knows about a hold that was asked about.
fn true_outcome(truth: &[HoldTruth], asked: RehearsedHold) -> Option<KnownOutcome> {
    let job = (asked.cluster, asked.proc);
    let hold = find_hold(truth, job, asked.earlier_holds)?;
    let succeeds_now = hold.p_unmended(asked.asked_ms).map(|p| p >= 0.5);
    Some(KnownOutcome {
        succeeds_now,
        // A fault that somebody has repaired for all is over.
        is_passing: hold
            .permanent
            .map(|is_permanent| !is_permanent || succeeds_now == Some(true)),
        is_perhaps_repaired: false,
    })
}
