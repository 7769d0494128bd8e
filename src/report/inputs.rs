//! A directory → what there is in it to report on: a run, a sweep or a DAG, over or not.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use serde::de::DeserializeOwned;

use super::held_jobs::HeldJobs;
use super::reported_trial::ReportedTrial;
use super::words;
use poolcast_sweep::condor::{self, DagProgress};
use poolcast_config::{self as config, Config, Metric, PredictionTask, TrialSource};
use poolcast_base::error::hinted;
use poolcast_sweep::{
    self as sweep, BestModel, SplitChoice, SweepFolder, TrialOutcomes, TrialResult, TrialRow,
};
use poolcast_holds::tensors::SplitSide;
use poolcast_holds::training::{ModelEvaluation, evaluation_path};
use poolcast_base::{files, manifest, output};

/// The largest JSON document of scores or choices that is read.
const MOST_JSON_BYTES: u64 = 64 << 20;

/// What a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportedKind {
    /// A training, or a fit of a pipeline.
    Run,
    /// The folder of a sweep.
    Sweep,
    /// The directory of a DAG.
    Dag,
}

/// What there is to report on.
#[derive(Debug)]
pub struct ReportInputs {
    /// Where it is.
    pub dir: PathBuf,
    /// Whether names, paths, hosts, job ids and words of logs are left out.
    pub is_anonymous: bool,
    /// Whether this is a job, whose directory readers of the page do not have.
    is_job: bool,
    /// In how many seconds the page is to be read anew.
    pub reload_s: Option<u32>,
    /// The configuration.
    pub config: Config,
    pub(super) kind: ReportedKind,
    /// The trials that have ended.
    pub(super) trials: Vec<ReportedTrial>,
    /// How many there are to be.
    pub(super) planned: usize,
    /// Whether DAGMan has ended the DAG, if it is one: trials that have not ended never will.
    is_dag_over: bool,
    /// Why jobs of the DAG have failed for good, by the names of their nodes.
    pub(super) failed_nodes: BTreeMap<String, String>,
    /// The best trial over samples of logs.
    pub(super) best: Option<BestModel>,
    /// The best trial over samples of waits, counted from 1.
    pub(super) best_of_waits: Option<usize>,
    /// The choices among pipelines.
    pub(super) choices: Vec<SplitChoice>,
    /// The directory of the best run.
    pub(super) run: Option<PathBuf>,
    /// Its scores on the test side.
    pub(super) evaluation: Option<ModelEvaluation>,
}

impl ReportInputs {
    /// Those in `dir`.
    ///
    /// # Errors
    /// Fails where nothing is that can be reported on, and for files that cannot be read.
    pub fn read(dir: &Path, is_anonymous: bool) -> Result<ReportInputs> {
        let dir = condor::results_directory(dir)?;
        let kind = kind_of(&dir)?;
        let mut inputs = ReportInputs {
            is_anonymous,
            is_job: false,
            reload_s: None,
            config: Config::read(&dir)?,
            kind,
            trials: Vec::new(),
            planned: 1,
            is_dag_over: false,
            failed_nodes: BTreeMap::new(),
            best: None,
            best_of_waits: None,
            choices: Vec::new(),
            run: None,
            evaluation: None,
            dir,
        };

        match kind {
            ReportedKind::Run => inputs.run = Some(inputs.dir.clone()),
            ReportedKind::Sweep | ReportedKind::Dag => inputs.read_trials()?,
        }
        let results = inputs.dir.clone();
        inputs.read_results(&results)?;
        Ok(inputs)
    }

    /// What a job, such as those of a DAG, has of `sweep`, whose trials have all ended as `rows` say; `results` has the
    /// scores and the choices, as far as they are known.
    ///
    /// # Errors
    /// Fails for files that cannot be read.
    pub fn of_job(sweep: &SweepFolder, rows: &[TrialRow], results: &Path) -> Result<ReportInputs> {
        let mut inputs = ReportInputs {
            is_anonymous: false,
            is_job: true,
            reload_s: None,
            config: sweep.config.clone(),
            // The commands for a sweep make the same again, also what a DAG has made.
            kind: ReportedKind::Sweep,
            trials: Vec::new(),
            planned: sweep.plan.trials,
            is_dag_over: false,
            failed_nodes: BTreeMap::new(),
            best: None,
            best_of_waits: None,
            choices: Vec::new(),
            run: None,
            evaluation: None,
            dir: sweep.dir.clone(),
        };
        let mut valued = Vec::new();
        for row in rows {
            inputs.add_row(row, &mut valued);
        }
        inputs.choose(valued);
        inputs.read_results(results)?;
        Ok(inputs)
    }

