//! `poolcast run`: runs all stages on this machine, from the logs that a configuration names to the
//! advice.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::asked_advice::earlier_answers;
use super::default_schedd::name_other_schedds;
use super::flags::{flag, flags};
use super::history_log::{HISTORY_LOG, write_history_log};
use super::own_logs::expand_own_logs;
use super::page_numbers::keep_numbers;
use super::preparation::begin_sweep;
use super::report_page::write_page;
use super::text::advice::{AdviceDocument, AdviceView, shell_word};
use super::text::advice_page::AdvicePage;
use super::text::changes::RunChanges;
use super::whole_sweep::{learn_without_model, refit_best, run_to_end};
use super::{choices, logs, text, trained_run};
use htcondor_eventlog as eventlog;
use poolcast_advice::{
    AdviceBasis, AdviceModels, AnswerTally, HeldGrouping, JobAdvice, advise, apply_reason_rules,
};
use poolcast_base::error::{EXIT_DONE, EXIT_NEVER, EXIT_RETRY, HintedError, exit_code, hinted};
use poolcast_base::output::JsonDocument;
use poolcast_base::{escape, files, manifest, output};
use poolcast_cli::{JobOrder, RunArgs};
use poolcast_events::{EventStore, HoldSource, StoreSummary};
use poolcast_holds::answers::LearnedAnswers;
use poolcast_holds::rehearsal::{REHEARSAL_SCHEMA_VERSION, RehearsalTally};
use poolcast_holds::training::{ModelEvaluation, RunModels, TrainedModel};
use poolcast_report::{HeldJobs, REPORT_FILE, ReportInputs};
use poolcast_sweep::config::{Config, TrialSource};
use poolcast_sweep::{
    self as sweep, BestModel, FEW_HOLDS_FILE, InputValue, ScoreEstimate, SplitChoice, SweepFolder,
    TrialConfig, TrialModel, TrialOutcomes, TrialRow, events_dir,
};
use poolcast_tensors::{Dataset, Split, SplitSummary, hold_counts};

/// Contents of `report.json`.
#[derive(Serialize)]
struct RunReport<'a> {
    /// The source of the holds.
    source: HoldSource,
    events: &'a StoreSummary,
    /// Absent if the log has too few holds to train a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<&'a BestModel>,
    /// Empty without a model.
    inputs: Vec<InputValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evaluation: Option<&'a ModelEvaluation>,
    /// Counts of a log with too few holds to train a model; absent if one was trained.
    #[serde(skip_serializing_if = "Option::is_none")]
    few_holds: Option<&'a FewHolds>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    selection: &'a [SplitChoice],
    #[serde(skip_serializing_if = "Option::is_none")]
    rehearsal: Option<JsonDocument<&'a RehearsalTally>>,
    advice: JsonDocument<AdviceDocument<'a>>,
}

/// Document that `--json` prints.
#[derive(Serialize)]
struct PrintedReport<'a> {
    #[serde(flatten)]
    report: &'a RunReport<'a>,
    /// Changes since the previous run; `None` if there was none, or if the log has not changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    changes: Option<RunChanges>,
}

/// A log with too few holds to train a model. Contents of `few-holds.json`.
#[derive(Serialize)]
struct FewHolds {
    /// Number of holds.
    holds: usize,
    /// Number of them whose outcome is known.
    known: usize,
    /// The reason why no model was trained.
    why: String,
}

/// Number of known outcomes up to which a training that fails is attributed to too few holds.
const FEW_OUTCOMES: usize = 200;

