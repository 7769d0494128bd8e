//! The result of replaying a trace with a simulated scheduler.

use serde::{Deserialize, Serialize};

use crate::scheduler::{NEVER, QueueJob, SimulatedCluster};
use crate::trace::{JobTrace, OptionalSeconds, TraceJob};

/// Number of jobs entering the queue after which a simulation discards the jobs that have left it.
const JOBS_PER_BRANCH: usize = 1 << 16;

/// Number of nodes from a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedNodes {
    /// Begin of this number, in epoch seconds.
    pub from_s: i64,
    /// Number of nodes.
    pub nodes: u32,
}

/// The clock of a simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedClock {
    /// UTC, in seconds.
    Universal,
    /// Wall-clock time, in minutes. Events within a minute happen at its beginning.
    WallMinutes,
}

/// The result of replaying a trace.
#[derive(Debug, Clone)]
pub struct ReplayedTrace {
    /// The clock of the simulation.
    pub clock: SimulatedClock,
    /// The wait of each job by this clock, in seconds, by index in the trace. It is unknown if the
    /// job did not start, or was already running when the simulation began.
    pub waits_s: Vec<OptionalSeconds>,
    /// For each job, true if backfill started it while another job was before it in the queue.
    pub is_backfilled: Vec<bool>,
    /// Number of nodes over time.
    pub nodes: Vec<DatedNodes>,
    /// Maximum number of running jobs per user.
    pub max_jobs_per_user: Option<u32>,
    /// Start of the simulation, in epoch seconds.
    pub begin_s: i64,
    /// Jobs that were running at that time.
    pub running_at_begin: usize,
    /// Number of nodes by which those jobs exceeded the cluster.
    pub excess_nodes: u32,
    /// Jobs that need more nodes than the cluster ever has.
    pub too_large: usize,
}

impl ReplayedTrace {
    /// Counts the jobs that started in the simulation.
    pub fn started(&self) -> usize {
        let waits_s = self.waits_s.iter();
        waits_s.filter(|wait_s| wait_s.get().is_some()).count()
    }

    /// Counts the jobs that passed another job.
    pub fn backfilled(&self) -> usize {
        self.is_backfilled.iter().filter(|is_so| **is_so).count()
    }

    /// Creates an empty result for `jobs`.
    pub(super) fn empty(
        jobs: &[TraceJob],
        clock: SimulatedClock,
        begin_s: i64,
        nodes: Vec<DatedNodes>,
    ) -> ReplayedTrace {
        ReplayedTrace {
            clock,
            waits_s: vec![OptionalSeconds::UNKNOWN; jobs.len()],
            is_backfilled: vec![false; jobs.len()],
            nodes,
            max_jobs_per_user: None,
            begin_s,
            running_at_begin: 0,
            excess_nodes: 0,
            too_large: 0,
        }
    }

    /// Returns the wall-clock start of the job at index `place` of `trace`, in seconds as if it
    /// were UTC.
    pub fn start_wall_s(&self, trace: &JobTrace, place: usize) -> Option<i64> {
        let wait_s = self.waits_s[place].get()?;
        let submit_s = trace.jobs[place].submit_s;
        Some(match self.clock {
            SimulatedClock::Universal => trace.zone.wall_s(submit_s + wait_s),
            SimulatedClock::WallMinutes => {
                let wall_s = trace.zone.wall_s(submit_s);
                wall_s - wall_s.rem_euclid(60) + wait_s
            }
        })
    }

    /// Simulates `cluster` until the end. `jobs` are its jobs, and `places` their indices in the
    /// trace. `wait_s` returns the wait of a job from its index in `jobs` and the tick of its
    /// start.
    pub(super) fn simulate(
        &mut self,
        mut cluster: SimulatedCluster<'_>,
        (jobs, places): (&[QueueJob], &[u32]),
        wait_s: impl Fn(usize, i64) -> i64,
    ) {
        // Simulate in blocks, and keep only the jobs that have not left after each block.
        let parts = jobs.chunks(JOBS_PER_BRANCH);
        let entered = parts.filter_map(|part| Some(part.last()?.enter));
        for until in entered.chain([NEVER - 1]) {
            cluster.run_until(until);
            for number in cluster.started() {
                let (run, number) = (cluster.run(*number), *number as usize);
                let place = places[number] as usize;
                self.waits_s[place] = run.start.map(|start| wait_s(number, start)).into();
                self.is_backfilled[place] = run.is_backfilled;
            }
            cluster = cluster.branch(NEVER);
        }
    }
}

/// Returns the assumed time limit of jobs without one, in seconds. It is the longest limit of any
/// job, or run time of a job without a limit, and at least a minute.
pub fn longest_limit_s(jobs: &[TraceJob]) -> i64 {
    let mut longest_s = 60;
    for job in jobs {
        let most_s = job.limit_s.get().or(job.run_s.get());
        longest_s = longest_s.max(most_s.unwrap_or(0));
    }
    longest_s
}

/// Numbers users from 0, in the order of their first job. Returns the number of each job's user,
/// and the number of users.
pub(crate) fn number_users(jobs: &[TraceJob]) -> (Vec<u32>, usize) {
    let mut known = std::collections::HashMap::new();
    let mut numbers = Vec::with_capacity(jobs.len());
    for job in jobs {
        let next = known.len() as u32;
        numbers.push(*known.entry(job.user).or_insert(next));
    }
    (numbers, known.len())
}
