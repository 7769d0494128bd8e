//! `poolcast policy`: learns from events or event logs which held jobs HTCondor should release
//! automatically, and replays that policy.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};

use super::advice_sources::find_run_logs;
use super::history_log::{HISTORY_LOG, write_history_log};
use super::logs::read_store_with_owners;
use super::results_here::find_results_here;
use super::run_answers::RunAnswers;
use super::text;
use poolcast_advice::policy::{
    AdviceContradiction, OwnerNames, ReleaseStudy, StudySettings, contradictions, past_holds,
    required_share, study_releases,
};
use poolcast_advice::{ModelObjection, advise};
use poolcast_base::error::EXIT_DONE;
use poolcast_base::output;
use poolcast_base::pager;
use poolcast_cli::PolicyArgs;
use poolcast_events::EventStore;
use poolcast_sweep::config::Config;

/// Reads the configuration and the events that `args` name. If they name neither events nor logs nor a
/// history, the logs come from the configuration, or from the run in this directory. Only logs name
/// owners.
fn read_sources(args: &PolicyArgs) -> Result<(Config, EventStore, OwnerNames)> {
    let config = Config::load(args.config.as_deref(), &BTreeMap::new())?;
    if let Some(events) = &args.events {
        return Ok((config, EventStore::open(events)?, OwnerNames::default()));
    }
    if !args.history.is_empty() {
        // The log has names, so it is removed again.
        let dir = tempfile::tempdir()?;
        let log = dir.path().join(HISTORY_LOG);
        write_history_log(&args.history, &log)?;
        let (store, owners) = read_store_with_owners(&[log], None, &config)?;
        return Ok((config, store, owners));
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
    let (store, owners) = read_store_with_owners(&logs, args.year, &config)?;
    Ok((config, store, owners))
}

/// The reason why nothing may be learned from the holds in `store`; `None` if they are complete.
fn refusal(store: &EventStore) -> Option<String> {
    let summary = &store.summary;
    let missing = summary.missing_holds().filter(|_| summary.lacks_holds())?;
    Some(format!(
        "the history shows {}, and lacks {} that were followed by another hold, so shares of successful releases would mislead; \
         `condor_history -epochs` shows such holds where HTCondor keeps the ads of runs",
        output::counted(summary.hold_count() as usize, "hold"),
        output::counted(missing as usize, "earlier hold")
    ))
}

/// Compares `study` with the answers that `advise` gives in this directory on the same log; `None`
/// if there is no run here, or if what it learned cannot answer.
fn compare_with_advice(
    store: &EventStore,
    study: &ReleaseStudy,
    owners: &OwnerNames,
) -> Option<Vec<AdviceContradiction>> {
    let results = find_results_here()?;
    let answers = || {
        let run = poolcast_sweep::resolve_run(&results)?;
        let config = Config::read(&run)?;
        let learned = RunAnswers::open(&results)?;
        let model = learned.model().context("the run has learned no answers")?;
        match model.objection(store) {
            Some(ModelObjection::Caveat(words)) => bail!(words),
            Some(ModelObjection::LearnedLater) => bail!("the run has learned from later events"),
            None => advise(store, Some(model), &config.advice, None),
        }
    };
    match answers() {
        Ok(answers) => Some(contradictions(study, &answers, owners)),
        Err(error) => {
            output::note(&format!(
                "note: the policy is not compared with `poolcast advise`: {error:#}"
            ));
            None
        }
    }
}

/// Learns from the holds; prints the expression and the results of its replay.
pub fn run(args: &PolicyArgs) -> Result<u8> {
    let (config, store, owners) = read_sources(args)?;
    let refusal = refusal(&store);

    let settings = StudySettings {
        required_share: required_share(&config.advice),
        resamples: config.evaluation.resamples,
        seed: config.seed,
    };
    let holds = match refusal {
        Some(_) => Vec::new(),
        None => past_holds(&store, &owners),
    };
    let study = study_releases(&holds, settings);
    let contradicted = compare_with_advice(&store, &study, &owners);

    if args.json {
        output::print_json(
            text::policy::SCHEMA_VERSION,
            &text::policy::document(&store, &study, contradicted.as_deref(), refusal.as_deref()),
        )?;
        return Ok(EXIT_DONE);
    }
    if let Some(refusal) = refusal {
        output::print(&text::policy::refused(&refusal))?;
        return Ok(EXIT_DONE);
    }
    // The expressions must not be wrapped at the terminal width, because users paste them into
    // files.
    let mut shown = output::shown_file(&text::policy::expressions(&study)).into_owned();
    shown.push_str(&output::shown_text(&text::policy::contradicted(
        contradicted.as_deref().unwrap_or_default(),
    )));
    shown.push_str(&output::shown_text(&text::policy::replay(&study)));
    shown.push_str(&output::shown_text(&text::policy::codes(&study)));
    shown.push_str(&output::shown_text(&text::policy::source(&store)));
    pager::show(&shown)?;
    Ok(EXIT_DONE)
}