/// Version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Runs every stage. Results of an earlier run are kept, unless their inputs have changed.
pub fn run(args: &RunArgs, threads: usize) -> Result<u8> {
    let (config, place) = run_config(args)?;
    check_logs(&config, &place)?;
    if !args.history.is_empty() {
        write_history_log(&args.history, &config.out.join(HISTORY_LOG))?;
    }

    // Until the end, no other call may replace the events and trials that this one works on.
    let (sweep, _lock) = begin_sweep(&config, &place, args.overwrite)?;
    if args.overwrite {
        files::remove_all(["trials", "tensors"].map(|name| config.out.join(name)))?;
    }
    choices::note_repeats(&sweep)?;
    match train(&sweep, &config, threads) {
        Ok(Some(finished)) => conclude(&finished, &config, args.output.json)?,
        Ok(None) => return Ok(EXIT_RETRY),
        Err(error) => {
            let Ok(store) = EventStore::open(&events_dir(&config.out)) else {
                return Err(error);
            };
            let few = FewHolds::of(&sweep, &store, error)?;
            if !learn_without_model(&sweep, &config.out)? {
                return Ok(EXIT_RETRY);
            }
            conclude_without_model(&store, &few, &config, args.output.json)?;
        }
    }
    Ok(EXIT_DONE)
}

/// Runs the trials, and fits the best model again; returns `None` if that was stopped.
fn train(sweep: &SweepFolder, config: &Config, threads: usize) -> Result<Option<FinishedSweep>> {
    let is_over = run_to_end(sweep, threads, Duration::MAX, sweep::DEFAULT_KEEP)?;
    if !is_over || !refit_best(sweep, &sweep.dir)? {
        return Ok(None);
    }
    let finished = FinishedSweep::open(sweep, config)?;
    files::remove_all([config.out.join(FEW_HOLDS_FILE)])?;
    Ok(Some(finished))
}

impl FewHolds {
    /// Describes why a training of `sweep` on `store` failed with `error`.
    ///
    /// # Errors
    /// Returns `error` if the store has enough holds, or if another try may succeed.
    fn of(sweep: &SweepFolder, store: &EventStore, error: anyhow::Error) -> Result<FewHolds> {
        let counts = hold_counts(store);
        let known = counts.iter().map(|count| count.known).sum();
        let has_enough = known > FEW_OUTCOMES && !lacks_scores(sweep);
        if has_enough || exit_code(&error) != EXIT_NEVER {
            return Err(error);
        }
        Ok(FewHolds {
            holds: counts.iter().map(|count| count.holds).sum(),
            known,
            why: format!("{error:#}"),
        })
    }

    fn words(&self) -> String {
        format!(
            "no model was trained: outcomes are known of {} of {}\nRules answer, and what these outcomes show. Call `poolcast run` again when the log has grown.",
            output::with_commas(self.known as u64),
            output::counted(self.holds, "hold")
        )
    }
}

/// Advises on the held jobs by rules and by what was learned without a model. Writes and prints the
/// results.
fn conclude_without_model(
    store: &EventStore,
    few: &FewHolds,
    config: &Config,
    is_json: bool,
) -> Result<()> {
    let out = &config.out;
    files::remove_all([out.join(sweep::BEST_FILE)])?;
    manifest::write_json(&out.join(FEW_HOLDS_FILE), few)?;
    let origin = trained_run::model_origin(out, out);
    let answers = LearnedAnswers::open_alone(&sweep::answers_dir(out))?;
    let models = AdviceModels {
        trained: None,
        answers: answers.as_ref(),
        origin: &origin,
    };
    let mut advice = advise(store, models, &config.advice, None)?;
    name_other_schedds(&mut advice);
    let stored = without_texts(&advice);
    let basis = AdviceBasis::new(store, &models);
    let rehearsal = RehearsalTally::read(out)?;
    let report = RunReport {
        source: store.summary.source(),
        events: &store.summary,
        best: None,
        inputs: Vec::new(),
        evaluation: None,
        few_holds: Some(few),
        selection: &[],
        rehearsal: rehearsal.as_ref().map(rehearsal_document),
        advice: JsonDocument {
            schema_version: text::advice::SCHEMA_VERSION,
            body: advice_view(&basis, &stored, None).document(),
        },
    };
    let changes = write_report(out, &report)?;
    if is_json {
        let report = &report;
        return output::print_json(SCHEMA_VERSION, &PrintedReport { report, changes });
    }

    logs::add_words(config, &mut advice)?;
    output::note(&format!("note: no model was trained: {}", few.why));
    output::print(&format!(
        "Events\n{}\n{}\neverything is in {}\n",
        text::events::summary(&store.summary),
        few.words(),
        escape::path(out)
    ))?;
    if let Some(changes) = changes {
        output::print(&format!("\n{}", changes.text()))?;
    }
    print_advice(store, config, &basis, &advice)
}

