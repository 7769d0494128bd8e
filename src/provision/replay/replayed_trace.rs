//! What a simulated scheduler made of a trace.

use serde::{Deserialize, Serialize};

use crate::provision::scheduler::SimulatedRun;
use crate::provision::trace::TraceJob;

/// How many nodes there are from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedNodes {
    /// The moment, epoch seconds.
    pub from_s: i64,
    /// How many.
    pub nodes: u32,
}

/// What a simulated scheduler made of a trace.
#[derive(Debug, Clone)]
pub struct ReplayedTrace {
    /// When each job started, by its place in the trace, as a clock on the wall showed it; `None`
    /// where it did not, or where it ran when the simulation began. Seconds, as of universal time.
    pub starts_wall_s: Vec<Option<i64>>,
    /// Which of them a plan ahead started while another job stood before them.
    pub is_backfilled: Vec<bool>,
    /// How long a job waited in the simulation, seconds.
    pub waits_s: Vec<Option<i64>>,
    /// How many nodes there were.
    pub nodes: Vec<DatedNodes>,
    /// How many jobs of one user could run at once.
    pub max_jobs_per_user: Option<u32>,
    /// When the simulation began, epoch seconds.
    pub begin_s: i64,
    /// Jobs that ran when it began.
    pub running_at_begin: usize,
    /// By how many nodes those exceed what there is.
    pub excess_nodes: u32,
    /// Jobs that need more nodes than there ever are.
    pub too_large: usize,
}

impl ReplayedTrace {
    /// How many jobs were simulated to their start.
    pub fn started(&self) -> usize {
        self.starts_wall_s.iter().flatten().count()
    }

    /// How many of those passed another job.
    pub fn backfilled(&self) -> usize {
        self.is_backfilled.iter().filter(|is_so| **is_so).count()
    }

    /// Nothing has been simulated of `jobs` yet.
    pub(super) fn empty(jobs: &[TraceJob], begin_s: i64, nodes: Vec<DatedNodes>) -> ReplayedTrace {
        ReplayedTrace {
            starts_wall_s: vec![None; jobs.len()],
            is_backfilled: vec![false; jobs.len()],
            waits_s: vec![None; jobs.len()],
            nodes,
            max_jobs_per_user: None,
            begin_s,
            running_at_begin: 0,
            excess_nodes: 0,
            too_large: 0,
        }
    }

    /// Takes what became of the job at `place` of the trace: where it started, `wall_s` is when, on
    /// the wall, and `wait_s` how long it waited.
    pub(super) fn take(&mut self, place: usize, run: SimulatedRun, wall_s: i64, wait_s: i64) {
        if run.start.is_some() {
            self.starts_wall_s[place] = Some(wall_s);
            self.waits_s[place] = Some(wait_s);
            self.is_backfilled[place] = run.is_backfilled;
        }
    }
}

/// How long jobs may run that have no limit of their own: as long as any other may, or has run.
pub(in crate::provision) fn longest_limit_s(jobs: &[TraceJob]) -> i64 {
    let mut longest_s = 60;
    for job in jobs {
        longest_s = longest_s.max(job.limit_s.unwrap_or(0));
        if job.limit_s.is_none() {
            longest_s = longest_s.max(job.run_s.unwrap_or(0));
        }
    }
    longest_s
}

/// Numbers users from 0 on, in the order of their first job.
pub(in crate::provision) fn number_users(jobs: &[TraceJob]) -> (Vec<u32>, usize) {
    let mut known = std::collections::HashMap::new();
    let mut numbers = Vec::with_capacity(jobs.len());
    for job in jobs {
        let next = known.len() as u32;
        numbers.push(*known.entry(job.user).or_insert(next));
    }
    (numbers, known.len())
}
