//! The directory of a DAG → how far it is.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use poolcast_sweep::condor::{self, DagProgress};
use poolcast_config::{Config, MetricName};
use htcondor_eventlog::{self as eventlog, HELD, ReadOptions};
use poolcast_sweep::{self as sweep, BestTrial, SweepTrials, TrialRow};

/// How far a DAG is.
#[derive(Serialize)]
pub(super) struct DagStatus {
    /// What DAGMan says; absent before it has begun.
    pub(super) nodes: Option<DagProgress>,
    /// For how many seconds nothing was heard of DAGMan.
    pub(super) silent_s: Option<u64>,
    /// Why nodes have failed, as their jobs said.
    pub(super) failures: BTreeMap<String, String>,
    /// How many trials there are.
    pub(super) trials: usize,
    /// Trials with a model.
    pub(super) done: usize,
    /// Trials that have failed for good, and why.
    pub(super) failed: Vec<FailedTrial>,
    /// The best so far.
    pub(super) best: Option<BestTrial>,
    /// How fast trials end; absent where nothing is at work.
    #[serde(flatten)]
    pub(super) pace: TrialPace,
    /// What the best trial is chosen by.
    #[serde(skip)]
    pub(super) metric: MetricName,
}

/// How fast trials end.
#[derive(Default, Serialize)]
pub(super) struct TrialPace {
    /// Trials an hour, from the begin of the first to the end of the last.
    pub(super) rate_per_hour: Option<f64>,
    /// How long the rest takes at that rate with a probability of nine in ten: the least and the longest.
    pub(super) remaining_range_s: Option<(f64, f64)>,
}

/// A node with a job on hold.
pub(super) struct HeldNode {
    /// Its name.
    pub(super) node: String,
    /// The hold code and subcode of its job, where its log says them.
    pub(super) code: Option<(i32, i32)>,
}

/// A trial without a model.
#[derive(Serialize)]
pub(super) struct FailedTrial {
    pub(super) trial: usize,
    pub(super) error: String,
}

impl DagStatus {
    /// That of the DAG which was submitted in `submitted`, and whose results are in `dir`.
    pub(super) fn read(submitted: &Path, dir: &Path) -> Result<DagStatus> {
        let config = Config::read(dir)?;
        // What DAGMan writes until its end stays where the DAG was submitted.
        let nodes = DagProgress::read(submitted)?
            .map_or_else(|| DagProgress::read(dir), |nodes| Ok(Some(nodes)))?;
        let nodes = nodes
            .map(|nodes| nodes.with_failure_records(dir))
            .transpose()?;

        let rows = condor::read_rows(dir, &config)?;
        let mut failed = Vec::new();
        for row in &rows {
            if let Some(error) = &row.error {
                failed.push(FailedTrial {
                    trial: row.trial,
                    error: error.clone(),
                });
            }
        }

        let at_work = nodes.as_ref().filter(|nodes| !nodes.is_over());
        let failures = match &nodes {
            Some(nodes) => nodes.failure_reasons(dir),
            None => BTreeMap::new(),
        };
        let trials = SweepTrials::from_config(&config)?.count();
        let pace = match at_work {
            Some(_) => TrialPace::of_rows(&rows, trials.saturating_sub(rows.len())),
            None => TrialPace::default(),
        };
        Ok(DagStatus {
            silent_s: at_work.and_then(DagProgress::silent_s),
            failures,
            nodes,
            trials,
            done: rows.len() - failed.len(),
            failed,
            best: sweep::best_trial(&config.wandb.sweep.metric, &rows),
            metric: config.wandb.sweep.metric.name,
            pace,
        })
    }
}

impl TrialPace {
    /// The pace of the trials of `rows`, where `rest` are still to end.
    fn of_rows(rows: &[TrialRow], rest: usize) -> TrialPace {
        let mut spans = Vec::new();
        for row in rows {
            if let Ok(began) = row.began.parse::<jiff::Timestamp>() {
                let began_s = began.as_millisecond() as f64 / 1000.0;
                spans.push((began_s, began_s + row.seconds));
            }
        }
        TrialPace::of_spans(&spans, rest)
    }

    /// The pace of trials that began and ended at these moments, in seconds. Their number is about as
    /// that of a Poisson process.
    fn of_spans(spans: &[(f64, f64)], rest: usize) -> TrialPace {
        let first_s = spans
            .iter()
            .map(|span| span.0)
            .fold(f64::INFINITY, f64::min);
        let last_s = spans
            .iter()
            .map(|span| span.1)
            .fold(f64::NEG_INFINITY, f64::max);
        let ended = spans.len() as f64;
        let rate_per_s = ended / (last_s - first_s);
        if spans.len() < 3 || rest == 0 || !rate_per_s.is_finite() || rate_per_s <= 0.0 {
            return TrialPace::default();
        }

        let rest = rest as f64;
        let remaining_s = rest / rate_per_s;
        let spread = 1.645 * (1.0 / ended + 1.0 / rest).sqrt();
        let low_s = remaining_s * (1.0 - spread).max(0.0);
        TrialPace {
            rate_per_hour: Some(3600.0 * rate_per_s),
            remaining_range_s: Some((low_s, remaining_s * (1.0 + spread))),
        }
    }
}

/// The nodes whose jobs are held, with what their logs in `dir` say of it; `condor_q -hold` says more.
pub(super) fn held_nodes(dir: &Path, status: &DagStatus) -> Vec<HeldNode> {
    let mut held = Vec::new();
    for node in status.nodes.iter().flat_map(|nodes| &nodes.held_nodes) {
        let log = dir.join(format!("logs/{node}.log"));
        held.push(HeldNode {
            node: node.clone(),
            code: last_hold(&log).unwrap_or_default(),
        });
    }
    held
}

/// The hold code and subcode with which a job was held last.
fn last_hold(log: &Path) -> Result<Option<(i32, i32)>> {
    let mut last = None;
    eventlog::read(log, &ReadOptions::default(), |_| {}, &mut |batch| {
        last = batch
            .events
            .iter()
            .rfind(|event| event.number == HELD)
            .copied()
            .or(last);
        Ok(())
    })?;
    Ok(last.map(|event| (event.hold_code, event.hold_subcode)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_known_from_three_trials_on() {
        let spans = [(0.0, 60.0), (10.0, 100.0), (60.0, 360.0)];
        let pace = TrialPace::of_spans(&spans, 3);
        assert_eq!(pace.rate_per_hour, Some(30.0));
        let (low, high) = pace.remaining_range_s.expect("a range");
        assert!(low < 360.0 && high > 360.0 && low >= 0.0, "{low} to {high}");
        for (spans, rest) in [(&spans[..2], 3), (&spans[..], 0), (&[(5.0, 5.0); 3][..], 3)] {
            assert!(TrialPace::of_spans(spans, rest).rate_per_hour.is_none());
        }
    }
}