/// Scores the best model and advises on the held jobs. Writes and prints the results.
fn conclude(finished: &FinishedSweep, config: &Config, is_json: bool) -> Result<()> {
    let evaluation = trained_run::score(
        &finished.models.judged,
        &finished.best.dir(&config.out),
        &finished.dataset,
        Split::Test,
        config.evaluation.resamples,
        None,
    )?;
    sweep::write_best_model(&config.out, &config.out, &finished.best)?;
    let dir = finished.best.dir(&config.out);
    let origin = trained_run::model_origin(&dir, &config.out);
    let answers = LearnedAnswers::open(&sweep::answers_dir(&config.out))?;
    let models = AdviceModels {
        trained: Some(finished.advisor()),
        answers: answers.as_ref(),
        origin: &origin,
    };
    let mut advice = advise(&finished.store, models, &config.advice, None)?;
    name_other_schedds(&mut advice);
    let stored = without_texts(&advice);
    let basis = AdviceBasis::new(&finished.store, &models);

    let rehearsal = RehearsalTally::read(&config.out)?;
    let report = RunReport {
        source: finished.store.summary.source(),
        events: &finished.store.summary,
        best: Some(&finished.best),
        inputs: finished.best.best_by_input(),
        evaluation: Some(&evaluation),
        few_holds: None,
        selection: &finished.choices,
        rehearsal: rehearsal.as_ref().map(rehearsal_document),
        advice: JsonDocument {
            schema_version: text::advice::SCHEMA_VERSION,
            body: advice_view(&basis, &stored, None).document(),
        },
    };
    let changes = write_report(&config.out, &report)?;
    let held = write_run_page(config, &basis, &advice)?;
    if is_json {
        let report = &report;
        return output::print_json(SCHEMA_VERSION, &PrintedReport { report, changes });
    }

    output::print(&finished.text(&evaluation, config))?;
    if let Some(tally) = &rehearsal {
        output::print(&format!(
            "\nThe answers about held jobs, rehearsed on this log\n{}",
            text::rehearsal::strategies_table(tally)
        ))?;
    }
    if let Some(changes) = changes {
        output::print(&format!("\n{}", changes.text()))?;
    }
    print_advice(&finished.store, config, &held.basis, &held.advice)
}

/// Returns `advice` as it is stored: what reasons state answers, but nothing that they name is in it.
fn without_texts(advice: &[JobAdvice]) -> Vec<JobAdvice> {
    let mut stored = advice.to_vec();
    apply_reason_rules(&mut stored);
    stored
}

/// Prints the page about the held jobs.
fn print_advice(
    store: &EventStore,
    config: &Config,
    basis: &AdviceBasis,
    advice: &[JobAdvice],
) -> Result<()> {
    output::print("\nAdvice on the jobs still held when the log ends\n")?;
    let earlier = earlier_answers(&config.out, store);
    let view = AdviceView {
        call: repeat_command(config),
        ..advice_view(basis, advice, earlier.as_ref())
    };
    let page = AdvicePage::new(&view);
    output::print_page(&page.lines(0))?;
    let now_ms = jiff::Timestamp::now().as_millisecond();
    keep_numbers(&config.out, &page, &view, now_ms);
    Ok(())
}

fn rehearsal_document(body: &RehearsalTally) -> JsonDocument<&RehearsalTally> {
    JsonDocument {
        schema_version: REHEARSAL_SCHEMA_VERSION,
        body,
    }
}

