//! Reads the input of a report from the directory of a run, a sweep or a DAG, finished or not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::de::DeserializeOwned;

use super::held_jobs::HeldJobs;
use super::reported_trial::ReportedTrial;
use super::words;
use poolcast_base::error::{self, EXIT_RETRY, hinted};
use poolcast_base::{files, manifest, output};
use poolcast_config::{self as config, Metric, PredictionTask};
use poolcast_holds::rehearsal::RehearsalTally;
use poolcast_holds::training::{ModelEvaluation, TrainedModel, evaluation_path};
use poolcast_sweep::condor::{self, DagProgress};
use poolcast_sweep::config::{Config, TrialSource};
use poolcast_sweep::{
    self as sweep, BestModel, ParameterNames, SplitChoice, SweepFolder, TrialOutcomes, TrialResult,
    TrialRow,
};
use poolcast_tensors::Split;

/// Size limit of a JSON document of scores or choices, in bytes.
const MAX_JSON_BYTES: u64 = 64 << 20;

/// Kind of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedKind {
    /// A training, or a fit of a pipeline.
    Run,
    /// The folder of a sweep.
    Sweep,
    /// The directory of a DAG.
    Dag,
}

/// Input of a report.
#[derive(Debug)]
pub struct ReportInputs {
    /// The directory to report on.
    pub dir: PathBuf,
    /// True to omit names, paths, hosts, job ids and log texts.
    pub is_anonymous: bool,
    /// True if the report is made by a job, whose directory the readers do not have.
    is_job: bool,
    /// Interval after which the browser reloads the page, in seconds.
    pub reload_s: Option<u32>,
    /// The configuration.
    pub config: Config,
    pub(super) kind: ReportedKind,
    /// The names of hyper-parameters across the kinds of models.
    pub(super) parameter_names: ParameterNames,
    /// The trials that have ended.
    pub(super) trials: Vec<ReportedTrial>,
    /// Planned number of trials.
    pub(super) planned: usize,
    /// True if DAGMan has ended the DAG. The remaining trials will then never end.
    is_dag_over: bool,
    /// Reasons of final job failures in the DAG, by node name.
    pub(super) failed_nodes: BTreeMap<String, String>,
    /// The best trial that learned from a log's samples.
    pub(super) best: Option<BestModel>,
    /// Number of the best trial over samples of waits, or of a program, counted from 1.
    pub(super) best_ranked: Option<usize>,
    /// The choices among pipelines, one per split.
    pub(super) choices: Vec<SplitChoice>,
    /// Directory of the best run.
    pub(super) run: Option<PathBuf>,
    /// Scores of the best run on the test split.
    pub(super) evaluation: Option<ModelEvaluation>,
    /// Counts of the rehearsed answers.
    pub(super) rehearsal: Option<RehearsalTally>,
}

impl ReportInputs {
    /// Reads the input of a report on `dir`.
    ///
    /// # Errors
    /// Fails if `dir` is not a run, a sweep or a DAG, or if a file cannot be read.
    pub fn read(dir: &Path, is_anonymous: bool) -> Result<ReportInputs> {
        let dir = condor::results_directory(dir)?;
        let kind = kind_of(&dir)?;
        let mut inputs = ReportInputs::empty(Config::read(&dir)?, kind, dir);
        inputs.is_anonymous = is_anonymous;
        match kind {
            ReportedKind::Run => inputs.run = Some(inputs.dir.clone()),
            ReportedKind::Sweep | ReportedKind::Dag => inputs.read_trials()?,
        }
        let results = inputs.dir.clone();
        inputs.read_results(&results)?;
        Ok(inputs)
    }

