//! Schedules the trials of a sweep that learn from others, or that continue if they are among the
//! best: which items come next, which parameters each of them tries, and when one ends early. All of
//! this depends only on the configuration, on the proposals so far and on the results that the caller
//! passes.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::earlier_trial::EarlierTrial;
use super::proposal::Proposal;
use super::trials::SweepTrials;
use crate::config::{Asha, Config, EarlyTerminate};
use crate::search::ObservedTrial;
use crate::search::pruners::asha::{RungItem, RungResult, promoted_items};
use crate::search::pruners::hyperband::{Trajectory, stopped_trials};
use poolcast_holds::training::Epoch;
use poolcast_queue::WorkItem;

/// Trials per round of a deterministic sweep, unless its configuration has another number. The trials
/// of one round do not know each other's results.
const DEFAULT_TRIALS_PER_ROUND: usize = 4;

/// Number of running trials for each further item that waits. A worker that ends a trial finds an item
/// there, even if several end between two looks of the manager.
const RUNNING_PER_WAITING: usize = 16;

/// Returns the number of items to propose if there are `workers`, and of the items that were proposed
/// `running` run and `waiting` wait for a worker. Every worker without an item gets one, and a few
/// items wait for the next ones.
pub(crate) fn free_slots(workers: usize, running: usize, waiting: usize) -> usize {
    let reserve = 1 + running / RUNNING_PER_WAITING;
    (workers.saturating_sub(running) + reserve).saturating_sub(waiting)
}

/// Returns true if no proposal will follow `proposals`; `ended` of them had ended before the last
/// one was made. With `asha`, every trial must have had the chance of a promotion.
pub(crate) fn is_complete(trials: &SweepTrials, proposals: &[Proposal], ended: usize) -> bool {
    match trials.config().wandb.sweep.asha() {
        Some(_) => ended == proposals.len(),
        None => proposals.len() == trials.network_count(),
    }
}

/// Returns the next proposals in the sweep of `trials`, after `proposals`. `ended` has the results of
/// the items that have ended; all others count as running. There are at most `free` proposals, but a
/// deterministic sweep gets a whole round as soon as everything has ended.
pub(crate) fn next_proposals(
    trials: &SweepTrials,
    proposals: &[Proposal],
    ended: &[EarlierTrial],
    free: usize,
) -> Result<Vec<Proposal>> {
    let results: BTreeMap<WorkItem, &EarlierTrial> =
        ended.iter().map(|one| (one.item(), one)).collect();

    let mut all = proposals.to_vec();
    for item in next_items(trials, proposals, &results, free) {
        let proposal = propose(trials, &all, &results, item)?;
        all.push(proposal);
    }
    Ok(all.split_off(proposals.len()))
}

/// Returns the items to propose next. Promotions come first, the highest rung before the others (Li et
/// al. 2020).
fn next_items(
    trials: &SweepTrials,
    proposals: &[Proposal],
    results: &BTreeMap<WorkItem, &EarlierTrial>,
    free: usize,
) -> Vec<WorkItem> {
    let config = trials.config();
    let sweep = &config.wandb.sweep;
    let budget = first_rung_epochs(config);
    let begun: BTreeSet<usize> = proposals.iter().map(|one| one.item.trial).collect();
    let new_trials = trials
        .network_trials()
        .filter(|trial| !begun.contains(trial));
    let new_items = new_trials.map(|trial| WorkItem { trial, budget });

    let promoted = || match sweep.asha() {
        Some(asha) => promotions(config, asha, proposals, results),
        None => Vec::new(),
    };
    if !sweep.deterministic {
        return promoted().into_iter().chain(new_items).take(free).collect();
    }

    if proposals.iter().any(|one| !results.contains_key(&one.item)) {
        return Vec::new();
    }
    let round = match sweep.learns_from_earlier() {
        true => sweep.trials_per_round.unwrap_or(DEFAULT_TRIALS_PER_ROUND),
        false => usize::MAX,
    };
    let new_items: Vec<WorkItem> = new_items.take(round).collect();
    if new_items.is_empty() {
        return promoted();
    }
    new_items
}