/// Writes the page for people into the directory of the run; returns the advice with the texts of
/// the log added.
fn write_run_page(config: &Config, basis: &AdviceBasis, advice: &[JobAdvice]) -> Result<HeldJobs> {
    let mut held = HeldJobs {
        basis: basis.clone(),
        advice: advice.to_vec(),
    };
    logs::add_words(config, &mut held.advice)?;
    let inputs = ReportInputs::read(&config.out, false)?;
    write_page(&inputs, Some(&held), &config.out.join(REPORT_FILE))?;
    Ok(held)
}

/// The command that gives the same advice again; `None` if a log can be read only once.
fn repeat_command(config: &Config) -> Option<String> {
    if config.logs.iter().any(|log| eventlog::is_read_once(log)) {
        return None;
    }
    let out = config.out.to_str()?;
    Some(format!("poolcast advise {}", shell_word(out)))
}

/// The view of all `advice`.
fn advice_view<'a>(
    basis: &'a AdviceBasis,
    advice: &'a [JobAdvice],
    earlier: Option<&'a AnswerTally>,
) -> AdviceView<'a> {
    AdviceView {
        basis,
        all: advice,
        chosen: advice.iter().collect(),
        now_ms: None,
        width: output::page_width(),
        shows_ages: false,
        call: None,
        shows_all: false,
        grouping: HeldGrouping::Thing,
        sort: JobOrder::Action,
        opened: None,
        terminal_rows: output::terminal_size().map(|(_, rows)| rows),
        queue: None,
        earlier,
        ended: &[],
        loops: &[],
        better: None,
        none_of_own: None,
    }
}

/// Writes the report into `out`; returns the changes since the previous report, if the log has
/// changed.
fn write_report(out: &Path, report: &RunReport<'_>) -> Result<Option<RunChanges>> {
    let path = out.join("report.json");
    let before = fs_err::read(&path).ok();
    let document = JsonDocument {
        schema_version: SCHEMA_VERSION,
        body: report,
    };
    manifest::write_json(&path, &document)?;
    let Some(before) = before else {
        return Ok(None);
    };

    let after = fs_err::read(&path)?;
    if before == after {
        output::note("nothing has changed since the previous run");
        return Ok(None);
    }
    // Another build may have written the previous report in another format.
    let before: serde_json::Value = serde_json::from_slice(&before).unwrap_or_default();
    let after: serde_json::Value = serde_json::from_slice(&after)?;
    Ok(RunChanges::between(&before, &after))
}

/// Loads the configuration with the overrides of the flags; returns it and its origin, for
/// messages.
fn run_config(args: &RunArgs) -> Result<(Config, String)> {
    let (file, logs) = named_logs(args);
    let logs = expand_own_logs(&logs)?;
    let logs = (!logs.is_empty()).then_some(&logs);
    let given = flags([("out", flag(&args.out)), ("logs", flag(&logs))]);
    let (mut config, place) = load_config(file, &given)?;
    if !args.history.is_empty() {
        config.logs = vec![config.out.join(HISTORY_LOG)];
    }
    Ok((config, place))
}

/// Loads the configuration in `file`, or the built-in one; returns it and its origin.
fn load_config(
    file: Option<&Path>,
    given: &BTreeMap<&'static str, serde_json::Value>,
) -> Result<(Config, String)> {
    match file {
        Some(file) => {
            let config = Config::load(Some(file), given)?;
            Ok((config, format!("`{}`", file.display())))
        }
        None => {
            let config = Config::load_built_in(given)?;
            Ok((config, "the built-in configuration".to_owned()))
        }
    }
}

