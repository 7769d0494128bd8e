//! `poolcast run`: the whole line on this machine, from the logs that a configuration names to advice.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::{advise, choices, evaluate, flag, flags, parse, tensors};
use crate::cli::RunArgs;
use crate::config::Config;
use crate::error::{EXIT_DONE, EXIT_RETRY, hinted};
use crate::events::{EventStore, EventStoreBuilder};
use crate::files::{LockedDirectory, StagedDirectory};
use crate::sweep::{
    self, BestNetwork, SplitChoice, SweepFolder, SweepTrials, TrialOutcomes, TrialRow,
};
use crate::tables::{self as table, JoinedTable};
use crate::tensors::{Dataset, SplitSide, TENSORS_FORMAT, TensorSettings};
use crate::training::{Evaluation, Run};
use crate::{escape, eventlog, events, files, manifest, output};

/// Where the store of a sweep is.
pub(super) const EVENTS: &str = "events";

/// Tensors of a sweep that take less than this are made without a word.
const BYTES_TO_TELL: u64 = 1_000_000_000;

#[derive(Serialize)]
struct Report<'a> {
    events: &'a events::StoreSummary,
    best: &'a BestNetwork,
    evaluation: &'a Evaluation,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    selection: &'a [SplitChoice],
    advice: advise::Document<'a>,
}

/// Goes through every stage; what an earlier run finished is kept unless it was made from something else.
pub fn run(args: &RunArgs, threads: usize) -> Result<u8> {
    let config = Config::load(Some(&args.config), &flags([("out", flag(&args.out))]))?;
    let networks = sweep::network_trial_count(&config)
        .with_context(|| format!("cannot use `{}`", args.config.display()))?;
    ensure!(
        !config.data.is_given() && networks > 0,
        hinted(
            format!(
                "`{}` tries no network, and advice needs one",
                args.config.display()
            ),
            "use `poolcast sweep init` and `poolcast sweep run`"
        )
    );
    let sweep = begin(&config, &args.config, args.overwrite)?;
    if args.overwrite {
        files::remove_all(["trials", "tensors"].map(|name| config.out.join(name)))?;
    }
    if !super::sweep::to_end(&sweep, threads, Duration::MAX, sweep::DEFAULT_KEEP)? {
        return Ok(EXIT_RETRY);
    }
    let (out, rows) = (&config.out, sweep::trial_rows(&sweep)?);
    let best = sweep::choose_network(&sweep, &rows)?;
    let choices = if config.pipelines.is_empty() {
        Vec::new()
    } else {
        choices::of(&sweep, &mut TrialOutcomes::read(&sweep)?)?
    };
    let winner = rows
        .iter()
        .find(|row| row.trial == best.trial)
        .context("the best trial has a row")?;
    let store = EventStore::open(&out.join(EVENTS))?;
    let dir = sweep::trial_dir(out, best.trial);
    let dataset = Dataset::open(&sweep::tensors_dir(out, &winner.config)?)?;
    let run = Run::open(&dir)?;
    let evaluation = evaluate::score(
        &run,
        &dir,
        &dataset,
        SplitSide::Test,
        config.evaluation.resamples,
        None,
    )?;
    sweep::write_best_network(out, &best)?;
    let advice = advise::judge(&store, &run, &dir, &config, &[])?;
    let report = Report {
        events: &store.summary,
        best: &best,
        evaluation: &evaluation,
        selection: &choices,
        advice: advise::document(&store, &run, &advice),
    };
    manifest::write_json(&out.join("report.json"), &report)?;
    if args.json {
        output::print_json(&report)?;
    } else {
        output::print(&summary(
            &store,
            &dataset,
            &best,
            &rows,
            &choices,
            &evaluation,
            out,
        ))?;
        output::print(&format!(
            "\nAdvice on the {} still held when the log ends\n\n",
            output::counted(advice.len(), "job")
        ))?;
        output::print(&advise::text(&advice))?;
    }
    Ok(EXIT_DONE)
}

/// Parses the logs that `config`, read from `file`, names, or joins its tables, and begins its sweep in its directory, or
/// finds it there.
pub(super) fn begin(config: &Config, file: &Path, overwrite: bool) -> Result<SweepFolder> {
    check(config, file)?;
    sweep::check_sweep_place(&config.out)?;
    let _lock = LockedDirectory::new(&config.out)?;
    let source_key = if config.data.is_given() {
        tables(config)?
    } else {
        events(config, overwrite)?
    };
    let sweep = SweepFolder::init(&config.out, config, &source_key, overwrite)?;
    if sweep.is_finished() {
        output::note("trials: done before");
    }
    Ok(sweep)
}

/// Makes the tensors of `trials` of `sweep` from the store in `events`; trials of equal sizes share them. A trial that
/// cannot be is found out by the worker that takes it, and fails alone.
pub(super) fn make_tensors(sweep: &SweepFolder, events: &Path, trials: &[Config]) -> Result<()> {
    if sweep.config.data.is_given() {
        return Ok(());
    }
    let mut wanted = BTreeMap::new();
    for trial in trials {
        if let Ok(settings) = TensorSettings::from_config(trial) {
            wanted.insert(sweep::tensors_dir(&sweep.dir, trial)?, settings);
        }
    }
    let events_key = &sweep.plan.source_key;
    let store = EventStore::open(events)?;
    for (dir, settings) in wanted {
        if manifest::finished_key(&dir, TENSORS_FORMAT) != Some(settings.key(events_key)?) {
            tensors::build(&store, &settings, events_key, &dir, true, BYTES_TO_TELL)?;
        }
    }
    Ok(())
}