/// Proposes `item` after `proposals`: draws its parameters, unless it is promoted.
fn propose(
    trials: &SweepTrials,
    proposals: &[Proposal],
    results: &BTreeMap<WorkItem, &EarlierTrial>,
    item: WorkItem,
) -> Result<Proposal> {
    let mut known = proposals.iter();
    if let Some(first) = known.find(|one| one.item.trial == item.trial) {
        return Ok(Proposal {
            item,
            ..first.clone()
        });
    }

    let config = trials.config();
    let mut unseen = Vec::new();
    let mut history = Vec::new();
    for earlier in proposals
        .iter()
        .filter(|one| one.item.budget == item.budget)
    {
        let result = results.get(&earlier.item);
        if result.is_none() {
            unseen.push(earlier.item.trial);
        }
        history.push(ObservedTrial {
            point: earlier.point.clone(),
            value: result.and_then(|one| observed_value(config, one, item.budget)),
        });
    }
    Ok(Proposal {
        item,
        unseen: config.wandb.sweep.learns_from_earlier().then_some(unseen),
        point: trials.network_point(item.trial, &history)?,
    })
}

/// Returns true if `item`, which has finished `epochs`, ends here: at its rung, or because hyperband
/// stops it among the trials that it learns from, `earlier`.
pub(crate) fn ends_after(
    config: &Config,
    item: WorkItem,
    earlier: &[EarlierTrial],
    epochs: &[Epoch],
) -> bool {
    let name = config.wandb.sweep.metric.name;
    let values = epochs.iter().filter_map(|epoch| epoch.watched(name));
    epochs.len() >= item.budget || is_behind(config, earlier, values.collect())
}

/// Returns true if hyperband stops a trial whose metric had these `values`, among the trials that it
/// learns from, `earlier`.
pub(crate) fn is_behind(config: &Config, earlier: &[EarlierTrial], values: Vec<f64>) -> bool {
    let sweep = &config.wandb.sweep;
    let Some(EarlyTerminate::Hyperband(hyperband)) = &sweep.early_terminate else {
        return false;
    };

    let mut trajectories: Vec<Trajectory> = earlier
        .iter()
        .map(|one| Trajectory {
            is_running: false,
            values: one.values.iter().copied().flatten().collect(),
        })
        .collect();
    trajectories.push(Trajectory {
        is_running: true,
        values,
    });
    !stopped_trials(hyperband, sweep.metric.goal, &trajectories).is_empty()
}

/// The number of epochs that a trial is given at first.
fn first_rung_epochs(config: &Config) -> usize {
    let asha = config.wandb.sweep.asha();
    asha.map_or(config.epochs, |asha| asha.rungs(config.epochs)[0])
}

/// Returns the items of promoted trials that were not proposed yet.
fn promotions(
    config: &Config,
    asha: &Asha,
    proposals: &[Proposal],
    results: &BTreeMap<WorkItem, &EarlierTrial>,
) -> Vec<WorkItem> {
    let rungs = asha.rungs(config.epochs);
    let rung_item = |item: WorkItem| {
        let rung = rungs.iter().position(|budget| *budget == item.budget)?;
        Some(RungItem {
            trial: item.trial,
            rung,
        })
    };

    let done: Vec<RungResult> = results
        .values()
        .filter_map(|one| {
            // Never promote a trial that a user stopped.
            let value = best_value_within(config, one, one.budget);
            Some(RungResult {
                item: rung_item(one.item())?,
                value: value.filter(|_| !one.ended_on_request),
            })
        })
        .collect();
    let begun: BTreeSet<RungItem> = proposals
        .iter()
        .filter_map(|one| rung_item(one.item))
        .collect();
    let goal = config.wandb.sweep.metric.goal;
    promoted_items(rungs.len(), asha.eta, goal, &done, &begun)
        .into_iter()
        .map(|item| WorkItem {
            trial: item.trial,
            budget: rungs[item.rung],
        })
        .collect()
}