    /// Makes the input of a report in a job, such as a job of a DAG. All trials of `sweep` have
    /// ended, with the rows `rows`. The directory `results` has the scores and the choices that are
    /// known.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
    pub fn of_job(sweep: &SweepFolder, rows: &[TrialRow], results: &Path) -> Result<ReportInputs> {
        // The commands for a sweep reproduce all results, also for a DAG.
        let mut inputs =
            ReportInputs::empty(sweep.config.clone(), ReportedKind::Sweep, sweep.dir.clone());
        inputs.is_job = true;
        inputs.planned = sweep.plan.trials;
        let mut valued = Vec::new();
        for row in rows {
            inputs.add_row(row, &mut valued);
        }
        inputs.choose(valued);
        inputs.read_results(results)?;
        Ok(inputs)
    }

    /// The input of a report on `dir` before anything is known of trials.
    fn empty(config: Config, kind: ReportedKind, dir: PathBuf) -> ReportInputs {
        ReportInputs {
            parameter_names: ParameterNames::from_config(&config),
            is_anonymous: false,
            is_job: false,
            reload_s: None,
            config,
            kind,
            trials: Vec::new(),
            planned: 1,
            is_dag_over: false,
            failed_nodes: BTreeMap::new(),
            best: None,
            best_ranked: None,
            choices: Vec::new(),
            run: None,
            evaluation: None,
            rehearsal: None,
            dir,
        }
    }

    /// Reads the best model, its scores and the choices from the directory `results`.
    fn read_results(&mut self, results: &Path) -> Result<()> {
        let mut run = self.run.clone();
        if let Some(best) = &mut self.best {
            let written: Option<BestModel> = read_if_exists(&results.join(sweep::BEST_FILE))?;
            best.ensemble = written
                .filter(|written| written.trial == best.trial)
                .and_then(|written| written.ensemble);
            self.run = Some(best.judged_dir(&self.dir, results));
            run = Some(best.dir(results));
        }
        if let Some(run) = run {
            self.evaluation = read_if_exists(&evaluation_path(&run, Split::Test))?;
        }
        if self.kind != ReportedKind::Run {
            let selection = results.join(sweep::SELECTION_FILE);
            self.choices = read_if_exists(&selection)?.unwrap_or_default();
            self.rehearsal = RehearsalTally::read(results)?;
        }
        Ok(())
    }

    fn read_trials(&mut self) -> Result<()> {
        let mut results = Vec::new();
        if self.kind == ReportedKind::Dag {
            self.planned = sweep::SweepTrials::from_config(&self.config)?.count();
            for row in condor::read_rows(&self.dir, &self.config)? {
                self.add_row(&row, &mut results);
            }
            self.read_progress()?;
        } else {
            let folder = SweepFolder::open(&self.dir)?;
            self.planned = folder.plan.trials;
            let mut outcomes = TrialOutcomes::read(&folder)?;
            if self.is_over_waits() || self.runs_program() {
                let best = sweep::best_outcome(self.metric(), &outcomes);
                self.best_ranked = best.map(|best| best.trial);
            }
            for at in 0..outcomes.all().len() {
                self.add_row(&outcomes.row(at)?, &mut results);
            }
        }

        self.choose(results);
        Ok(())
    }

    /// Reads DAGMan's state of the jobs; does nothing before DAGMan has started.
    fn read_progress(&mut self) -> Result<()> {
        if let Some(progress) = DagProgress::read(&self.dir)? {
            let progress = progress.with_failure_records(&self.dir)?;
            self.is_dag_over = progress.is_over();
            self.failed_nodes = progress.failure_reasons(&self.dir);
        }
        Ok(())
    }

    /// Chooses the best trial among `results`.
    fn choose(&mut self, results: Vec<TrialResult>) {
        self.best = BestModel::choose(self.metric(), results).ok();
    }

    fn add_row(&mut self, row: &TrialRow, results: &mut Vec<TrialResult>) {
        let mut trial = ReportedTrial::from_row(row, &self.parameter_names);
        if self.is_anonymous && self.runs_program() {
            trial.model = "program".to_owned();
            trial.kind = trial.model.clone();
        }
        self.trials.push(trial);
        if row.config.trial_source() == TrialSource::Logs {
            results.push(TrialResult::from(row));
        }
    }

