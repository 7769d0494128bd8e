//! The progress of a sweep, read from its folder.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::Serialize;

use crate::outcomes::BestTrial;
use crate::outcomes::{TrialOutcome, TrialOutcomes};
use crate::plan::SweepFolder;
use crate::plan::TrialEnd;
use poolcast_config::Metric;
use poolcast_holds::training::read_history;
use poolcast_queue::{ChunkEntry, ChunkState, Dispatch, Queue};

/// Maximum number of failures that are shown.
const MAX_FAILURES: usize = 3;

/// The progress of a sweep.
#[derive(Debug, Serialize)]
pub struct SweepStatus {
    /// Number of trials.
    pub trials: usize,
    /// True if all trials have ended and none continues.
    pub is_over: bool,
    /// True if the sweep is paused: no worker claims trials until `sweep resume`.
    pub is_paused: bool,
    /// The state of handing out trials, as last requested on the sweep's tracker page.
    pub hand_out: Dispatch,
    /// Number of trials that ended with a model.
    pub done: usize,
    /// Number of failed trials, by the way in which they ended.
    pub failed: BTreeMap<TrialEnd, usize>,
    /// The first failures of a program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<TrialFailure>,
    /// Running trials.
    pub running: Vec<RunningTrial>,
    /// Number of trials that no worker has claimed yet.
    pub ready: usize,
    /// Number of trials that will not be made, because the sweep was stopped at the target
    /// of its metric or on its tracker page.
    pub unmade: usize,
    /// The manager, with the age of its last heartbeat.
    pub manager: Option<LiveProcess>,
    /// The metric of the choice.
    pub metric: Metric,
    /// The best trial so far.
    pub best: Option<BestTrial>,
    /// Trials per hour, at the mean duration so far and with the current workers.
    pub rate_per_hour: Option<f64>,
    /// Time until the remaining trials end at this rate, in seconds.
    pub remaining_s: Option<f64>,
    /// Bounds of the remaining time, in seconds, with a probability of 90 %. Assumes that the
    /// remaining trials take as long as the ended ones.
    pub remaining_range_s: Option<(f64, f64)>,
}

/// A trial whose program failed.
#[derive(Debug, Serialize)]
pub struct TrialFailure {
    /// The trial's number, from 1.
    pub trial: usize,
    /// The reason.
    pub error: String,
}

/// A worker or a manager.
#[derive(Debug, Serialize)]
pub struct LiveProcess {
    /// Name of the worker or the manager.
    pub worker: String,
    /// Age of its last heartbeat, in seconds; `None` unless the clocks of both hosts agree.
    pub heartbeat_s: Option<f64>,
}

/// A running trial.
#[derive(Debug, Serialize)]
pub struct RunningTrial {
    /// The trial's number, from 1.
    pub trial: usize,
    /// The maximum number of epochs that it may have.
    pub budget: usize,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The worker that runs it.
    #[serde(flatten)]
    pub by: LiveProcess,
    /// Duration of the attempt so far, in seconds.
    pub seconds: Option<f64>,
    /// Number of finished epochs.
    pub epoch: Option<usize>,
    /// The watched metric after the last finished epoch.
    pub value: Option<f64>,
    /// The validation loss after each epoch of a network, if its worker has written them.
    #[serde(skip)]
    pub losses: Vec<f64>,
}

