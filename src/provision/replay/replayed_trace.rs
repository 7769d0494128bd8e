//! What a simulated scheduler made of a trace.

use serde::{Deserialize, Serialize};

use crate::scheduler::{NEVER, QueueJob, SimulatedCluster};
use crate::trace::{JobTrace, OptionalSeconds, TraceJob};

/// Once so many more jobs have entered the queue, a simulation forgets those that have left it.
const FORGOTTEN_JOBS: usize = 1 << 16;

/// How many nodes there are from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedNodes {
    /// The moment, epoch seconds.
    pub from_s: i64,
    /// How many.
    pub nodes: u32,
}

/// The clock that a simulation goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SimulatedClock {
    /// That of universal time, in seconds.
    Universal,
    /// That on the wall, in minutes; what happens within one, happens at its beginning.
    WallMinutes,
}

/// What a simulated scheduler made of a trace.
#[derive(Debug, Clone)]
pub struct ReplayedTrace {
    /// The clock that it went by.
    pub clock: SimulatedClock,
    /// How long each job waited by this clock, by its place in the trace; not known where it did not
    /// start, or where it ran when the simulation began.
    pub waits_s: Vec<OptionalSeconds>,
    /// Which of them a plan ahead started while another job stood before them.
    pub is_backfilled: Vec<bool>,
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
        let waits_s = self.waits_s.iter();
        waits_s.filter(|wait_s| wait_s.get().is_some()).count()
    }

    /// How many of those passed another job.
    pub fn backfilled(&self) -> usize {
        self.is_backfilled.iter().filter(|is_so| **is_so).count()
    }

    /// Nothing has been simulated of `jobs` yet.
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

    /// When the job at `place` of `trace` started, as a clock on the wall showed it: seconds, as of
    /// universal time.
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

    /// Simulates all that comes to `cluster`: `jobs`, which stand at `places` of the trace. `wait_s`
    /// is how long a job waited, by its number among them and the tick of its start.
    pub(super) fn simulate(
        &mut self,
        mut cluster: SimulatedCluster<'_>,
        (jobs, places): (&[QueueJob], &[u32]),
        wait_s: impl Fn(usize, i64) -> i64,
    ) {
        let parts = jobs.chunks(FORGOTTEN_JOBS);
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

/// How long jobs may run that have no limit of their own: as long as any other may, or has run.
pub(in crate) fn longest_limit_s(jobs: &[TraceJob]) -> i64 {
    let mut longest_s = 60;
    for job in jobs {
        let most_s = job.limit_s.get().or(job.run_s.get());
        longest_s = longest_s.max(most_s.unwrap_or(0));
    }
    longest_s
}

/// Numbers users from 0 on, in the order of their first job.
pub(in crate) fn number_users(jobs: &[TraceJob]) -> (Vec<u32>, usize) {
    let mut known = std::collections::HashMap::new();
    let mut numbers = Vec::with_capacity(jobs.len());
    for job in jobs {
        let next = known.len() as u32;
        numbers.push(*known.entry(job.user).or_insert(next));
    }
    (numbers, known.len())
}
