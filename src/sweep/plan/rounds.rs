//! Schedules a sweep's trials: which items to work on next, which parameters each of them tries,
//! and when one ends early. All of this depends only on the configuration and on ended items, never
//! on the speed of a trial. Thus the same seed gives the same trials with any number of workers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::earlier_trial::EarlierTrial;
use super::network_draws::network_trial_count;
use super::trials::SweepTrials;
use crate::config::{Asha, Config, EarlyTerminate, Method};
use crate::search::pruners::asha::{RungItem, RungResult, promoted_items};
use crate::search::pruners::hyperband::{Trajectory, stopped_trials};
use crate::search::{ObservedTrial, SearchPoint, SearchSpace};
use poolcast_holds::training::Epoch;
use poolcast_queue::{TrialChunk, WorkItem};

/// Trials per round, if trials learn from others. The trials of one round do not use each other's
/// results.
const TRIALS_PER_ROUND: usize = 4;

/// Returns the chunks to add to the queue of a sweep of `trials` once everything in it has ended.
/// These are the next round of trials, or more rungs of the best trials. Returns nothing if the
/// sweep is over. `ended` are the ended networks. `is_first` is true if nothing was added before.
pub(crate) fn next_chunks(
    trials: &SweepTrials,
    ended: &[EarlierTrial],
    is_first: bool,
) -> Result<Vec<TrialChunk>> {
    let config = trials.config();
    let count = network_trial_count(config)?;
    let networks = ended.iter().map(|one| one.trial);
    let begun = networks.filter(|trial| *trial <= count).max().unwrap_or(0);

    if begun == count && !is_first {
        let items =
            asha_settings(config).map_or(Vec::new(), |asha| promotions(config, asha, ended));
        return Ok(items.into_iter().map(TrialChunk::from).collect());
    }

    let last = if learns_from_earlier(config) {
        count.min(begun + TRIALS_PER_ROUND)
    } else {
        count
    };
    let budget = first_rung_epochs(config);
    let mut chunks: Vec<TrialChunk> = (begun + 1..=last)
        .map(|trial| WorkItem { trial, budget }.into())
        .collect();
    if is_first {
        // Trials of pipelines do not learn from others and have no epochs, so all of them are added
        // at once.
        chunks.extend(trials.pipeline_chunks());
    }
    Ok(trials.in_order(chunks))
}

/// Returns true if [`next_chunks`] returns items only once.
pub(crate) fn adds_items_only_once(config: &Config) -> bool {
    !learns_from_earlier(config) && asha_settings(config).is_none()
}

/// Returns true if a trial's parameters or its end depend on trials of earlier rounds.
pub(crate) fn learns_from_earlier(config: &Config) -> bool {
    let sweep = &config.wandb.sweep;
    sweep.method == Method::Bayes
        || matches!(sweep.early_terminate, Some(EarlyTerminate::Hyperband(_)))
}

/// The configuration of `trial`, counted from 1, as it is written. `ended` has all trials of
/// earlier rounds.
pub(crate) fn trial_config(
    trials: &SweepTrials,
    trial: usize,
    ended: &[EarlierTrial],
) -> Result<Config> {
    let config = trials.config();
    if config.wandb.sweep.method != Method::Bayes {
        return trials.draw(trial, &[]);
    }

    let space = SearchSpace::from_config(config);
    let before = last_trial_before_round(trial);
    let budget = first_rung_epochs(config);
    let mut known: BTreeMap<usize, ObservedTrial> = BTreeMap::new();
    for one in ended {
        if one.trial <= before && one.budget == budget {
            let observed = ObservedTrial {
                point: point_of(&space, one),
                value: observed_value(config, one, budget),
            };
            known.insert(one.trial, observed);
        }
    }

    // The earlier trials of this round count as running, even if they have ended. So the trial does
    // not depend on the speed of any worker.
    let mut history: Vec<ObservedTrial> = known.into_values().collect();
    for earlier in before + 1..trial {
        let point = trials.network_point(earlier, &history)?;
        history.push(ObservedTrial { point, value: None });
    }
    trials.draw(trial, &history)
}

/// The point of `space` that `ended` tried.
fn point_of(space: &SearchSpace, ended: &EarlierTrial) -> SearchPoint {
    let mut point = SearchPoint::new();
    for (name, _) in space.parameters() {
        // A wait model lacks a parameter that was drawn as null.
        let value = ended.parameters.get(name);
        point.insert(name.clone(), value.cloned().unwrap_or_default());
    }
    point
}

/// Returns true if `item`, which has finished `epochs`, ends here: at its rung, or because
/// hyperband stops it among the trials of earlier rounds. `ended` has all trials of those rounds.
pub(crate) fn ends_after(
    config: &Config,
    item: WorkItem,
    ended: &[EarlierTrial],
    epochs: &[Epoch],
) -> bool {
    let name = config.wandb.sweep.metric.name;
    let values = epochs.iter().filter_map(|epoch| epoch.watched(name));
    epochs.len() >= item.budget || is_behind(config, item.trial, ended, values.collect())
}

/// Returns true if hyperband stops `trial`, whose metric had these `values`, among the trials of
/// earlier rounds. `ended` has all trials of those rounds.
pub(crate) fn is_behind(
    config: &Config,
    trial: usize,
    ended: &[EarlierTrial],
    values: Vec<f64>,
) -> bool {
    let sweep = &config.wandb.sweep;
    let Some(EarlyTerminate::Hyperband(hyperband)) = &sweep.early_terminate else {
        return false;
    };

    let before = last_trial_before_round(trial);
    let mut trajectories: Vec<Trajectory> = ended
        .iter()
        .filter(|one| one.trial <= before)
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

/// The last trial before the round of `trial`.
fn last_trial_before_round(trial: usize) -> usize {
    trial.saturating_sub(1) / TRIALS_PER_ROUND * TRIALS_PER_ROUND
}

/// The number of epochs that a trial is given at first.
fn first_rung_epochs(config: &Config) -> usize {
    asha_settings(config).map_or(config.epochs, |asha| asha.rungs(config.epochs)[0])
}

/// The ASHA settings, if trials may be promoted from rung to rung.
pub(crate) fn asha_settings(config: &Config) -> Option<&Asha> {
    match &config.wandb.sweep.early_terminate {
        Some(EarlyTerminate::Asha(asha)) => Some(asha),
        _ => None,
    }
}

/// Returns the promoted trials, each with the budget of its next rung.
fn promotions(config: &Config, asha: &Asha, ended: &[EarlierTrial]) -> Vec<WorkItem> {
    let rungs = asha.rungs(config.epochs);
    let mut done = Vec::new();
    for one in ended {
        let Some(rung) = rungs.iter().position(|budget| *budget == one.budget) else {
            continue;
        };
        let trial = one.trial;
        done.push(RungResult {
            item: RungItem { trial, rung },
            // Never promote a trial that a user stopped.
            value: best_value_within(config, one, one.budget).filter(|_| !one.ended_on_request),
        });
    }

    let begun: BTreeSet<RungItem> = done.iter().map(|done| done.item).collect();
    let goal = config.wandb.sweep.metric.goal;
    let promoted = promoted_items(rungs.len(), asha.eta, goal, &done, &begun);
    promoted
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
