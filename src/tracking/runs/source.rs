//! The runs of a directory, as input for trackers. The directory holds a run, a sweep or a DAG,
//! finished or not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use serde_json::{Map, Value, json};

use super::run_data::{DATA, run_data};
use super::sweep_space::sweep_space;
use super::tracked_run::{TrackedOutcome, TrackedRun, run_id};
use super::tracked_trial::{TrackedSweep, fit_summary, run_from_training};
use poolcast_base::manifest;
use poolcast_holds::training::{FIT, FitSummary, RUN_FORMAT, checkpoint_key};
use poolcast_queue::Queue;
use poolcast_report::{ReportedKind, kind_of};
use poolcast_sweep::condor::{self, DagProgress};
use poolcast_sweep::config::{Config, EarlyTerminate};
use poolcast_sweep::{
    self as sweep, EndedTrial, GivenPoints, SweepFolder, TrialOutcomes, trials_at_work,
};

/// Interval between two passes over a directory whose runs go on.
const POLL_INTERVAL: Duration = Duration::from_secs(15);

/// Interval between two passes if a tracker supplies the points.
const GIVEN_PASS_INTERVAL: Duration = Duration::from_secs(5);

/// A directory whose runs are sent to trackers.
#[derive(Debug, Clone)]
pub struct TrackedSource {
    dir: PathBuf,
    config: Config,
    kind: ReportedKind,
    sweep: TrackedSweep,
    data: Map<String, Value>,
}

impl TrackedSource {
    /// Opens the run, the sweep or the DAG in `dir`.
    ///
    /// # Errors
    /// Fails if `dir` holds none of them.
    pub fn open(dir: &Path) -> Result<TrackedSource> {
        let dir = condor::results_directory(dir)?;
        let kind = kind_of(&dir)?;
        let config = Config::read(&dir)?;
        Ok(TrackedSource {
            sweep: TrackedSweep::from_config(&config),
            data: run_data(&dir, &config),
            dir,
            config,
            kind,
        })
    }

    /// The directory itself, or the directory in it into which a DAG was tidied.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The sweep's search space in W&B's format; `None` for a single run.
    pub fn sweep_space(&self) -> Option<Value> {
        (self.kind != ReportedKind::Run).then(|| sweep_space(&self.config))
    }

    /// Interval between two passes while runs go on. It is shorter if workers wait for points.
    pub(crate) fn pass_interval(&self) -> Duration {
        match self.config.wandb.sweep.id {
            Some(_) => GIVEN_PASS_INTERVAL,
            None => POLL_INTERVAL,
        }
    }

    /// The maximum number of trials of the sweep.
    pub(crate) fn max_trials(&self) -> Result<usize> {
        Ok(sweep::SweepTrials::from_config(&self.config)?.count())
    }

    /// The points that a tracker has supplied so far; `None` if the sweep draws its own points.
    pub(crate) fn given_points(&self) -> Result<Option<GivenPoints>> {
        let is_given = self.config.wandb.sweep.id.is_some();
        is_given.then(|| GivenPoints::read(&self.dir)).transpose()
    }

    /// The queue of the sweep while trials are left; `None` for a single run and for a DAG.
    pub(crate) fn queue(&self) -> Option<Queue> {
        if self.kind != ReportedKind::Sweep {
            return None;
        }
        let folder = SweepFolder::open(&self.dir).ok()?;
        folder.queue().ok().flatten()
    }

    /// Calls `visit` with each run that has begun and keeps one run in memory at a time. Trials
    /// that have ended come first, then those at work. Returns true if all runs have ended.
    ///
    /// # Errors
    /// Fails if a file cannot be read, or if `visit` fails.
    pub fn visit_runs(&self, visit: impl FnMut(TrackedRun) -> Result<()>) -> Result<bool> {
        self.visit_runs_except(&BTreeSet::new(), visit)
    }

    /// Calls `visit` like [`TrackedSource::visit_runs`], but skips the finished trials in `known`
    /// without reading their files.
    pub(crate) fn visit_runs_except(
        &self,
        known: &BTreeSet<usize>,
        mut visit: impl FnMut(TrackedRun) -> Result<()>,
    ) -> Result<bool> {
        let mut visit = |mut run: TrackedRun| {
            self.add_data(&mut run.config);
            visit(run)
        };
        match self.kind {
            ReportedKind::Run => self.visit_run(&mut visit),
            ReportedKind::Sweep => self.visit_sweep(known, &mut visit),
            ReportedKind::Dag => self.visit_dag(known, &mut visit),
        }
    }

    /// A text that identifies this sweep. It is `None` for a single run, and for a DAG whose
    /// samples do not exist yet.
    pub(crate) fn sweep_mark(&self) -> Option<String> {
        Some(format!("poolcast {}", self.sweep_id()?))
    }

