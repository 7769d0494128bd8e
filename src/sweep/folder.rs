//! A configuration and its tensors → the folder of a sweep, that any number of workers share.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rand::seq::SliceRandom as _;
use serde::{Deserialize, Serialize};

use super::queue::{Item, Queue, Settings};
use super::results;
use super::suggest::{count, draw};
use super::trial::tensors_dir;
use crate::config::{Config, Method};
use crate::error::hinted;
use crate::manifest;
use crate::shard::Format;
use crate::tensors::TENSORS;
use crate::training;

/// Folders of sweeps.
pub const SWEEP: Format = Format { name: "sweep", version: 1, rebuild: "poolcast sweep init CONFIG -o DIR" };

/// The priority of items that nobody prefers.
const PRIORITY: u8 = 100;

/// What a sweep does, as its manifest says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// How many trials there are.
    pub trials: usize,
    /// The digests of the tensors by the names of their directories.
    pub tensors: BTreeMap<String, String>,
}

/// The folder of a sweep.
#[derive(Debug)]
pub struct Sweep {
    /// Where it is.
    pub dir: PathBuf,
    /// The search space and everything else.
    pub config: Config,
    /// What there is to do.
    pub plan: Plan,
}

impl Sweep {
    /// The sweep that `config` describes, in the folder `dir`, where its tensors are: the one that is there, if it is the
    /// same and `anew` is false, else a new one in its place.
    ///
    /// # Errors
    /// Fails where something else than a sweep is.
    pub fn init(dir: &Path, config: &Config, anew: bool) -> Result<Sweep> {
        check_place(dir)?;
        let (plan, key) = plan(dir, config)?;
        if !anew && manifest::finished_key(dir, SWEEP).as_ref() == Some(&key) {
            return Sweep::open(dir);
        }
        results::clear(dir)?;
        config.write(dir)?;
        Queue::create(&queue_dir(dir), Settings::default())?;
        manifest::write(dir, SWEEP, &key, &plan)?;
        Sweep::open(dir)
    }

    /// The sweep in `dir`, if there is one.
    ///
    /// # Errors
    /// Fails when it is not the one that `config` describes: workers may be at it.
    pub fn begun(dir: &Path, config: &Config) -> Result<Option<Sweep>> {
        check_place(dir)?;
        if !dir.join(manifest::FILE).exists() {
            return Ok(None);
        }
        let sweep = Sweep::open(dir)?;
        ensure!(
            serde_json::to_value(config)? == serde_json::to_value(&sweep.config)?,
            hinted(format!("`{}` holds another sweep", dir.display()), "name another directory, or add `--overwrite`")
        );
        Ok(Some(sweep))
    }

    /// Opens the sweep in `dir`.
    ///
    /// # Errors
    /// Fails on a folder that is no sweep, or one of another version.
    pub fn open(dir: &Path) -> Result<Sweep> {
        let plan = manifest::read::<Plan>(dir, SWEEP)?.body;
        Ok(Sweep { dir: dir.to_owned(), config: Config::read(dir)?, plan })
    }

    /// Its queue; `None` once all has ended.
    pub fn queue(&self) -> Result<Option<Queue>> {
        if self.is_finished() {
            return Ok(None);
        }
        match Queue::open(&queue_dir(&self.dir)) {
            // It ended in between.
            Err(_) if self.is_finished() => Ok(None),
            queue => {
                queue.map(Some).with_context(|| format!("cannot go on with the sweep in `{}`", self.dir.display()))
            }
        }
    }

    /// Whether all trials have ended, and their results are there.
    pub fn is_finished(&self) -> bool {
        self.dir.join(results::ROWS_FILE).is_file()
    }

    /// The configuration of an item's trial.
    pub fn trial(&self, item: Item) -> Result<Config> {
        Ok(Config { epochs: item.budget, ..draw(&self.config, item.trial, &[])? })
    }

    /// Adds all trials to `queue`, in an order by seed, so that whatever part of them is done says something of all.
    pub(super) fn fill(&self, queue: &Queue) -> Result<()> {
        let budget = self.config.epochs;
        let mut items: Vec<Item> = (1..=self.plan.trials).map(|trial| Item { trial, budget }).collect();
        items.shuffle(&mut crate::seed::generator(self.config.seed, "trial order", &[]));
        queue.add(0, PRIORITY, &items)?;
        queue.seal(items.len())
    }
}

/// Fails for sweeps whose trials depend on what came of others: workers do not wait for each other.
pub fn check_method(config: &Config) -> Result<()> {
    let sweep = &config.wandb.sweep;
    ensure!(
        sweep.method != Method::Bayes && sweep.early_terminate.is_none(),
        hinted(
            "workers that share a folder do not learn from each other's trials, as `bayes` and `early_terminate` do",
            "run it on one machine with `poolcast run`, or use `method: random`, `sobol` or `grid`"
        )
    );
    Ok(())
}

/// Fails where an artefact of another kind is, which no sweep may replace.
pub fn check_place(dir: &Path) -> Result<()> {
    let path = dir.join(manifest::FILE);
    let found: serde_json::Value = if path.exists() { manifest::read_json(&path)? } else { return Ok(()) };
    ensure!(
        found["format"] == SWEEP.name,
        hinted(format!("`{}` holds {}, not a sweep", dir.display(), found["format"]), "name another directory")
    );
    Ok(())
}

/// Where the queue of the sweep in `dir` is.
pub(super) fn queue_dir(dir: &Path) -> PathBuf {
    dir.join("queue")
}

/// What there is to do, and the digest of everything that decides its results.
fn plan(dir: &Path, config: &Config) -> Result<(Plan, String)> {
    let mut tensors = BTreeMap::new();
    let trials = count(config)?;
    let mut keys = Vec::with_capacity(trials);
    for trial in 1..=trials {
        let config = draw(config, trial, &[])?;
        // A trial that cannot be is found out by the worker that takes it, and fails alone.
        let Ok(place) = tensors_dir(dir, &config) else {
            keys.push(serde_json::to_string(&config.preprocessing)?);
            continue;
        };
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tensors_key = match tensors.get(&name) {
            Some(key) => key,
            None => tensors.entry(name).or_insert(manifest::read::<serde_json::Value>(&place, TENSORS)?.key),
        };
        keys.push(match training::Settings::of(&config) {
            Ok(settings) => settings.key(tensors_key)?,
            Err(_) => serde_json::to_string(&config.training)?,
        });
    }
    Ok((Plan { trials, tensors }, manifest::key(&keys)?))
}
