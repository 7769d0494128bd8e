//! Reads the status of a DAG from its directory.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use htcondor_eventlog::{self as eventlog, HELD, ReadOptions};
use poolcast_config::MetricName;
use poolcast_sweep::condor::{self, DagProgress};
use poolcast_sweep::config::Config;
use poolcast_sweep::{self as sweep, BestTrial, SweepTrials, TrialRow};

/// Status of a DAG.
#[derive(Serialize)]
pub(super) struct DagStatus {
    /// The status that DAGMan reports; `None` before DAGMan has begun.
    pub(super) nodes: Option<DagProgress>,
    /// Time since DAGMan last wrote, in seconds.
    pub(super) silent_s: Option<u64>,
    /// Failure reasons by node, as the jobs reported them.
    pub(super) failures: BTreeMap<String, String>,
    /// Number of trials.
    pub(super) trials: usize,
    /// Trials with a model.
    pub(super) done: usize,
    /// Trials that have failed for good, with their errors.
    pub(super) failed: Vec<FailedTrial>,
    /// Best trial so far.
    pub(super) best: Option<BestTrial>,
    /// Rate at which trials end; empty if nothing is at work.
    #[serde(flatten)]
    pub(super) pace: TrialPace,
    /// Metric by which the best trial is chosen.
    #[serde(skip)]
    pub(super) metric: MetricName,
}

/// Rate at which trials end.
#[derive(Default, Serialize)]
pub(super) struct TrialPace {
    /// Trials per hour, from the start of the first to the end of the last; `None` if none runs, or
    /// if too few have ended.
    pub(super) rate_per_hour: Option<f64>,
    /// Remaining time at that rate in seconds, as a 90 % interval: shortest and longest.
    pub(super) remaining_range_s: Option<(f64, f64)>,
}

/// A node with a held job.
pub(super) struct HeldNode {
    /// Name of the node.
    pub(super) node: String,
    /// Hold code and subcode of its job, if the log has them.
    pub(super) code: Option<(i32, i32)>,
}

/// A trial without a model.
#[derive(Serialize)]
pub(super) struct FailedTrial {
    /// The trial's number, from 1.
    pub(super) trial: usize,
    /// The reason.
    pub(super) error: String,
}

impl DagStatus {
    /// Reads the status of the DAG that was submitted in `submitted` and has its results in `dir`.
    pub(super) fn read(submitted: &Path, dir: &Path) -> Result<DagStatus> {
        let config = Config::read(dir)?;
        // DAGMan writes its files in the directory of submission, and they stay there until it
        // ends.
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
    /// The pace of the trials in `rows`, which have ended; `rest` is the number of the other
    /// trials.
    fn of_rows(rows: &[TrialRow], rest: usize) -> TrialPace {
        let mut spans = Vec::new();
        for row in rows {
            if let Ok(began) = row.began.parse::<jiff::Timestamp>() {
                let began_s = began.as_millisecond() as f64 / 1000.0;
                spans.push((began_s, began_s + row.seconds));
            }
        }
        TrialPace::from_time_ranges(&spans, rest)
    }

    /// The pace of trials with these start and end times, in seconds. The interval treats the
    /// number of trials as a Poisson count.
    fn from_time_ranges(spans: &[(f64, f64)], rest: usize) -> TrialPace {
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

/// The nodes with held jobs, and the hold codes from their logs in `dir`. `condor_q -hold` says
/// more.
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

/// Hold code and subcode of the last hold in `log`.
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
    fn pace_needs_three_trials() {
        let spans = [(0.0, 60.0), (10.0, 100.0), (60.0, 360.0)];
        let pace = TrialPace::from_time_ranges(&spans, 3);
        assert_eq!(pace.rate_per_hour, Some(30.0));
        let (low, high) = pace.remaining_range_s.expect("a range");
        assert!(low < 360.0 && high > 360.0 && low >= 0.0, "{low} to {high}");
        for (spans, rest) in [(&spans[..2], 3), (&spans[..], 0), (&[(5.0, 5.0); 3][..], 3)] {
            assert!(
                TrialPace::from_time_ranges(spans, rest)
                    .rate_per_hour
                    .is_none()
            );
        }
    }
}
