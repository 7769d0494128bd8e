//! `poolcast run`: the whole line on this machine, from the logs that a configuration names to advice.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::{advise, evaluate, flag, flags, parse, tensors};
use crate::cli::RunArgs;
use crate::config::Config;
use crate::error::{EXIT_DONE, hinted};
use crate::eventlog::Options;
use crate::events::{Builder, Store};
use crate::files::Staging;
use crate::sweep::{self, Best};
use crate::tensors::{Dataset, Settings, Side, TENSORS};
use crate::training::{Evaluation, Run};
use crate::{events, files, manifest, output};

#[derive(Serialize)]
struct Report<'a> {
    events: &'a events::Summary,
    best: &'a Best,
    evaluation: &'a Evaluation,
    advice: advise::Document<'a>,
}

/// Goes through every stage; what an earlier run finished is kept unless it was made from something else.
pub fn run(args: &RunArgs, threads: usize) -> Result<u8> {
    let config = Config::load(Some(&args.config), &flags([("out", flag(&args.out))]))?;
    let out = &config.out;
    check(&config, &args.config)?;
    ensure!(
        !out.join(manifest::FILE).exists(),
        hinted(format!("`{}` holds a sweep of workers, or another artefact", out.display()), "name another directory")
    );
    let (store, events_key) = events(&config, args.overwrite)?;
    fs_err::create_dir_all(out)?;
    config.write(out)?;
    let (trials, best) = sweep_trials(&config, &store, &events_key, threads, args.overwrite)?;
    let dir = sweep::trial_dir(out, best.trial);
    let dataset = Dataset::open(&sweep::tensors_dir(out, &trials[best.trial - 1])?)?;
    let run = Run::open(&dir)?;
    let evaluation = evaluate::score(&run, &dir, &dataset, Side::Test, config.evaluation.resamples, None)?;
    sweep::write_best(out, &best)?;
    let advice = advise::judge(&store, &run, &dir, &config, &[])?;
    let report = Report {
        events: &store.summary,
        best: &best,
        evaluation: &evaluation,
        advice: advise::document(&store, &run, &advice),
    };
    manifest::write_json(&out.join("report.json"), &report)?;
    if args.json {
        output::json(&report)?;
    } else {
        output::data(&summary(&store, &dataset, &best, &trials, &evaluation, out))?;
        output::data(&format!("\nAdvice on the {} jobs still held when the log ends\n\n", advice.len()))?;
        output::data(&advise::text(&advice))?;
    }
    Ok(EXIT_DONE)
}

fn events(config: &Config, overwrite: bool) -> Result<(Store, String)> {
    let options = Options { ap: config.parse.ap.clone(), year: config.parse.year };
    let logs = parse::logs(&config.logs)?;
    let key = parse::key(&parse::sources(&logs)?, &options)?;
    let dir = config.out.join("events");
    if let Some(store) = parse::finished(&dir, &key)?.filter(|_| !overwrite) {
        output::note("parse: done before");
        return Ok((store, key));
    }
    let staging = Staging::new(&dir, true)?;
    let mut builder = Builder::new(&parse::salt(), &parse::options_key(&options)?, Some(staging.path().to_owned()));
    // The key of what was read, which may be longer than what was looked at before.
    let key = parse::key(&parse::read(&logs, &options, &mut builder)?, &options)?;
    builder.write(staging, &key)?;
    Ok((Store::open(&dir)?, key))
}

/// Parses the logs that `config`, read from `file`, names, and makes the tensors of every trial in its directory.
pub(super) fn prepare(config: &Config, file: &Path, overwrite: bool) -> Result<()> {
    let trials = check(config, file)?;
    sweep::check_method(config).with_context(|| format!("cannot use `{}`", file.display()))?;
    sweep::check_place(&config.out)?;
    let (store, events_key) = events(config, overwrite)?;
    fs_err::create_dir_all(&config.out)?;
    let (out, events_key) = (&config.out, events_key.as_str());
    let mut tensors = Tensors { store: &store, events_key, out, overwrite, ready: BTreeSet::new() };
    tensors.make(&trials)
}

/// Refuses what can be known to fail before any work; returns as many trials as there will be, which with the method `bayes`
/// may be others.
fn check(config: &Config, file: &Path) -> Result<Vec<Config>> {
    ensure!(!config.logs.is_empty(), hinted(format!("`{}` names no logs", file.display()), "add `logs: [PATH]` to it"));
    trials(config).with_context(|| format!("cannot use `{}`", file.display()))
}

fn trials(config: &Config) -> Result<Vec<Config>> {
    let drawn = (1..=sweep::count(config)?).map(|trial| {
        let trial = sweep::draw(config, trial, &[])?;
        Settings::of(&trial).and(crate::training::Settings::of(&trial))?;
        Ok(trial)
    });
    drawn.collect()
}

/// The tensors that trials need; trials of equal sizes share them.
struct Tensors<'a> {
    store: &'a Store,
    events_key: &'a str,
    out: &'a Path,
    overwrite: bool,
    ready: BTreeSet<PathBuf>,
}

impl Tensors<'_> {
    fn make(&mut self, trials: &[Config]) -> Result<()> {
        let mut wanted = BTreeMap::new();
        for trial in trials {
            wanted.insert(sweep::tensors_dir(self.out, trial)?, Settings::of(trial)?);
        }
        for (dir, settings) in wanted {
            if !self.ready.insert(dir.clone()) {
                continue;
            }
            if !self.overwrite && manifest::finished_key(&dir, TENSORS) == Some(settings.key(self.events_key)?) {
                output::note(&format!("tensors {}: done before", dir.file_name().unwrap_or_default().display()));
                continue;
            }
            tensors::build(self.store, &settings, self.events_key, &dir, true)?;
        }
        Ok(())
    }
}

fn sweep_trials(
    config: &Config,
    store: &Store,
    events_key: &str,
    threads: usize,
    overwrite: bool,
) -> Result<(Vec<Config>, Best)> {
    let out = &config.out;
    files::remove(overwrite.then(|| out.join("trials")))?;
    let mut tensors = Tensors { store, events_key, out, overwrite, ready: BTreeSet::new() };
    let bar = output::item_bar((sweep::count(config)? * config.epochs) as u64, "trials");
    let swept = sweep::run_sweep(
        config,
        threads,
        |trials| bar.suspend(|| tensors.make(trials)),
        |trial, epoch| {
            bar.inc(1);
            super::sweep::tell(trial, epoch);
        },
    );
    bar.finish_and_clear();
    let (trials, results) = swept?;
    let best = Best::of(&config.wandb.sweep.metric, results)?;
    Ok((trials, best))
}

fn summary(
    store: &Store,
    dataset: &Dataset,
    best: &Best,
    trials: &[Config],
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
        "",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(best.trials.iter().zip(trials).map(|(result, config)| trial_row(best, result, config)));
    text.push_str(&output::table(&rows));
    text.push_str(&format!("\nThe best trial on holds it has not seen\n{}", evaluate::text(evaluation)));
    text.push_str(&format!("everything is in {}\n", out.display()));
    text
}

fn trial_row(best: &Best, result: &sweep::TrialResult, config: &Config) -> Vec<String> {
    let (Ok(tensors), Ok(training)) = (Settings::of(config), crate::training::Settings::of(config)) else {
        return vec![result.trial.to_string()];
    };
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
            epoch.validation.roc_auc.map_or("-".to_owned(), |auc| format!("{auc:.3}")),
            if best.trial == result.trial { "best".to_owned() } else { String::new() },
        ]),
        None => row.push(result.error.clone().unwrap_or_default()),
    }
    row
}