/// The configuration file and the logs that the user named. A configuration may follow the logs, and
/// is then among the values of `--log`.
fn named_logs(args: &RunArgs) -> (Option<&Path>, Vec<PathBuf>) {
    let is_config = |log: &PathBuf| {
        log.extension()
            .is_some_and(|end| end == "yaml" || end == "yml")
    };
    let mut logs = args.logs.clone();
    if let Some(file) = &args.config {
        return (Some(file), logs);
    }
    let file = args.logs.iter().find(|log| is_config(log));
    if let Some(file) = file {
        logs.retain(|log| log != file);
    }
    (file.map(PathBuf::as_path), logs)
}

/// Rejects a configuration without logs, because only logs have jobs to advise on.
fn check_logs(config: &Config, place: &str) -> Result<()> {
    let named = match config.trial_source() {
        TrialSource::Logs => return Ok(()),
        TrialSource::Tables => "tables",
        TrialSource::WaitSamples => "samples of waits",
        TrialSource::Command => "a program",
    };
    Err(hinted(
        format!("{place} names {named}, but `run` advises on the jobs of logs"),
        "use `poolcast sweep init` and `poolcast sweep run`",
    )
    .into())
}

/// A sweep whose trials have ended, with its input data and its best model.
struct FinishedSweep {
    rows: Vec<TrialRow>,
    best: BestModel,
    choices: Vec<SplitChoice>,
    store: EventStore,
    /// The samples of the best model.
    dataset: Dataset,
    /// The best model, both as evaluated and as fitted again.
    models: RunModels,
    /// ROC-AUC of the best trial, if no trial is better than chance.
    chance: Option<ScoreEstimate>,
}

impl FinishedSweep {
    fn open(sweep: &SweepFolder, config: &Config) -> Result<FinishedSweep> {
        let out = &config.out;
        let rows = sweep::trial_rows(sweep)?;
        let best = sweep::choose_model(sweep, &rows).with_context(|| no_model_error(out))?;
        let choices = if config.pipelines.is_empty() {
            Vec::new()
        } else {
            choices::split_choices(sweep, &mut TrialOutcomes::read(sweep)?)
                .with_context(|| no_model_error(out))?
        };
        let winner = rows
            .iter()
            .find(|row| row.trial == best.trial)
            .context("the best trial has no row")?;

        Ok(FinishedSweep {
            store: EventStore::open(&events_dir(out))?,
            dataset: Dataset::open(&tensors_dir_of(out, winner)?)?,
            models: RunModels::open(&best.dir(out))?,
            chance: sweep::no_better_than_chance(sweep, &best)?,
            rows,
            best,
            choices,
        })
    }

    /// The model for questions about the end of the log, if no answers were learned.
    fn advisor(&self) -> &TrainedModel {
        self.models.at_moment(self.store.summary.end_ms)
    }

    /// Describes the results of every stage except the last.
    fn text(&self, evaluation: &ModelEvaluation, config: &Config) -> String {
        format!(
            "Events\n{}\nSamples of the best trial\n{}\n{}{}{}\n{}\n{}{}everything is in {}\n",
            text::events::summary(&self.store.summary),
            text::tensors::summary(&self.dataset.summary),
            self.networks_text(),
            self.pipelines_text(),
            text::trials::inputs_text(&self.best),
            self.answering_text(&config.out),
            text::evaluation::summary(evaluation),
            text::trials::chance_text(self.chance),
            escape::path(&config.out)
        )
    }

    /// Heading of the scores that follow: it names the scored model or ensemble.
    fn answering_text(&self, out: &Path) -> String {
        if self.best.ensemble.is_none() {
            return "The best trial on holds that it has not seen".to_owned();
        }
        let together = text::trials::ensemble_text(&self.best, out);
        format!("The ensemble of the best trials on holds that it has not seen\n{together}")
            .trim_end()
            .to_owned()
    }

    /// A table of the network trials, one line each; empty if there are only pipelines.
    fn networks_text(&self) -> String {
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
            "judged",
            "",
        ];

