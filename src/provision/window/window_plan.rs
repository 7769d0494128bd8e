//! Layout of the windows of a trace, and properties of the chained jobs in them.

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::replay::SlurmWorld;
use crate::trace::JobTrace;
use poolcast_base::error::hinted;
use poolcast_base::stats::cost_quantile;

/// Default lead, in seconds, from the beginning of the simulation to the first window. It is cut to
/// half of the time to the last window.
const LEAD_S: i64 = 30 * 86_400;

/// Layout of windows and properties of the chained jobs. Times are epoch seconds, durations
/// seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WindowPlan {
    /// Begin of the first window; `None` for a default some time into the trace.
    pub from_s: Option<i64>,
    /// End of the window beginnings, exclusive; `None` if windows may begin as long as they fit
    /// into the trace.
    pub until_s: Option<i64>,
    /// Hours of wall-clock time between two windows.
    pub interval_h: i64,
    /// True if the cluster is empty at the beginning of each window, as published. Otherwise
    /// windows begin in the state of one continuous simulation.
    pub cold_start: bool,
    /// Time from the window's beginning to the predecessor's submission.
    pub warmup_s: i64,
    /// Time from the window's beginning to the end of the arrivals of other jobs.
    pub workload_s: i64,
    /// Nodes per chained job.
    pub nodes: u32,
    /// Time limit of a chained job.
    pub limit_s: i64,
    /// Run time of a chained job.
    pub length_s: i64,
    /// Interval between two decision times.
    pub step_s: i64,
    /// Number of probes, at least 2: simulated submissions of a successor. They are equally spaced
    /// from a minute after the predecessor's submission to its end.
    pub probes: usize,
    /// Number of previous runs from which run times are drawn.
    pub history_runs: usize,
    /// Cost of an hour of interruption, in hours of overlap.
    pub cost_ratios: Vec<f64>,
}

impl WindowPlan {
    /// Returns the quantiles of the wait that policies need.
    pub(crate) fn quantiles(&self) -> Vec<f64> {
        let ratios = self.cost_ratios.iter();
        ratios.map(|ratio| cost_quantile(*ratio)).collect()
    }

    /// Returns the beginnings of all windows. Jobs are submitted throughout each window.
    ///
    /// # Errors
    /// Fails if no window fits, or if the cluster never has enough nodes.
    pub(crate) fn begins(&self, trace: &JobTrace, world: &SlurmWorld) -> Result<Vec<i64>> {
        self.check_size(world)?;
        let begin_s = world.settings.begin;
        let last_submit_s = trace.jobs.last().map_or(0, |job| job.submit_s);
        let last_s = last_submit_s - self.workload_s;
        let lead_s = LEAD_S.min((last_s - begin_s) / 2);
        let from_s = self.from_s.unwrap_or(begin_s + lead_s.max(0));
        ensure!(
            from_s >= begin_s,
            hinted(
                format!(
                    "the first window begins at {}, before the trace shows which jobs run",
                    trace.zone.wall_minute(from_s)
                ),
                "give a later `--start-time`"
            )
        );

        let until_s = self.until_s.unwrap_or(i64::MAX);
        ensure!(
            from_s < until_s,
            hinted(
                format!(
                    "the first window begins at {}, which is not before `--end-time`",
                    trace.zone.wall_minute(from_s)
                ),
                "give a later `--end-time`, or an earlier `--start-time`"
            )
        );

        // Steps are in wall-clock time: a step of 24 hours keeps its local time when the clocks
        // change.
        let from_wall_s = trace.zone.wall_s(from_s);
        let mut begins_s = Vec::new();
        for number in 0.. {
            let wall_s = from_wall_s + number * self.interval_h * 3600;
            let window_s = trace.zone.time_of_wall_s(wall_s);
            if window_s > last_s || window_s >= until_s {
                break;
            }
            begins_s.push(window_s);
        }
        ensure!(
            !begins_s.is_empty(),
            hinted(
                format!(
                    "no window of {} days fits between the first start and the last submission",
                    self.workload_s / 86_400
                ),
                "give an earlier `--start-time`, or a shorter `provision.workload_len`"
            )
        );
        Ok(begins_s)
    }

    /// Rejects chained jobs for which `world` never has enough nodes.
    fn check_size(&self, world: &SlurmWorld) -> Result<()> {
        let (nodes, most_nodes) = (self.nodes, world.settings.most_nodes());
        ensure!(
            nodes <= most_nodes,
            hinted(
                format!(
                    "the chained jobs need {nodes} nodes, and the cluster never has more than {most_nodes}"
                ),
                "give a smaller number with `--job-nodes`"
            )
        );
        Ok(())
    }
}
