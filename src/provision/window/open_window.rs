//! Simulates windows up to the submission of their predecessor.

use std::ops::Range;

use super::observed_cluster::ObservedCluster;
use super::window_plan::WindowPlan;
use crate::replay::SlurmWorld;

/// A window just before its predecessor is submitted.
pub(crate) struct OpenWindow<'a> {
    pub(crate) begin_s: i64,
    pub(super) observed: ObservedCluster<'a>,
    /// Range of the opener's ended jobs that had ended in this window.
    pub(super) ended: Range<usize>,
}

/// Simulates a trace from window to window.
pub(crate) struct WindowOpener<'a> {
    world: &'a SlurmWorld,
    plan: &'a WindowPlan,
    takes_snapshots: bool,
    /// Continuous simulation, from whose state warm windows begin.
    continuous: ObservedCluster<'a>,
    /// Jobs that ended in cold windows before the predecessor's submission.
    ended_in_cold: Vec<u32>,
}

impl<'a> WindowOpener<'a> {
    /// Creates an opener before the first window of `plan`. With `takes_snapshots`, the windows
    /// have snapshots of their queue.
    pub(crate) fn new(
        world: &'a SlurmWorld,
        plan: &'a WindowPlan,
        takes_snapshots: bool,
    ) -> WindowOpener<'a> {
        let begin_s = world.settings.begin;
        let cluster = world.cluster();
        WindowOpener {
            world,
            plan,
            takes_snapshots,
            continuous: ObservedCluster::new(cluster, begin_s, world, plan, takes_snapshots),
            ended_in_cold: Vec::new(),
        }
    }

    /// Opens the window that begins at `begin_s`, which must be later than all previous ones.
    pub(crate) fn open(&mut self, begin_s: i64) -> OpenWindow<'a> {
        let submit_s = begin_s + self.plan.warmup_s;
        let close_s = begin_s + self.plan.workload_s;
        if self.plan.cold_start {
            return self.open_cold(begin_s, submit_s, close_s);
        }
        self.continuous.advance(submit_s);
        OpenWindow {
            begin_s,
            ended: 0..self.continuous.cluster.ended().len(),
            observed: self.continuous.branch(close_s),
        }
    }

    /// Opens a window whose cluster is empty at `begin_s`.
    fn open_cold(&mut self, begin_s: i64, submit_s: i64, close_s: i64) -> OpenWindow<'a> {
        let cluster = self.world.empty_cluster(begin_s);
        let (world, plan) = (self.world, self.plan);
        let mut observed =
            ObservedCluster::new(cluster, begin_s, world, plan, self.takes_snapshots);
        observed.advance(submit_s);

        let known = self.ended_in_cold.len();
        self.ended_in_cold
            .extend_from_slice(observed.cluster.ended());
        OpenWindow {
            begin_s,
            ended: known..self.ended_in_cold.len(),
            observed: observed.branch(close_s),
        }
    }

    /// Returns the numbers of the jobs whose end was seen, in that order.
    pub(crate) fn ended(&self) -> &[u32] {
        if self.plan.cold_start {
            return &self.ended_in_cold;
        }
        self.continuous.cluster.ended()
    }
}
