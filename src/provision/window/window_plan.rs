//! Where the windows of a trace begin, and what is in them.

use anyhow::{Result, ensure};
use serde::Serialize;

use poolcast_base::error::hinted;
use poolcast_base::stats::cost_quantile;
use crate::replay::SlurmWorld;
use crate::trace::JobTrace;

/// Where no start is given, windows begin so long after the simulation, or half way to the last one.
const LEAD_S: i64 = 30 * 86_400;

/// How the windows of a trace are laid, and what the chained jobs in them are like. Moments are epoch
/// seconds, spans seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowPlan {
    /// Where the first window begins; `None`: some time into the trace.
    pub from_s: Option<i64>,
    /// Before when windows begin; `None`: as long as they fit into the trace.
    pub until_s: Option<i64>,
    /// Hours of the wall clock from one window to the next.
    pub interval_h: i64,
    /// Whether the cluster is empty when a window begins, as published; else it is in the state of one
    /// continuous simulation.
    pub cold_start: bool,
    /// How long after the window's beginning the predecessor is submitted.
    pub warmup_s: i64,
    /// For how long after the window's beginning jobs come to the queue.
    pub workload_s: i64,
    /// How many nodes the chained jobs need.
    pub nodes: u32,
    /// How long they may run.
    pub limit_s: i64,
    /// How long they do.
    pub length_s: i64,
    /// How often it is decided whether to submit.
    pub step_s: i64,
    /// At how many moments a successor is submitted as a probe, two at least: equally spaced from a
    /// minute after the predecessor's submission to its end.
    pub probes: usize,
    /// How many of the last runs run times are drawn from.
    pub history_runs: usize,
    /// What an hour of interruption costs in hours of overlap.
    pub cost_ratios: Vec<f64>,
}

impl WindowPlan {
    /// The quantiles of waits that policies ask for.
    pub(in crate) fn quantiles(&self) -> Vec<f64> {
        let ratios = self.cost_ratios.iter();
        ratios.map(|ratio| cost_quantile(*ratio)).collect()
    }

    /// Where windows begin: as long as jobs are submitted throughout each.
    ///
    /// # Errors
    /// Fails where none fits, or the cluster never has enough nodes.
    pub(in crate) fn begins(
        &self,
        trace: &JobTrace,
        world: &SlurmWorld,
    ) -> Result<Vec<i64>> {
        self.check_size(world)?;
        let begin_s = world.settings.begin;
        let last_submit_s = trace.jobs.last().map_or(0, |job| job.submit_s);
        let last_s = last_submit_s - self.workload_s;
        let lead_s = LEAD_S.min((last_s - begin_s) / 2);
        let from_s = self.from_s.unwrap_or(begin_s + lead_s.max(0));
        ensure!(
            from_s >= begin_s,
            hinted(
                "the first window begins before the trace shows what runs",
                "give a later `--start-time`"
            )
        );

        let until_s = self.until_s.unwrap_or(i64::MAX);
        ensure!(
            from_s < until_s,
            hinted(
                format!(
                    "the first window begins at {}, and that is not before `--end-time`",
                    trace.zone.wall_minute(from_s)
                ),
                "give a later `--end-time`, or an earlier `--start-time`"
            )
        );

        let from_wall_s = trace.zone.wall_s(from_s);
        let mut begins_s = Vec::new();
        for number in 0.. {
            let wall_s = from_wall_s + number * self.interval_h * 3600;
            let window_s = trace.zone.moment_of_wall_s(wall_s);
            if window_s > last_s || window_s >= until_s {
                break;
            }
            begins_s.push(window_s);
        }
        ensure!(
            !begins_s.is_empty(),
            hinted(
                format!(
                    "no window of {} days fits between its beginning and the last submission",
                    self.workload_s / 86_400
                ),
                "give an earlier `--start-time`, or a shorter `provision.workload_len`"
            )
        );
        Ok(begins_s)
    }

    /// Refuses chained jobs that `world` never has enough nodes for.
    fn check_size(&self, world: &SlurmWorld) -> Result<()> {
        let (nodes, most_nodes) = (self.nodes, world.settings.most_nodes());
        ensure!(
            nodes <= most_nodes,
            hinted(
                format!(
                    "the chained jobs need {nodes} nodes, and the cluster never has more than {most_nodes}"
                ),
                "give fewer with `--job-nodes`"
            )
        );
        Ok(())
    }
}