    /// The id of this sweep, like [`TrackedRun::run_id`]; `None` as for [`TrackedSource::sweep_mark`].
    pub(super) fn sweep_id(&self) -> Option<String> {
        let folder = match self.kind {
            ReportedKind::Run => return None,
            ReportedKind::Sweep => SweepFolder::open(&self.dir),
            ReportedKind::Dag => condor::open_sweep(&self.dir),
        };
        let key = folder.and_then(|folder| folder.key()).ok()?;
        let name = &self.config.wandb.sweep.name;
        Some(run_id(name, None, &key))
    }

    /// Adds what the runs learned from to the configuration of one of them.
    pub(super) fn add_data(&self, config: &mut Map<String, Value>) {
        config.insert(DATA.to_owned(), json!(self.data));
    }

    /// The outcomes of the trials that have ended.
    pub(super) fn outcomes(&self) -> Result<TrialOutcomes> {
        match self.kind {
            ReportedKind::Dag => {
                let rows = condor::read_rows(&self.dir, &self.config)?;
                Ok(TrialOutcomes::from_rows(rows))
            }
            ReportedKind::Run | ReportedKind::Sweep => {
                TrialOutcomes::read(&SweepFolder::open(&self.dir)?)
            }
        }
    }

    fn visit_run(&self, visit: &mut impl FnMut(TrackedRun) -> Result<()>) -> Result<bool> {
        if manifest::format_name(&self.dir)?.as_deref() == Some(FIT.name) {
            let fit = manifest::read::<FitSummary>(&self.dir, FIT)?;
            let mut run = run_from_training(&self.config, &fit.key, &self.dir);
            if let Some(judged) = fit.body.scores.judged() {
                run.summary.extend(fit_summary(judged));
            }
            visit(TrackedRun {
                outcome: TrackedOutcome::Finished,
                ..run
            })?;
            return Ok(true);
        }

        let finished = manifest::finished_key(&self.dir, RUN_FORMAT);
        let Some(key) = finished.or_else(|| checkpoint_key(&self.dir)) else {
            // The run has no checkpoint yet.
            return Ok(false);
        };
        let run = run_from_training(&self.config, &key, &self.dir);
        let has_ended = run.outcome != TrackedOutcome::Running;
        visit(run)?;
        Ok(has_ended)
    }

    fn visit_sweep(
        &self,
        known: &BTreeSet<usize>,
        visit: &mut impl FnMut(TrackedRun) -> Result<()>,
    ) -> Result<bool> {
        let folder = SweepFolder::open(&self.dir)?;
        let is_over = folder.is_finished();
        let mut at_work = trials_at_work(&folder)?;
        let mut outcomes = TrialOutcomes::read(&folder)?;
        let given = self.given_points()?;
        let named = |mut run: TrackedRun| {
            let trial = run.trial().unwrap_or(0);
            let run_id = given.as_ref().and_then(|given| given.run_id_of(trial));
            run.run_id = run_id.map_or(run.run_id, str::to_owned);
            run
        };
        for at in 0..outcomes.all().len() {
            let trial = outcomes.all()[at].trial;
            // A promoted trial has ended at one rung and goes on at the next one.
            if !known.contains(&trial) && at_work.iter().all(|running| running.trial != trial) {
                let mut run = self.tracked(&outcomes.ended_trial(at)?);
                let has_ended_early = matches!(
                    run.outcome,
                    TrackedOutcome::StoppedEarly | TrackedOutcome::TerminatedEarly
                );
                if !is_over && has_ended_early && self.may_be_promoted() {
                    run.outcome = TrackedOutcome::Running;
                }
                visit(named(run))?;
            }
        }

        at_work.sort_by_key(|running| running.trial);
        for running in &at_work {
            visit(named(self.sweep.run_at_work(running)))?;
        }
        Ok(is_over)
    }

    fn visit_dag(
        &self,
        known: &BTreeSet<usize>,
        visit: &mut impl FnMut(TrackedRun) -> Result<()>,
    ) -> Result<bool> {
        let planned = sweep::SweepTrials::from_config(&self.config)?.count();
        // Read the progress before the rows: a trial that it counts as ended has already written
        // its row.
        let progress = DagProgress::read(&self.dir)?;
        let rows = condor::read_rows(&self.dir, &self.config)?;
        for row in rows.iter().filter(|row| !known.contains(&row.trial)) {
            visit(self.tracked(row))?;
        }
        Ok(rows.len() >= planned || progress.is_some_and(|progress| progress.is_over()))
    }

    /// Returns true if a trial that ended early may go on while the sweep does.
    fn may_be_promoted(&self) -> bool {
        let ends = &self.config.wandb.sweep.early_terminate;
        matches!(ends, Some(EarlyTerminate::Asha(_)))
    }

    fn tracked(&self, trial: &EndedTrial) -> TrackedRun {
        let dir = sweep::trial_dir(&self.dir, trial.trial);
        self.sweep.run_of_ended(trial, &dir)
    }
}