    /// The directory of the best run, once all trials have ended.
    pub fn best_run(&self) -> Option<&Path> {
        self.run.as_deref().filter(|_| !self.is_running())
    }

    /// The directory of the best trial, once all trials have ended, also if the model is an
    /// ensemble. For a run, its own directory.
    pub fn best_trial_dir(&self) -> Option<PathBuf> {
        if self.is_running() {
            return None;
        }
        let best = self.best.as_ref().map(|best| best.trial);
        match best.or(self.best_ranked) {
            Some(trial) => Some(sweep::trial_dir(&self.dir, trial)),
            None => self.run.clone(),
        }
    }

    /// Returns the artefact of this directory that was `opened`; `None` if it is absent, or was
    /// made by another version.
    ///
    /// # Errors
    /// Fails if the artefact is damaged.
    pub fn if_available<T>(&self, opened: Result<T>) -> Result<Option<T>> {
        match opened {
            Ok(artefact) => Ok(Some(artefact)),
            Err(error) if error::is_unavailable(&error) => Ok(None),
            Err(error) => Err(self.with_remedy(error)),
        }
    }

    /// Replaces the hint of `error`, which is about a damaged file. No command repairs a file of a
    /// finished sweep in place.
    fn with_remedy(&self, error: anyhow::Error) -> anyhow::Error {
        if self.kind == ReportedKind::Run || error::exit_code(&error) == EXIT_RETRY {
            return error;
        }
        let config = self.dir.join(config::FILE);
        let mut hint = "copy the directory again, or repeat the sweep in another one".to_owned();
        if let Some(config) = words::quoted(&config.to_string_lossy()) {
            hint.push_str(&format!(
                ": poolcast sweep init {config} -o DIR && poolcast sweep run DIR"
            ));
        }
        hinted(format!("{error:#}"), hint).into()
    }

    /// Opens the model in `run`; `None` if it is absent, was made by another version, or learned
    /// from tables.
    ///
    /// # Errors
    /// Fails if a file of the model is damaged.
    pub(super) fn open_model(&self, run: &Path) -> Result<Option<TrainedModel>> {
        if self.config.data.is_given() {
            return Ok(None);
        }
        self.if_available(TrainedModel::open(run))
    }

    /// The metric that the sweep optimizes.
    pub(super) fn metric(&self) -> &Metric {
        &self.config.wandb.sweep.metric
    }

    /// Returns true if some trials are networks, whose scores differ between epochs.
    pub(super) fn has_epochs(&self) -> bool {
        self.trials.iter().any(|trial| trial.epochs.is_some())
    }

    /// The display name of the values by which trials are compared.
    pub(super) fn value_title(&self) -> String {
        let title = words::metric_title(self.metric());
        if self.has_epochs() {
            format!("judged {title}")
        } else {
            title
        }
    }

    /// Returns true if numbers are predicted instead of classes.
    pub(super) fn predicts_numbers(&self) -> bool {
        self.config.data.task == PredictionTask::Regression
    }

    /// Returns true if the models learn from samples of waits.
    pub(super) fn is_over_waits(&self) -> bool {
        self.config.trial_source() == TrialSource::WaitSamples
    }

    /// Returns true if the trials run a program of the user.
    pub(super) fn runs_program(&self) -> bool {
        self.config.trial_source() == TrialSource::Command
    }

    /// The best trial, counted from 1; for tables, the best trial of the first split.
    pub(super) fn best_trial(&self) -> Option<usize> {
        let of_logs = self.best.as_ref().map(|best| best.trial);
        of_logs
            .or(self.best_ranked)
            .or_else(|| Some(self.choices.first()?.trial))
    }

