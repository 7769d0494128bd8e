//! The folder of a sweep → how far it is.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use serde::{Deserialize, Serialize};

use super::folder::Sweep;
use super::queue::{Queue, State, Token};
use super::results::{of_trials, rows, rows_of};
use super::row::{How, Row};
use crate::config::Metric;

/// How far a sweep is.
#[derive(Debug, Serialize)]
pub struct Status {
    /// How many trials there are.
    pub trials: usize,
    /// Whether all trials have ended, and none goes on.
    pub is_over: bool,
    /// Trials that ended with a model.
    pub done: usize,
    /// Trials that failed, by kind.
    pub failed: BTreeMap<How, usize>,
    /// Trials at work.
    pub running: Vec<Running>,
    /// Trials that nobody has taken yet.
    pub ready: usize,
    /// The manager, and for how long nothing was heard of it.
    pub manager: Option<Heard>,
    /// What the best trial is chosen by.
    pub metric: Metric,
    /// The best so far.
    pub best: Option<Leader>,
    /// Trials an hour, at the mean duration so far and with the workers that run now.
    pub rate_per_hour: Option<f64>,
    /// How long the rest takes at that rate.
    pub remaining_s: Option<f64>,
}

/// The best trial so far.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Leader {
    /// Counted from 1.
    pub trial: usize,
    /// The value it is chosen by.
    pub value: f64,
}

impl Leader {
    /// The best of `rows`, the first of equals; `None` where none has a value.
    pub(super) fn of<'a>(metric: &Metric, rows: impl IntoIterator<Item = &'a Row>) -> Option<Leader> {
        let ranked = rows.into_iter().filter_map(|row| Some((row.trial, row.rank()?)));
        let (trial, (value, _)) = ranked.min_by(|a, b| metric.goal.order(a.1, b.1))?;
        Some(Leader { trial, value })
    }
}

/// The best of `rows`, the first of equals; `None` where none has a value.
pub fn leader(metric: &Metric, rows: &[Row]) -> Option<Leader> {
    Leader::of(metric, rows)
}

/// A worker or a manager.
#[derive(Debug, Serialize)]
pub struct Heard {
    /// Its name.
    pub worker: String,
    /// Since its last heartbeat, as far as the clocks of both hosts agree.
    pub heartbeat_s: Option<f64>,
}

/// A trial at work.
#[derive(Debug, Serialize)]
pub struct Running {
    /// Counted from 1.
    pub trial: usize,
    /// The most epochs it may have.
    pub budget: usize,
    /// Counted from 1.
    pub attempt: u32,
    /// Who does it.
    #[serde(flatten)]
    pub by: Heard,
    /// How long the attempt takes so far.
    pub seconds: Option<f64>,
    /// Epochs so far.
    pub epoch: Option<usize>,
    /// The watched value after the last of them.
    pub value: Option<f64>,
}

/// Looks how far `sweep` is.
pub fn status(sweep: &Sweep) -> Result<Status> {
    let Some(queue) = sweep.queue()? else { return Ok(Status::of(sweep, &rows(sweep)?, Vec::new(), None)) };
    let tokens = queue.items()?;
    let mut running: Vec<Running> = tokens.iter().filter_map(|token| Running::of(&queue, token)).collect();
    running.sort_by_key(|running| running.trial);
    // A trial that was promoted has ended at one rung, and goes on at the next.
    let goes_on: BTreeSet<usize> =
        tokens.iter().filter(|token| !token.has_ended()).map(|token| token.item.trial).collect();
    let mut rows = of_trials(rows_of(sweep, &queue, &tokens)?);
    rows.retain(|row| !goes_on.contains(&row.trial));
    let manager = queue.manager().map(|worker| Heard::of(&queue, worker));
    let mut status = Status::of(sweep, &rows, running, manager);
    status.ready = sweep.plan.trials.saturating_sub(rows.len() + status.running.len());
    status.is_over = false;
    Ok(status)
}

impl Status {
    fn of(sweep: &Sweep, rows: &[Row], running: Vec<Running>, manager: Option<Heard>) -> Status {
        let metric = sweep.config.wandb.sweep.metric.clone();
        let mut failed = BTreeMap::new();
        for row in rows.iter().filter(|row| row.ended != How::Done) {
            *failed.entry(row.ended).or_default() += 1;
        }
        let best = Leader::of(&metric, rows);
        let rest = sweep.plan.trials.saturating_sub(rows.len());
        let mean_s = rows.iter().map(|row| row.seconds).sum::<f64>() / rows.len() as f64;
        let rate_per_s = Some(running.len() as f64 / mean_s).filter(|rate| rate.is_finite() && *rate > 0.0);
        let done = rows.len() - failed.values().sum::<usize>();
        let remaining_s = if rest == 0 { Some(0.0) } else { rate_per_s.map(|rate| rest as f64 / rate) };
        let rate_per_hour = rate_per_s.map(|rate| 3600.0 * rate);
        Status {
            trials: sweep.plan.trials,
            is_over: true,
            done,
            failed,
            running,
            ready: 0,
            manager,
            metric,
            best,
            rate_per_hour,
            remaining_s,
        }
    }
}

impl Heard {
    fn of(queue: &Queue, worker: String) -> Heard {
        let heartbeat_s = queue.beat(&worker).map(|(_, age)| age.as_secs_f64());
        Heard { worker, heartbeat_s }
    }
}

impl Running {
    fn of(queue: &Queue, token: &Token) -> Option<Running> {
        let State::Leased(worker) = &token.state else { return None };
        let beat = queue.beat(worker);
        let age = beat.as_ref().map(|(_, age)| age.as_secs_f64());
        // A heart beats now and then, and may last have spoken of an earlier trial.
        let work = beat.and_then(|(beat, _)| beat.work).filter(|work| work.item == token.item);
        Some(Running {
            trial: token.item.trial,
            budget: token.item.budget,
            attempt: token.attempt,
            by: Heard { worker: worker.clone(), heartbeat_s: age },
            seconds: work.as_ref().zip(age).map(|(work, age)| work.seconds + age),
            epoch: work.as_ref().map(|work| work.epoch),
            value: work.and_then(|work| work.value),
        })
    }
}