        let mut table = vec![head.map(str::to_owned).to_vec()];
        for (result, row) in self.best.trials.iter().zip(&self.rows) {
            if row.config.pipelines.is_empty() {
                table.push(trial_row(&self.best, result, row));
            }
        }
        if table.len() == 1 {
            return String::new();
        }
        format!(
            "Trials, by {}\n{}",
            self.best.metric.name.judged_name(),
            output::aligned_table(&table)
        )
    }

    /// A table with the best trial of each pipeline and of the networks, and the choice among them;
    /// empty if there are only networks.
    fn pipelines_text(&self) -> String {
        let [choice, ..] = &self.choices[..] else {
            return String::new();
        };

        let mut table = Vec::new();
        for (name, leader) in &choice.pipelines {
            table.push(vec![
                name.clone(),
                format!("trial {}", leader.trial),
                format!("{:.4}", leader.value),
            ]);
        }
        format!(
            "\nPipelines and networks on the same samples, by {}\n{}{}",
            self.best.metric.name.judged_name(),
            output::aligned_table(&table),
            choices::choice_table(&self.choices)
        )
    }
}

/// Returns true if no trial of `sweep` has a score because the holds to learn from, or those to judge by,
/// ended alike.
fn lacks_scores(sweep: &SweepFolder) -> bool {
    let rows = sweep::trial_rows(sweep).unwrap_or_default();
    let is_unscored = rows.iter().all(|row| row.value.is_none());
    is_unscored
        && rows
            .first()
            .is_some_and(|row| has_split_of_one_class(sweep, row).unwrap_or(false))
}

/// Returns true if all samples to train on, or all to validate on, ended alike.
fn has_split_of_one_class(sweep: &SweepFolder, row: &TrialRow) -> Result<bool> {
    let samples = Dataset::open(&tensors_dir_of(&sweep.dir, row)?)?;
    let splits = &samples.summary.splits;
    let is_of_one_class = |split| {
        let listed: &SplitSummary = &splits[split];
        listed.successes == 0 || listed.successes == listed.samples
    };
    Ok([Split::Train, Split::Validate].iter().any(is_of_one_class))
}

/// The error for a sweep in which no trial has a model that can be evaluated.
fn no_model_error(out: &Path) -> HintedError {
    hinted(
        "cannot learn a model: usually, the log has too few releases with a known outcome",
        format!(
            "collect the log for longer with `poolcast collect`; `poolcast sweep status {}` shows why trials failed",
            out.display()
        ),
    )
}

/// The tensor directory of the trial in `row`, within the sweep in `out`.
fn tensors_dir_of(out: &Path, row: &TrialRow) -> Result<PathBuf> {
    let settings = row.config.tensor_settings()?;
    Ok(sweep::tensors_dir(out, &settings))
}

fn trial_row(best: &BestModel, result: &sweep::TrialResult, row: &TrialRow) -> Vec<String> {
    let Ok(TrialConfig {
        tensors: Some(tensors),
        model: TrialModel::Network(training),
        ..
    }) = row.trial_config()
    else {
        return vec![result.trial.to_string()];
    };
    let network = training.parameters;

    let score = |score: Option<f64>| score.map_or("-".to_owned(), |score| format!("{score:.3}"));
    let mut cells = vec![
        result.trial.to_string(),
        tensors.j.to_string(),
        tensors.m.to_string(),
        format!("{} s", tensors.timeframe_len_s),
        network.model,
        network.lstm_layers.to_string(),
        network.hidden_size.to_string(),
        format!("{:.5}", network.learning_rate),
        network.batch_size.to_string(),
    ];

    match result.best_epoch() {
        Some(epoch) => cells.extend([
            epoch.epoch.to_string(),
            format!("{:.4}", epoch.validation_loss),
            score(epoch.validation.roc_auc),
            score(epoch.validation.f_measure),
            score(row.value),
            if best.trial == result.trial {
                "best".to_owned()
            } else {
                String::new()
            },
        ]),
        None => cells.push(result.error.clone().unwrap_or_default()),
    }
    cells
}
