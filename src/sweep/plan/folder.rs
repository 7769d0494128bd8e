//! The folder of a sweep, which any number of workers share. It is made from a configuration and a
//! store of events.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

use super::given_points::{GivenPoints, POINTS_FILE};
use super::paths::{
    BEST_FILE, INFO_FILE, LOG_FILE, ROWS_FILE, SELECTION_FILE, TABLE_FILE, ensemble_dir, queue_dir,
};
use super::proposal::Proposal;
use super::trial_numbers::TrialNumbers;
use super::trials::SweepTrials;
use crate::config::{Config, TrialSource};
use poolcast_base::error::hinted;
use poolcast_base::shard::ArtefactFormat;
use poolcast_base::{files, manifest};
use poolcast_queue::{Queue, QueueSettings, WorkItem};

/// The format of sweep folders.
pub const SWEEP: ArtefactFormat = ArtefactFormat {
    name: "sweep",
    version: 8,
    rebuild: "poolcast sweep init CONFIG -o DIR",
};

/// The plan of a sweep, as stored in its manifest.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SweepPlan {
    /// Number of trials.
    pub trials: usize,
    /// The digest of the store of events that the tensors are made from, of the joined tables, or
    /// of the wait samples. Empty for the trials of a program.
    pub source_key: String,
    /// The numbers of the trials, if the sweep was extended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<TrialNumbers>,
}

/// The folder of a sweep.
#[derive(Debug)]
pub struct SweepFolder {
    /// Its path.
    pub dir: PathBuf,
    /// The configuration, with the search space.
    pub config: Config,
    /// The plan of the work.
    pub plan: SweepPlan,
    trials: OnceLock<SweepTrials>,
}

impl SweepFolder {
    /// Opens or makes the sweep that `config` describes over the store of events or the tables
    /// `source_key`, in the folder `dir`. Keeps a sweep that is already there, if it is the same
    /// and `anew` is false. Otherwise a new sweep replaces it.
    ///
    /// # Errors
    /// Fails if `dir` holds anything other than a sweep.
    pub fn init(dir: &Path, config: &Config, source_key: &str, anew: bool) -> Result<SweepFolder> {
        check_sweep_dir(dir)?;
        let plan = SweepPlan {
            trials: SweepTrials::from_config(config)?.count(),
            source_key: source_key.to_owned(),
            numbers: None,
        };
        if !anew && let Ok(earlier) = SweepFolder::open(dir) {
            let plan = SweepPlan {
                numbers: earlier.plan.numbers,
                ..plan.clone()
            };
            if manifest::finished_key(dir, SWEEP) == Some(sweep_key(config, &plan)?) {
                config.write(dir)?;
                return SweepFolder::open(dir);
            }
        }
        let key = sweep_key(config, &plan)?;
        clear_results(dir)?;
        config.write(dir)?;
        Queue::create(&queue_dir(dir), QueueSettings::default())?;
        manifest::write(dir, SWEEP, &key, &plan)?;
        SweepFolder::open(dir)
    }

    /// The sweep in `dir`, if there is one and it is the sweep that `config` describes.
    ///
    /// # Errors
    /// Fails if `dir` holds anything other than a sweep.
    pub fn open_if_begun(dir: &Path, config: &Config) -> Result<Option<SweepFolder>> {
        check_sweep_dir(dir)?;
        if !dir.join(manifest::FILE).exists() {
            return Ok(None);
        }
        let sweep = SweepFolder::open(dir)?;
        let config = config.with_frames_of(&sweep.config);
        let is_same = serde_json::to_value(&config)? == serde_json::to_value(&sweep.config)?
            && manifest::finished_key(dir, SWEEP) == Some(sweep.key()?);
        Ok(is_same.then_some(sweep))
    }

    /// Opens the sweep in `dir`.
    ///
    /// # Errors
    /// Fails on a folder that is not a sweep, or has another version.
    pub fn open(dir: &Path) -> Result<SweepFolder> {
        let plan = manifest::read::<SweepPlan>(dir, SWEEP)?.body;
        Ok(SweepFolder::new(dir, Config::read(dir)?, plan))
    }

    /// The sweep of `config` in `dir`, even if there is no manifest yet.
    pub fn new(dir: &Path, config: Config, plan: SweepPlan) -> SweepFolder {
        SweepFolder {
            dir: dir.to_owned(),
            config,
            plan,
            trials: OnceLock::new(),
        }
    }