/// Joins the tables; returns their digest.
pub(super) fn tables(config: &Config) -> Result<String> {
    let (dir, key) = (
        sweep::table_dir(&config.out),
        table::joined_table_key(&config.data)?,
    );
    if manifest::finished_key(&dir, table::TABLE).as_ref() == Some(&key) {
        output::note("tables: joined before");
        return Ok(key);
    }
    JoinedTable::read(&config.data)?.write(&dir, &key)?;
    Ok(key)
}

/// Parses the logs; returns the digest of the store.
pub(super) fn events(config: &Config, overwrite: bool) -> Result<String> {
    let logs = parse::logs(&config.logs)?;
    let options = parse::options(config.parse.ap.clone(), config.parse.year, &logs)?;
    let dir = config.out.join(EVENTS);
    // What is looked at of a pipe is gone: it is read first and compared then.
    if !overwrite && !logs.iter().any(|log| eventlog::is_read_once(log)) {
        let key = parse::key(&parse::sources(&logs)?, &options)?;
        if parse::finished(&dir, &key)?.is_some() {
            output::note("parse: done before");
            return Ok(key);
        }
    }
    let staging = StagedDirectory::new(&dir, true)?;
    let salt = parse::salt()?;
    let mut builder = EventStoreBuilder::new(
        salt.text(),
        &parse::options_key(&options)?,
        Some(staging.path().to_owned()),
    );
    // The key of what was read, which may be longer than what was looked at before.
    let key = parse::key(&parse::read(&logs, &options, &mut builder)?, &options)?;
    builder.write_store(staging, &key)?;
    Ok(key)
}

/// Refuses what can be known to fail before any work.
fn check(config: &Config, file: &Path) -> Result<()> {
    ensure!(
        config.logs.is_empty() == config.data.is_given(),
        hinted(
            format!(
                "`{}` names {}",
                file.display(),
                if config.logs.is_empty() {
                    "no logs"
                } else {
                    "logs and tables"
                }
            ),
            "give `logs: [PATH]`, or tables of your own in `data`"
        )
    );
    // Making the trials of pipelines has checked them.
    let check = |trials: &SweepTrials| -> Result<()> {
        for trial in 1..=sweep::network_trial_count(config)? {
            let trial = trials.draw(trial, &[])?;
            TensorSettings::from_config(&trial).and(crate::training::Settings::of(&trial))?;
        }
        Ok(())
    };
    let checked = SweepTrials::from_config(config).and_then(|trials| check(&trials));
    checked.with_context(|| format!("cannot use `{}`", file.display()))
}

fn summary(
    store: &EventStore,
    dataset: &Dataset,
    best: &BestNetwork,
    trials: &[TrialRow],
    choices: &[SplitChoice],
    evaluation: &Evaluation,
    out: &Path,
) -> String {
    let mut text = format!(
        "Events\n{}\nSamples of the best trial\n{}\n",
        parse::text(&store.summary),
        tensors::text(&dataset.summary)
    );
    text.push_str(&format!("Trials, by {}\n", best.metric.name));
    let head = [
        "trial",
        "j",
        "m",
        "timeframe",
        "model",
        "layers",
        "hidden",
        "learning rate",
        "batch",
        "epoch",
        "loss",
        "ROC-AUC",
        "F-measure",
        "",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let networks = best
        .trials
        .iter()
        .zip(trials.iter().filter(|row| row.config.pipelines.is_empty()));
    rows.extend(networks.map(|(result, row)| trial_row(best, result, &row.config)));
    text.push_str(&output::aligned_table(&rows));
    if let [choice, ..] = choices {
        text.push_str(&format!(
            "\nPipelines and networks on the same samples, by {}\n",
            best.metric.name
        ));
        let of_each = choice.pipelines.iter().map(|(name, leader)| {
            vec![
                name.clone(),
                format!("trial {}", leader.trial),
                format!("{:.4}", leader.value),
            ]
        });
        text.push_str(&output::aligned_table(&of_each.collect::<Vec<_>>()));
        text.push_str(&choices::text(choices));
    }
    text.push_str(&format!(
        "\nThe best trial on holds it has not seen\n{}",
        evaluate::text(evaluation)
    ));
    text.push_str(&format!("everything is in {}\n", escape::path(out)));
    text
}

fn trial_row(best: &BestNetwork, result: &sweep::TrialResult, config: &Config) -> Vec<String> {
    let (Ok(tensors), Ok(training)) = (
        TensorSettings::from_config(config),
        crate::training::Settings::of(config),
    ) else {
        return vec![result.trial.to_string()];
    };
    let score = |score: Option<f64>| score.map_or("-".to_owned(), |score| format!("{score:.3}"));
    let mut row = vec![
        result.trial.to_string(),
        tensors.j.to_string(),
        tensors.m.to_string(),
        format!("{} s", tensors.timeframe_len_s),
        training.model,
        training.lstm_layers.to_string(),
        training.hidden_size.to_string(),
        format!("{:.5}", training.learning_rate),
        training.batch_size.to_string(),
    ];
    match result.best() {
        Some(epoch) => row.extend([
            epoch.epoch.to_string(),
            format!("{:.4}", epoch.validation_loss),
            score(epoch.validation.roc_auc),
            score(epoch.validation.f_measure),
            if best.trial == result.trial {
                "best".to_owned()
            } else {
                String::new()
            },
        ]),
        None => row.push(result.error.clone().unwrap_or_default()),
    }
    row
}
