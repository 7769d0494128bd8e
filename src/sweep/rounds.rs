//! A sweep → its trials, round by round on this machine: what a round learns from are the rounds before it, and never how
//! fast a trial is, so that the same seed gives the same trials with any number of threads.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::asha::{Done, Item, promoted};
use super::best::TrialResult;
use super::hyperband::{Trajectory, stopped};
use super::local::Machine;
use super::space::point;
use super::suggest::{Observed, count, draw};
use super::trial::trial_dir;
use crate::config::{Asha, Config, EarlyTerminate, Goal, Hyperband, Method};
use crate::training::{Epoch, Status, read_history};

/// The trials of a round where trials learn from others.
const ROUND: usize = 4;

/// Runs the sweep of `config` in its directory with so many `threads`, and returns its trials: their configurations and
/// how they went. `prepare` is called before each round with the configurations of its trials, and has to make their
/// tensors; `progress` hears of each epoch with its trial.
///
/// # Errors
/// Fails where a trial cannot be drawn or run; one whose loss is no number has failed, and the others go on.
pub fn run_sweep(
    config: &Config,
    threads: usize,
    prepare: impl FnMut(&[Config]) -> Result<()>,
    progress: impl Fn(usize, &Epoch) + Sync,
) -> Result<(Vec<Config>, Vec<TrialResult>)> {
    let machine = Machine { out: &config.out, threads, progress: &progress };
    let mut sweep = Sweep { config, machine, configs: Vec::new(), results: Vec::new() };
    sweep.rounds(prepare)?;
    if let Some(EarlyTerminate::Asha(asha)) = &config.wandb.sweep.early_terminate {
        sweep.climb(asha)?;
    }
    Ok((sweep.configs, sweep.results))
}

/// A sweep at work: the trials so far, the first at place 0.
struct Sweep<'a> {
    config: &'a Config,
    machine: Machine<'a>,
    configs: Vec<Config>,
    results: Vec<TrialResult>,
}

impl Sweep<'_> {
    /// Every trial once: to its end, or to its first rung.
    fn rounds(&mut self, mut prepare: impl FnMut(&[Config]) -> Result<()>) -> Result<()> {
        let count = count(self.config)?;
        let sweep = &self.config.wandb.sweep;
        let learns =
            sweep.method == Method::Bayes || matches!(sweep.early_terminate, Some(EarlyTerminate::Hyperband(_)));
        while self.configs.len() < count {
            let before = self.configs.len();
            self.draw(if learns { count.min(before + ROUND) } else { count })?;
            prepare(&self.configs[before..])?;
            let known = self.histories(before)?;
            let numbered: Vec<(usize, &Config)> = (1..).zip(&self.configs).skip(before).collect();
            let ends = |_: usize, epochs: &[Epoch]| match &sweep.early_terminate {
                None => false,
                Some(EarlyTerminate::Hyperband(hyperband)) => self.is_behind(hyperband, &known, epochs),
                Some(EarlyTerminate::Asha(asha)) => epochs.len() >= asha.rungs(self.config.epochs)[0],
            };
            let results = self.machine.run(&numbered, ends)?;
            self.results.extend(results);
        }
        Ok(())
    }

    /// Draws trials until there are `count`; those of this round do not know what came of each other.
    fn draw(&mut self, count: usize) -> Result<()> {
        let mut history = self.observed()?;
        for trial in self.configs.len() + 1..=count {
            let drawn = draw(self.config, trial, &history)?;
            if self.config.wandb.sweep.method == Method::Bayes {
                history.push(Observed { point: point(self.config, &drawn)?, value: None });
            }
            self.configs.push(drawn);
        }
        Ok(())
    }

    /// What the method learns from: with `bayes` all trials so far, else nothing.
    fn observed(&self) -> Result<Vec<Observed>> {
        if self.config.wandb.sweep.method != Method::Bayes {
            return Ok(Vec::new());
        }
        let observed = |(trial, config)| {
            Ok(Observed { point: point(self.config, config)?, value: self.value(trial, self.first_rung())? })
        };
        (1..).zip(&self.configs).map(observed).collect()
    }

    /// Further rungs, until nobody is promoted any more.
    fn climb(&mut self, asha: &Asha) -> Result<()> {
        let rungs = asha.rungs(self.config.epochs);
        let mut begun: BTreeSet<Item> = (1..=self.configs.len()).map(|trial| Item { trial, rung: 0 }).collect();
        loop {
            let done = self.done(&begun, &rungs)?;
            let items = promoted(rungs.len(), asha.eta, self.goal(), &done, &begun);
            if items.is_empty() {
                return Ok(());
            }
            let epochs: BTreeMap<usize, usize> = items.iter().map(|item| (item.trial, rungs[item.rung])).collect();
            let trials: Vec<(usize, &Config)> = epochs.keys().map(|trial| (*trial, &self.configs[trial - 1])).collect();
            for result in self.machine.run(&trials, |trial, history| history.len() >= epochs[&trial])? {
                let place = result.trial - 1;
                self.results[place] = result;
            }
            begun.extend(items);
        }
    }

    fn done(&self, begun: &BTreeSet<Item>, rungs: &[usize]) -> Result<Vec<Done>> {
        begun.iter().map(|item| Ok(Done { item: *item, value: self.value(item.trial, rungs[item.rung])? })).collect()
    }

    /// The best value of a trial within so many epochs; `None` where it failed.
    fn value(&self, trial: usize, epochs: usize) -> Result<Option<f64>> {
        let goal = self.goal();
        let values = self.values(&read_history(&trial_dir(self.machine.out, trial))?[..], epochs);
        let metrics = self.results[trial - 1].metrics.as_ref();
        let failed = metrics.is_none_or(|metrics| metrics.status == Status::NonFinite);
        Ok(goal.best(values.into_iter(), |value| *value).filter(|_| !failed))
    }

    /// The values of the watched metric in the first `epochs` of `history`, where it is defined.
    fn values(&self, history: &[Epoch], epochs: usize) -> Vec<f64> {
        let name = self.config.wandb.sweep.metric.name;
        let watched = history.iter().take(epochs).map(|epoch| epoch.watched(name));
        watched.flatten().collect()
    }

    /// The values of the first `count` trials.
    fn histories(&self, count: usize) -> Result<Vec<Trajectory>> {
        let history = |trial| -> Result<Trajectory> {
            let values = self.values(&read_history(&trial_dir(self.machine.out, trial))?, usize::MAX);
            Ok(Trajectory { is_running: false, values })
        };
        (1..=count).map(history).collect()
    }

    /// Whether hyperband stops the trial with these `epochs` among those `known`.
    fn is_behind(&self, hyperband: &Hyperband, known: &[Trajectory], epochs: &[Epoch]) -> bool {
        let own = Trajectory { is_running: true, values: self.values(epochs, usize::MAX) };
        let all: Vec<Trajectory> = known.iter().cloned().chain([own]).collect();
        !stopped(hyperband, self.goal(), &all).is_empty()
    }

    fn first_rung(&self) -> usize {
        match &self.config.wandb.sweep.early_terminate {
            Some(EarlyTerminate::Asha(asha)) => asha.rungs(self.config.epochs)[0],
            _ => usize::MAX,
        }
    }

    fn goal(&self) -> Goal {
        self.config.wandb.sweep.metric.goal
    }
}