/// The value that a trial reached within `epochs` epochs; `None` if it failed. For a program, this is
/// the last value that it reported, as for W&B.
fn observed_value(config: &Config, ended: &EarlierTrial, epochs: usize) -> Option<f64> {
    if config.command.is_some() {
        return ended.value.filter(|_| ended.error.is_none());
    }
    best_value_within(config, ended, epochs)
}

/// The best value of a trial within `epochs` epochs; `None` if the trial failed.
fn best_value_within(config: &Config, ended: &EarlierTrial, epochs: usize) -> Option<f64> {
    if ended.error.is_some() {
        return None;
    }
    let values = ended.values.iter().take(epochs).copied().flatten();
    let goal = config.wandb.sweep.metric.goal;
    goal.best(values, |value| *value)
}

/// Proposes `trial` again, from the `rows` of the first rung, which are in the order of trials.
#[cfg(test)]
pub(crate) fn propose_again(
    trials: &SweepTrials,
    rows: &[super::trial_row::EndedTrial],
    trial: usize,
) -> Result<Proposal> {
    let space = crate::search::SearchSpace::from_config(trials.config());
    let row = &rows[trial - 1];
    let earlier = &rows[..trial - 1];
    let rows_before = earlier.iter();
    let proposals: Vec<Proposal> = rows_before
        .map(|one| Proposal::from_row(&space, one))
        .collect();

    let is_seen = |trial| !row.unseen.as_ref().is_some_and(|all| all.contains(&trial));
    let seen = earlier.iter().filter(|one| is_seen(one.trial));
    let ended: Vec<EarlierTrial> = seen.map(|one| one.clone().into()).collect();
    let results = ended.iter().map(|one| (one.item(), one)).collect();
    propose(trials, &proposals, &results, row.item())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng as _;
    use serde_json::json;

    const WORKERS: usize = 64;
    const TRIALS: usize = 640;
    /// Time between two looks of a manager, in seconds: the longest that it waits by default.
    const LOOK_S: f64 = 2.5;
    const MEDIAN_TRIAL_S: f64 = 60.0;

    /// Duration of `item`: log-normal with a standard deviation of 1, for all epochs.
    fn seconds_of(item: WorkItem, epochs: usize) -> f64 {
        let parts = [item.trial as i64];
        let mut generator = poolcast_base::seed::generator(1, "duration", &parts);
        let (radius, angle): (f64, f64) = (generator.random(), generator.random());
        let normal = (-2.0 * (1.0 - radius).ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        MEDIAN_TRIAL_S * normal.exp() * item.budget as f64 / epochs as f64
    }

    fn result_of(proposal: &Proposal) -> EarlierTrial {
        let WorkItem { trial, budget } = proposal.item;
        let mut generator = poolcast_base::seed::generator(1, "value", &[trial as i64]);
        let value: f64 = generator.random();
        EarlierTrial {
            trial,
            budget,
            ended_on_request: false,
            error: None,
            value: Some(value),
            values: vec![Some(value); budget],
            parameters: proposal.point.clone(),
        }
    }

    /// A sweep on simulated workers, at a moment of simulated time.
    #[derive(Default)]
    struct Simulation {
        proposals: Vec<Proposal>,
        ended: Vec<EarlierTrial>,
        /// Numbers of the proposals that wait for a worker.
        waiting: std::collections::VecDeque<usize>,
        /// The end of each running item, in seconds, and the number of its proposal.
        running: Vec<(f64, usize)>,
        /// Time that workers have spent on items, or will have spent once the running ones end.
        busy_s: f64,
        /// The share of time that workers were busy until the last new trial began.
        busy_share: f64,
    }

    impl Simulation {
        fn begin_waiting(&mut self, now_s: f64, epochs: usize) {
            while self.running.len() < WORKERS
                && let Some(number) = self.waiting.pop_front()
            {
                let seconds = seconds_of(self.proposals[number].item, epochs);
                self.running.push((now_s + seconds, number));
                self.busy_s += seconds;
                if self.proposals[number].item.trial == TRIALS && self.busy_share == 0.0 {
                    let left = self.running.iter().map(|(end_s, _)| end_s - now_s);
                    let busy_s = self.busy_s - left.sum::<f64>();
                    self.busy_share = busy_s / (WORKERS as f64 * now_s);
                }
            }
        }

        /// Ends the items that end before `until_s`. Their workers begin waiting items at once.
        fn run_until(&mut self, until_s: f64, epochs: usize) {
            loop {
                self.running.sort_by(|a, b| b.0.total_cmp(&a.0));
                let Some((end_s, number)) = self.running.pop_if(|(end_s, _)| *end_s < until_s)
                else {
                    return;
                };
                self.ended.push(result_of(&self.proposals[number]));
                self.begin_waiting(end_s, epochs);
            }
        }
    }

    /// Simulates a sweep with these keys of `wandb.sweep`. Returns the share of time that workers were
    /// busy until the last new trial began, and the duration of the sweep in seconds.
    fn simulate(sweep: &serde_json::Value) -> (f64, f64) {
        let mut flags = BTreeMap::from([
            ("runs", json!(TRIALS)),
            ("epochs", json!(9)),
            (
                "training.parameters.learning_rate",
                json!({"min": 0.0, "max": 1.0}),
            ),
        ]);
        for (key, value) in sweep.as_object().expect("keys") {
            let path: &str = Box::leak(format!("wandb.sweep.{key}").into_boxed_str());
            flags.insert(path, value.clone());
        }
        let config = Config::load(None, &flags).expect("a configuration");
        let trials = SweepTrials::from_config(&config).expect("trials");
        let is_deterministic = config.wandb.sweep.deterministic;

        let mut state = Simulation::default();
        for look in 0.. {
            let now_s = f64::from(look) * LOOK_S;
            state.run_until(now_s, config.epochs);
            let (running, waiting) = (state.running.len(), state.waiting.len());
            let free = match is_deterministic {
                true => usize::from(running + waiting == 0),
                false => free_slots(WORKERS, running, waiting),
            };
            let ended = state.ended.len();
            if free > 0 {
                let next = next_proposals(&trials, &state.proposals, &state.ended, free);
                for proposal in next.expect("proposals") {
                    state.waiting.push_back(state.proposals.len());
                    state.proposals.push(proposal);
                }
            }
            state.begin_waiting(now_s, config.epochs);
            if ended == state.proposals.len() {
                return (state.busy_share, now_s);
            }
        }
        unreachable!("looks have no end")
    }

    /// `ci/bench/idle` prints these shares. Rounds leave most of 64 workers idle.
    #[test]
    #[expect(clippy::print_stdout, reason = "the lines are for `ci/bench/idle`")]
    fn workers_are_busy_if_trials_differ_in_length() {
        let hyperband = json!({"type": "hyperband", "min_iter": 1});
        let asha = json!({"type": "asha", "min_iter": 1});
        for (name, rule) in [("hyperband", &hyperband), ("asha", &asha)] {
            let mut sweep = json!({"method": "random", "early_terminate": rule});
            let (busy, seconds) = simulate(&sweep);
            sweep["deterministic"] = json!(true);
            let (busy_in_rounds, seconds_in_rounds) = simulate(&sweep);
            println!(
                "{name}: busy for {:.1} % of the time, over after {:.0} min; in rounds {:.1} %, {:.0} min",
                100.0 * busy,
                seconds / 60.0,
                100.0 * busy_in_rounds,
                seconds_in_rounds / 60.0,
            );
            assert!(busy >= 0.95, "{name}: {busy}");
            assert!(seconds < seconds_in_rounds, "{name}: {seconds}");
        }
    }
}