    /// The directory's name in commands; `DIR` if it must not or cannot be shown.
    pub(super) fn dir_argument(&self) -> String {
        let dir = self.dir.to_str().and_then(words::quoted);
        dir.filter(|_| !self.is_anonymous && !self.is_job)
            .unwrap_or_else(|| "DIR".to_owned())
    }

    /// The trials from best to worst, then those without a value.
    pub(super) fn ranked_trials(&self) -> Vec<&ReportedTrial> {
        let goal = self.metric().goal;
        let mut ranked: Vec<&ReportedTrial> = self.trials.iter().collect();
        ranked.sort_by(|a, b| match (a.value, b.value) {
            (Some(a_value), Some(b_value)) => goal
                .order((a_value, 0.0), (b_value, 0.0))
                .then(a.trial.cmp(&b.trial)),
            (a_value, b_value) => b_value.is_some().cmp(&a_value.is_some()),
        });
        // Put the chosen trial first: its choice may have used more than this value to break a tie.
        if let Some(best) = self.best_trial() {
            ranked.sort_by_key(|trial| trial.trial != best);
        }
        ranked
    }

    /// The title of the report.
    pub(super) fn title(&self) -> String {
        let kind = match self.kind {
            ReportedKind::Run => "run",
            ReportedKind::Sweep => "sweep",
            ReportedKind::Dag => "DAG",
        };
        let name = words::shown(&self.config.wandb.sweep.name);
        if self.is_anonymous || self.kind == ReportedKind::Run || name.is_empty() {
            return format!("poolcast: report on a {kind}");
        }
        format!("poolcast: report on the {kind} {name}")
    }

    /// Returns the sentences below the title.
    pub(super) fn about(&self, held: Option<&HeldJobs>) -> Vec<String> {
        let mut about = Vec::new();
        about.extend(held.map(|held| held.log_sentence(self.is_anonymous)));
        if self.kind == ReportedKind::Run {
            return about;
        }

        let ended = self.trials.len();
        let is_failed = |trial: &&ReportedTrial| trial.failure.is_some();
        let how = match self.trials.iter().filter(is_failed).count() {
            0 => "all of them with a model".to_owned(),
            failed => format!(
                "{} of them without a model",
                output::with_commas(failed as u64)
            ),
        };
        about.push(format!(
            "{} of {} ended, {how}.",
            output::with_commas(ended as u64),
            output::counted(self.planned, "trial"),
        ));
        about
    }

    /// Returns true if trials have not ended yet and can still end.
    pub fn is_running(&self) -> bool {
        let has_rest = self.trials.len() < self.planned && self.kind != ReportedKind::Run;
        has_rest && !self.is_dag_over
            || self.kind == ReportedKind::Sweep
                && !self.is_job
                && !self.dir.join(sweep::ROWS_FILE).is_file()
    }
}

/// Returns the kind of `dir`.
pub fn kind_of(dir: &Path) -> Result<ReportedKind> {
    if condor::is_dag(dir) {
        return Ok(ReportedKind::Dag);
    }
    let format = manifest::format_name(dir)?;
    match format.as_deref() {
        Some("sweep") => return Ok(ReportedKind::Sweep),
        Some("run" | "fit") => return Ok(ReportedKind::Run),
        _ => {}
    }

    // An unfinished training has no manifest.
    let is_training = format.is_none() && dir.join(config::FILE).is_file();
    ensure!(
        is_training,
        hinted(
            format!("`{}` is not a run, a sweep or a DAG", dir.display()),
            "name the directory that `poolcast run`, `sweep init`, `dag` or `train` wrote"
        )
    );
    Ok(ReportedKind::Run)
}

/// Reads the JSON document at `path`; `None` if there is no file.
fn read_if_exists<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = files::read_regular(path, MAX_JSON_BYTES)?;
    let value = serde_json::from_slice(&text);
    value
        .map(Some)
        .with_context(|| format!("cannot read `{}`", path.display()))
}