    /// Its trials. They are found once, because that takes a moment for a large grid.
    pub fn trials(&self) -> Result<&SweepTrials> {
        if self.trials.get().is_none() {
            // Another thread may set them first. They are equal, because the configuration
            // determines them.
            let trials = SweepTrials::from_config(&self.config)?;
            let _ = self.trials.set(match &self.plan.numbers {
                Some(numbers) => trials.with_numbers(numbers)?,
                None => trials,
            });
        }
        self.trials
            .get()
            .context("the trials of the sweep are not known")
    }

    /// The configuration of `trial`, counted from 1, as it is written. `proposal` is needed for a trial
    /// that is proposed during the sweep.
    ///
    /// # Errors
    /// Fails for a trial that does not exist, or has no given point yet.
    pub(crate) fn trial_config(&self, trial: usize, proposal: Option<&Proposal>) -> Result<Config> {
        if self.config.wandb.sweep.id.is_some() {
            return GivenPoints::read(&self.dir)?.trial_config(&self.config, trial);
        }
        let trials = self.trials()?;
        match proposal {
            Some(proposal) => Ok(trials.network_config(&proposal.point)),
            None => trials.draw(trial),
        }
    }

    /// Returns true if `trial` is proposed during the sweep.
    ///
    /// # Errors
    /// Fails if the trials cannot be found.
    pub(crate) fn is_proposed(&self, trial: usize) -> Result<bool> {
        let sweep = &self.config.wandb.sweep;
        Ok(sweep.proposes_trials() && self.trials()?.is_network(trial))
    }

    /// Its queue; `None` once all trials have ended.
    pub fn queue(&self) -> Result<Option<Queue>> {
        if self.is_finished() {
            return Ok(None);
        }
        match Queue::open(&queue_dir(&self.dir)) {
            // The sweep ended in between.
            Err(_) if self.is_finished() => Ok(None),
            queue => {
                let most = WorkItem {
                    trial: self.plan.trials,
                    budget: self.config.epochs,
                };
                queue
                    .map(|queue| Some(queue.limited_to(most)))
                    .with_context(|| {
                        format!("cannot continue the sweep in `{}`", self.dir.display())
                    })
            }
        }
    }

    /// The digest of everything that determines its results.
    pub fn key(&self) -> Result<String> {
        sweep_key(&self.config, &self.plan)
    }

    /// Returns true if all trials have ended and their results are written.
    pub fn is_finished(&self) -> bool {
        files::is_regular(&self.dir.join(ROWS_FILE))
    }
}

/// Fails if `dir` holds an artefact of another kind, which no sweep may replace.
pub fn check_sweep_dir(dir: &Path) -> Result<()> {
    let path = dir.join(manifest::FILE);
    let found: serde_json::Value = if path.exists() {
        manifest::read_json(&path)?
    } else {
        return Ok(());
    };
    ensure!(
        found["format"] == SWEEP.name,
        hinted(
            format!(
                "`{}` contains {}, not a sweep",
                dir.display(),
                found["format"]
            ),
            "name another directory"
        )
    );
    Ok(())
}

/// The digest of everything that determines the results of a sweep.
pub(crate) fn sweep_key(config: &Config, plan: &SweepPlan) -> Result<String> {
    let Config {
        seed,
        runs,
        epochs,
        earlystop_threshold,
        earlystop_min_delta,
        ..
    } = config;
    let ends = (epochs, earlystop_threshold, earlystop_min_delta);
    let sweep = (
        seed,
        runs,
        ends,
        &config.wandb.sweep,
        &config.preprocessing,
        &config.training,
    );
    if let Some(command) = &config.command {
        return manifest::key(&(SWEEP.version, sweep, command, plan));
    }
    if config.trial_source() == TrialSource::WaitSamples {
        let learned = (&config.provision.model, &config.provision.cost_ratio);
        return manifest::key(&(SWEEP.version, sweep, learned, plan));
    }
    let sweep = (sweep, &config.data, &config.pipelines);
    manifest::key(&(SWEEP.version, sweep, plan))
}

/// Removes the results and the queue of an earlier sweep in `dir`. Keeps its trials, because a new
/// sweep may reuse them.
fn clear_results(dir: &Path) -> Result<()> {
    let names = [
        manifest::FILE,
        ROWS_FILE,
        TABLE_FILE,
        BEST_FILE,
        SELECTION_FILE,
        INFO_FILE,
        LOG_FILE,
        POINTS_FILE,
    ];
    let results = names.map(|name| dir.join(name));
    let directories = [queue_dir(dir), ensemble_dir(dir)];
    files::remove_all(results.into_iter().chain(directories))
}
