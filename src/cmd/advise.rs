//! `poolcast advise`: a model and a log → what to do with each held job.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use super::parse;
use crate::advice::{self, Advice, Selection, Skill};
use crate::cli::AdviseArgs;
use crate::config::Config;
use crate::events::{EventStore, EventStoreBuilder};
use crate::salt::OwnerSalt;
use crate::tensors::SplitSide;
use crate::training::{Evaluation, Run};
use crate::{condor, manifest, output, sweep};

/// The version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Advice as one JSON document.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    schema_version: u32,
    /// The digest of what the model was made from.
    model: &'a str,
    /// The last training hold, epoch ms.
    trained_until_ms: i64,
    /// The end of the log: what the advice knows.
    log_end_ms: i64,
    pub(super) advice: &'a [Advice],
}

/// Reads the logs, judges the held jobs, prints the advice; the exit code says what it is.
pub fn run(args: &AdviseArgs) -> Result<u8> {
    let selections: Vec<Selection> = args
        .jobs
        .iter()
        .map(|job| job.parse())
        .collect::<Result<_>>()?;
    let dir = sweep::resolve_run(&condor::results(&args.run)?)?;
    let run = Run::open(&dir)?;
    let config = Config::read(&dir)?;
    let logs = parse::logs(&args.logs)?;
    let options = parse::options(
        config.parse.ap.clone(),
        args.year.or(config.parse.year),
        &logs,
    )?;
    // Nothing is kept, and no advice depends on what owners are hashed with.
    let mut builder = EventStoreBuilder::new(OwnerSalt::random()?.text(), "", None);
    parse::read(&logs, &options, &mut builder)?;
    let store = builder.into_store()?;
    let advice = judge(&store, &run, &dir, &config, &selections)?;
    if args.json {
        output::print_json(&document(&store, &run, &advice))?
    } else {
        output::print(&text(&advice))?
    }
    Ok(advice::exit_code(&advice))
}

/// Judges held jobs with the model of the run in `dir` and what its evaluation showed.
pub(super) fn judge(
    store: &EventStore,
    run: &Run,
    dir: &Path,
    config: &Config,
    selections: &[Selection],
) -> Result<Vec<Advice>> {
    advice::advise(store, run, skill(dir), &config.advice, selections)
}

fn skill(dir: &Path) -> Option<Skill> {
    let evaluation: Evaluation =
        manifest::read_json(&Evaluation::path(dir, SplitSide::Test)).ok()?;
    let score = evaluation
        .methods
        .first()?
        .scores
        .iter()
        .find(|score| score.name == "roc_auc")?;
    Some(Skill {
        roc_auc: score.value?,
        interval: score.interval?,
    })
}

pub(super) fn document<'a>(store: &EventStore, run: &'a Run, advice: &'a [Advice]) -> Document<'a> {
    Document {
        schema_version: SCHEMA_VERSION,
        model: &run.key,
        trained_until_ms: run.summary.rates.to_ms,
        log_end_ms: store.summary.end_ms,
        advice,
    }
}

/// The advice for people.
pub(super) fn text(advice: &[Advice]) -> String {
    if advice.is_empty() {
        return "no job is held when the log ends\n".to_owned();
    }
    advice
        .iter()
        .map(advice::text)
        .collect::<Vec<String>>()
        .join("\n")
}
