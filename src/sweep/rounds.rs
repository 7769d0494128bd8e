//! What came of a sweep's trials so far → the items to work on next, what each tries, and when one ends early. All of it
//! follows from the configuration and from items that have ended, and never from how fast one is: the same seed gives the
//! same trials with any number of workers.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::network_draws::network_trial_count;
use super::trial_row::TrialRow;
use super::trials::SweepTrials;
use crate::config::{Asha, Config, EarlyTerminate, Method};
use crate::queue::{TrialChunk, WorkItem};
use crate::search::pruners::asha::{RungItem, RungResult, promoted_items};
use crate::search::pruners::hyperband::{Trajectory, stopped_trials};
use crate::search::{ObservedTrial, point_of_trial};
use crate::training::Epoch;

/// The trials of a round where trials learn from others; those of one round do not know what came of each other.
const TRIALS_OF_ROUND: usize = 4;

/// What to add to the queue of a sweep of `trials` once everything in it has ended: the next round of trials, or further rungs of
/// the best. Nothing, when the sweep is over. `rows` are those of networks; `is_first` says that nothing was added before.
pub(super) fn next_chunks(
    trials: &SweepTrials,
    rows: &[TrialRow],
    is_first: bool,
) -> Result<Vec<TrialChunk>> {
    let config = trials.config();
    let count = network_trial_count(config)?;
    let begun = rows
        .iter()
        .map(|row| row.trial)
        .filter(|trial| *trial <= count)
        .max()
        .unwrap_or(0);
    if begun < count || is_first {
        let last = if learns_from_earlier(config) {
            count.min(begun + TRIALS_OF_ROUND)
        } else {
            count
        };
        let networks = (begun + 1..=last).map(|trial| {
            WorkItem {
                trial,
                budget: first_rung_epochs(config),
            }
            .into()
        });
        // Trials of pipelines learn from nobody, and know no epochs.
        let fits = if is_first {
            trials.pipeline_chunks()
        } else {
            Vec::new()
        };
        return Ok(trials.in_order(networks.chain(fits).collect()));
    }
    let items = asha_settings(config).map_or(Vec::new(), |asha| promotions(config, asha, rows));
    Ok(items.into_iter().map(TrialChunk::from).collect())
}

/// Whether [`next_chunks`] gives items once only.
pub(super) fn adds_once(config: &Config) -> bool {
    !learns_from_earlier(config) && asha_settings(config).is_none()
}

/// Whether what a trial tries, or when it ends, depends on trials of earlier rounds.
pub(super) fn learns_from_earlier(config: &Config) -> bool {
    let sweep = &config.wandb.sweep;
    sweep.method == Method::Bayes
        || matches!(sweep.early_terminate, Some(EarlyTerminate::Hyperband(_)))
}

/// The configuration of `trial`, counted from 1; `rows` has those of all trials of earlier rounds.
pub(super) fn trial_config(
    trials: &SweepTrials,
    trial: usize,
    rows: &[TrialRow],
) -> Result<Config> {
    let config = trials.config();
    if config.wandb.sweep.method != Method::Bayes {
        return trials.draw(trial, &[]);
    }
    let before = last_trial_before_round(trial);
    let observed = |row: &TrialRow| -> Result<_> {
        Ok((
            row.trial,
            ObservedTrial {
                point: point_of_trial(config, &row.config)?,
                value: best_value_within(config, row, first_rung_epochs(config)),
            },
        ))
    };
    let known = rows
        .iter()
        .filter(|row| row.trial <= before && row.budget == first_rung_epochs(config))
        .map(observed);
    let known: BTreeMap<usize, ObservedTrial> = known.collect::<Result<_>>()?;
    let mut history: Vec<ObservedTrial> = known.into_values().collect();
    for earlier in before + 1..trial {
        let drawn = trials.draw(earlier, &history)?;
        history.push(ObservedTrial {
            point: point_of_trial(config, &drawn)?,
            value: None,
        });
    }
    trials.draw(trial, &history)
}

/// Whether `item`, which has gone through `epochs`, ends here: at its rung, or as hyperband stops it among the trials of
/// earlier rounds, of which `rows` has all.
pub(super) fn ends_after(
    config: &Config,
    item: WorkItem,
    rows: &[TrialRow],
    epochs: &[Epoch],
) -> bool {
    if epochs.len() >= item.budget {
        return true;
    }
    let sweep = &config.wandb.sweep;
    let Some(EarlyTerminate::Hyperband(hyperband)) = &sweep.early_terminate else {
        return false;
    };
    let known = rows
        .iter()
        .filter(|row| row.trial <= last_trial_before_round(item.trial));
    let own = epochs
        .iter()
        .filter_map(|epoch| epoch.watched(sweep.metric.name))
        .collect();
    let all: Vec<Trajectory> = known
        .map(|row| Trajectory {
            is_running: false,
            values: row.values.iter().copied().flatten().collect(),
        })
        .chain([Trajectory {
            is_running: true,
            values: own,
        }])
        .collect();
    !stopped_trials(hyperband, sweep.metric.goal, &all).is_empty()
}

/// The last trial before the round of `trial`.
fn last_trial_before_round(trial: usize) -> usize {
    trial.saturating_sub(1) / TRIALS_OF_ROUND * TRIALS_OF_ROUND
}

/// The epochs that a trial is given at first.
fn first_rung_epochs(config: &Config) -> usize {
    asha_settings(config).map_or(config.epochs, |asha| asha.rungs(config.epochs)[0])
}

/// The rungs of trials that may be promoted.
pub(super) fn asha_settings(config: &Config) -> Option<&Asha> {
    match &config.wandb.sweep.early_terminate {
        Some(EarlyTerminate::Asha(asha)) => Some(asha),
        _ => None,
    }
}

/// The trials that are promoted, each to its next rung.
fn promotions(config: &Config, asha: &Asha, rows: &[TrialRow]) -> Vec<WorkItem> {
    let rungs = asha.rungs(config.epochs);
    let done: Vec<RungResult> = rows
        .iter()
        .filter(|row| row.config.pipelines.is_empty())
        .filter_map(|row| {
            let rung = rungs.iter().position(|budget| *budget == row.budget)?;
            Some(RungResult {
                item: RungItem {
                    trial: row.trial,
                    rung,
                },
                value: best_value_within(config, row, row.budget),
            })
        })
        .collect();
    let begun: BTreeSet<RungItem> = done.iter().map(|done| done.item).collect();
    let items = promoted_items(
        rungs.len(),
        asha.eta,
        config.wandb.sweep.metric.goal,
        &done,
        &begun,
    );
    items
        .into_iter()
        .map(|item| WorkItem {
            trial: item.trial,
            budget: rungs[item.rung],
        })
        .collect()
}

/// The best value of a trial within so many epochs; `None` where it failed.
fn best_value_within(config: &Config, row: &TrialRow, epochs: usize) -> Option<f64> {
    let values = row.values.iter().take(epochs).copied().flatten();
    config
        .wandb
        .sweep
        .metric
        .goal
        .best(values, |value| *value)
        .filter(|_| row.error.is_none())
}