/// Reads the progress of `sweep`.
pub fn sweep_status(sweep: &SweepFolder) -> Result<SweepStatus> {
    let Some(queue) = sweep.queue()? else {
        let mut outcomes = TrialOutcomes::read(sweep)?;
        let mut status = SweepStatus::from_outcomes(sweep, outcomes.all(), Vec::new(), None);
        status.failures = first_failures(sweep, &mut outcomes)?;
        status.unmade = sweep.plan.trials.saturating_sub(outcomes.all().len());
        if sweep.config.wandb.sweep.id.is_some() {
            // The tracker gave no more points, so the missing trials were never planned.
            status.unmade = 0;
        }
        if status.unmade > 0 {
            status.hand_out = Dispatch::Stopped;
            (status.remaining_s, status.remaining_range_s) = (Some(0.0), Some((0.0, 0.0)));
        }
        return Ok(status);
    };

    let entries = queue.chunk_entries()?;
    let mut running: Vec<RunningTrial> = entries
        .iter()
        .filter_map(|entry| RunningTrial::from_entry(&queue, entry))
        .collect();
    running.sort_by_key(|running| running.trial);

    // A promoted trial has ended at one rung, and continues at the next.
    let goes_on: BTreeSet<usize> = entries
        .iter()
        .flat_map(ChunkEntry::open_items)
        .map(|item| item.trial)
        .collect();
    let mut outcomes = TrialOutcomes::from_queue(sweep, &queue, &entries)?;
    let mut ended = outcomes.all().to_vec();
    ended.retain(|outcome| !goes_on.contains(&outcome.trial));

    let manager = queue
        .leader_name()
        .map(|worker| LiveProcess::read(&queue, worker));
    let mut status = SweepStatus::from_outcomes(sweep, &ended, running, manager);
    status.ready = sweep
        .plan
        .trials
        .saturating_sub(ended.len() + status.running.len());
    status.failures = first_failures(sweep, &mut outcomes)?;
    status.is_over = false;
    status.is_paused = queue.is_paused();
    status.hand_out = queue.hand_out();
    Ok(status)
}

/// The first failures of the program of `sweep`; empty for a sweep of models, whose failures are few
/// and of known kinds.
fn first_failures(sweep: &SweepFolder, outcomes: &mut TrialOutcomes) -> Result<Vec<TrialFailure>> {
    if sweep.config.command.is_none() {
        return Ok(Vec::new());
    }
    let has_failed = |at: &usize| outcomes.all()[*at].ended != TrialEnd::Done;
    let failed: Vec<usize> = (0..outcomes.all().len())
        .filter(has_failed)
        .take(MAX_FAILURES)
        .collect();
    let mut failures = Vec::new();
    for at in failed {
        let row = outcomes.ended_trial(at)?;
        failures.push(TrialFailure {
            trial: row.trial,
            error: row.error.unwrap_or_default(),
        });
    }
    Ok(failures)
}

impl SweepStatus {
    fn from_outcomes(
        sweep: &SweepFolder,
        ended: &[TrialOutcome],
        running: Vec<RunningTrial>,
        manager: Option<LiveProcess>,
    ) -> SweepStatus {
        let metric = sweep.config.wandb.sweep.metric.first().clone();
        let best = BestTrial::among(&metric, ended);

        let mut done = 0;
        let mut failed = BTreeMap::new();
        for outcome in ended {
            if outcome.ended == TrialEnd::Done {
                done += 1;
            } else {
                *failed.entry(outcome.ended).or_default() += 1;
            }
        }

        // The mean is NaN until a trial has ended; the rate is then unknown.
        let seconds: Vec<f64> = ended.iter().map(|outcome| outcome.seconds).collect();
        let mean_s = seconds.iter().sum::<f64>() / seconds.len() as f64;
        let rate_per_s =
            Some(running.len() as f64 / mean_s).filter(|rate| rate.is_finite() && *rate > 0.0);
        let rest = sweep.plan.trials.saturating_sub(ended.len());
        let remaining_s = if rest == 0 {
            Some(0.0)
        } else {
            rate_per_s.map(|rate| rest as f64 / rate)
        };

        let remaining_range_s = remaining_s
            .and_then(|remaining_s| remaining_range(&seconds, rest, running.len(), remaining_s));
        SweepStatus {
            trials: sweep.plan.trials,
            is_over: true,
            is_paused: false,
            hand_out: Dispatch::Open,
            done,
            failed,
            failures: Vec::new(),
            running,
            ready: 0,
            unmade: 0,
            manager,
            metric,
            best,
            rate_per_hour: rate_per_s.map(|rate| 3600.0 * rate),
            remaining_s,
            remaining_range_s,
        }
    }
}