    /// Reads what was chosen and how good it is from the directory `results`.
    fn read_results(&mut self, results: &Path) -> Result<()> {
        let mut run = self.run.clone();
        if let Some(best) = &mut self.best {
            let written: Option<BestModel> = read_if_there(&results.join(sweep::BEST_FILE))?;
            best.ensemble = written
                .filter(|written| written.trial == best.trial)
                .and_then(|written| written.ensemble);
            self.run = Some(best.judged_dir(&self.dir, results));
            run = Some(best.dir(results));
        }
        if let Some(run) = run {
            self.evaluation = read_if_there(&evaluation_path(&run, SplitSide::Test))?;
        }
        if self.kind != ReportedKind::Run {
            let selection = results.join(sweep::SELECTION_FILE);
            self.choices = read_if_there(&selection)?.unwrap_or_default();
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
            if self.is_over_waits() {
                let best = sweep::best_outcome(self.metric(), &outcomes);
                self.best_of_waits = best.map(|best| best.trial);
            }
            for at in 0..outcomes.all().len() {
                self.add_row(&outcomes.row(at)?, &mut results);
            }
        }

        self.choose(results);
        Ok(())
    }

    /// Reads what DAGMan says of the jobs of the DAG; nothing before it has begun.
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
        self.trials.push(ReportedTrial::from_row(row));
        if row.config.trial_source() == TrialSource::Logs {
            results.push(TrialResult::from(row));
        }
    }

    /// The directory of the best run, once all trials have ended.
    pub fn best_run(&self) -> Option<&Path> {
        self.run.as_deref().filter(|_| !self.is_running())
    }

    /// The directory of the best trial, whose model answers alone or with others, once all trials have
    /// ended; of a run its own.
    pub fn best_trial_dir(&self) -> Option<PathBuf> {
        if self.is_running() {
            return None;
        }
        let best = self.best.as_ref().map(|best| best.trial);
        match best.or(self.best_of_waits) {
            Some(trial) => Some(sweep::trial_dir(&self.dir, trial)),
            None => self.run.clone(),
        }
    }

    /// What the sweep chooses by.
    pub(super) fn metric(&self) -> &Metric {
        &self.config.wandb.sweep.metric
    }

    /// Whether numbers are predicted, and no classes.
    pub(super) fn predicts_numbers(&self) -> bool {
        self.config.data.task == PredictionTask::Regression
    }

    /// Whether it learns from samples of waits.
    pub(super) fn is_over_waits(&self) -> bool {
        self.config.trial_source() == TrialSource::WaitSamples
    }

    /// The best trial, counted from 1; of tables that of the first split.
    pub(super) fn best_trial(&self) -> Option<usize> {
        let of_logs = self.best.as_ref().map(|best| best.trial);
        of_logs
            .or(self.best_of_waits)
            .or_else(|| Some(self.choices.first()?.trial))
    }

    /// How commands name the directory.
    pub(super) fn dir_argument(&self) -> String {
        if self.is_anonymous || self.is_job {
            "DIR".to_owned()
        } else {
            words::quoted(&self.dir.to_string_lossy())
        }
    }

    /// The trials, the best first; those without a value come last.
    pub(super) fn ranked_trials(&self) -> Vec<&ReportedTrial> {
        let goal = self.metric().goal;
        let mut ranked: Vec<&ReportedTrial> = self.trials.iter().collect();
        ranked.sort_by(|a, b| match (a.value, b.value) {
            (Some(a_value), Some(b_value)) => goal
                .order((a_value, 0.0), (b_value, 0.0))
                .then(a.trial.cmp(&b.trial)),
            (a_value, b_value) => b_value.is_some().cmp(&a_value.is_some()),
        });
        // Of equals, what decides is known where the best was chosen.
        if let Some(best) = self.best_trial() {
            ranked.sort_by_key(|trial| trial.trial != best);
        }
        ranked
    }

    /// What the report is about.
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

    /// What stands below the title.
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

    /// Whether trials are still to end.
    pub fn is_running(&self) -> bool {
        let has_rest = self.trials.len() < self.planned && self.kind != ReportedKind::Run;
        has_rest && !self.is_dag_over
            || self.kind == ReportedKind::Sweep
                && !self.is_job
                && !self.dir.join(sweep::ROWS_FILE).is_file()
    }
}

/// What `dir` is.
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

    // A training that goes on has no manifest yet.
    let is_training = format.is_none() && dir.join(config::FILE).is_file();
    ensure!(
        is_training,
        hinted(
            format!("`{}` is neither a run nor a sweep nor a DAG", dir.display()),
            "name the directory that `poolcast run`, `sweep init`, `dag` or `train` wrote"
        )
    );
    Ok(ReportedKind::Run)
}

/// The JSON document at `path`, if there is one.
fn read_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    if !path.is_file() {
        return Ok(None);
    }
    let text = files::read_regular(path, MOST_JSON_BYTES)?;
    let value = serde_json::from_slice(&text);
    value
        .map(Some)
        .with_context(|| format!("cannot read `{}`", path.display()))
}