/// Bounds of the time that `rest` more trials take, with a probability of 90 %. `workers` are
/// working, the ended trials took `seconds`, and the estimate from the mean is `remaining_s`. The
/// sum of the durations is nearly normal, and the mean of the ended trials is itself uncertain.
/// `None` if too few trials have ended to estimate the variance.
fn remaining_range(
    seconds: &[f64],
    rest: usize,
    workers: usize,
    remaining_s: f64,
) -> Option<(f64, f64)> {
    /// The 95 % quantile of the normal distribution.
    const QUANTILE: f64 = 1.645;
    if rest == 0 {
        return Some((0.0, 0.0));
    }
    if seconds.len() < 3 || workers == 0 {
        return None;
    }

    let ended = seconds.len() as f64;
    let rest = rest as f64;
    let mean_s = seconds.iter().sum::<f64>() / ended;
    let squares: f64 = seconds.iter().map(|one| (one - mean_s).powi(2)).sum();
    let deviation_s = (squares / (ended - 1.0)).sqrt();
    let spread_s = QUANTILE * deviation_s * (rest + rest * rest / ended).sqrt() / workers as f64;
    let low_s = (remaining_s - spread_s).max(0.0);
    // The last trial runs alone.
    let tail_s = if workers > 1 { mean_s } else { 0.0 };
    Some((low_s, remaining_s + spread_s + tail_s))
}

impl LiveProcess {
    fn read(queue: &Queue, worker: String) -> LiveProcess {
        let heartbeat_s = queue.heartbeat(&worker).map(|seen| seen.age.as_secs_f64());
        LiveProcess {
            worker,
            heartbeat_s,
        }
    }
}

/// The validation losses of the current attempt at the trial of `entry`.
fn losses_so_far(queue: &Queue, entry: &ChunkEntry) -> Vec<f64> {
    let history = read_history(&queue.work_dir(entry)).unwrap_or_default();
    history.iter().map(|epoch| epoch.validation_loss).collect()
}

impl RunningTrial {
    fn from_entry(queue: &Queue, entry: &ChunkEntry) -> Option<RunningTrial> {
        let ChunkState::Leased(worker) = &entry.state else {
            return None;
        };
        let seen = queue.heartbeat(worker);
        let age = seen.as_ref().map(|seen| seen.age.as_secs_f64());

        // Heartbeats are infrequent, so the last one may be from an earlier trial.
        let work = seen
            .and_then(|seen| seen.heartbeat.work)
            .filter(|work| entry.open_items().any(|item| item == work.item));

        // The training may be ahead of the last heartbeat.
        let losses = losses_so_far(queue, entry);
        let trained = (!losses.is_empty()).then_some(losses.len());

        // A worker may be further in its chunk than the name of the chunk says.
        let item = work.as_ref().map_or(entry.next_item(), |work| work.item);
        Some(RunningTrial {
            trial: item.trial,
            budget: item.budget,
            attempt: if item == entry.next_item() {
                entry.attempt
            } else {
                1
            },
            by: LiveProcess {
                worker: worker.clone(),
                heartbeat_s: age,
            },
            seconds: work.as_ref().zip(age).map(|(work, age)| work.seconds + age),
            epoch: work.as_ref().map(|work| work.epoch).max(trained),
            value: work.and_then(|work| work.value),
            losses,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_range_grows_with_the_spread_of_durations() {
        assert_eq!(remaining_range(&[1.0; 5], 0, 2, 0.0), Some((0.0, 0.0)));
        assert_eq!(remaining_range(&[1.0; 2], 8, 1, 8.0), None);
        assert_eq!(remaining_range(&[2.0; 5], 8, 1, 16.0), Some((16.0, 16.0)));
        assert_eq!(remaining_range(&[2.0; 5], 8, 2, 8.0), Some((8.0, 10.0)));
        let (low, high) = remaining_range(&[1.0, 2.0, 3.0], 3, 1, 6.0).expect("a range");
        assert!((low - (6.0 - 1.645 * 6f64.sqrt())).abs() < 1e-9, "{low}");
        assert!((high - (6.0 + 1.645 * 6f64.sqrt())).abs() < 1e-9, "{high}");
        let (low, _) = remaining_range(&[0.0, 0.0, 90.0], 2, 1, 60.0).expect("a range");
        assert_eq!(low, 0.0, "no time is below nothing");
    }
}
