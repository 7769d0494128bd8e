//! Past jobs: their waits, their run times, and the number of jobs that one user ran at once.

use poolcast_provision::replay::longest_limit_s;
use poolcast_provision::submission::StartedWait;
use poolcast_provision::trace::{JobFate, JobTrace, busiest_users};

/// A run that has ended. Times are in epoch seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PastRun {
    pub(super) end_s: i64,
    /// The hash of the user.
    pub(super) user: u64,
    pub(super) limit_s: i64,
    pub(super) run_s: i64,
}

/// The runs of a trace, by their end.
#[derive(Debug, Clone, Default)]
pub struct PastRuns {
    pub(super) runs: Vec<PastRun>,
    /// Start times and waits of jobs, by start.
    pub(super) waits: Vec<(i64, StartedWait)>,
    /// The last end in the trace. The trace has no later ends.
    pub(super) until_s: i64,
    /// The assumed time limit of jobs without one, in seconds.
    pub(super) longest_s: i64,
    /// The probable limit of running jobs per user.
    pub(super) max_jobs_per_user: Option<u32>,
}

impl PastRuns {
    /// Collects the past jobs of `trace`.
    pub fn from_trace(trace: &JobTrace) -> PastRuns {
        let longest_s = longest_limit_s(&trace.jobs);
        let mut runs = Vec::new();
        for job in &trace.jobs {
            if job.fate != JobFate::Ended {
                continue;
            }
            if let (Some(end_s), Some(run_s)) = (job.end_s.get(), job.run_s.get()) {
                runs.push(PastRun {
                    end_s,
                    user: job.user,
                    limit_s: job.limit_s.get().unwrap_or(longest_s),
                    run_s,
                });
            }
        }
        runs.sort_by_key(|run| run.end_s);
        let mut waits = Vec::new();
        for job in &trace.jobs {
            if let Some(start_s) = job.start_s.get().filter(|_| job.fate != JobFate::Cancelled) {
                let wait = StartedWait {
                    nodes: job.nodes,
                    limit_s: job.limit_s.get().unwrap_or(longest_s),
                    wait_s: (start_s - job.eligible_s).max(0),
                };
                waits.push((start_s, wait));
            }
        }
        waits.sort_by_key(|(start_s, _)| *start_s);
        let has_users = trace.jobs.iter().all(|job| job.user != 0);
        let limit = busiest_users(&trace.jobs).likely_limit();
        PastRuns {
            until_s: runs.last().map_or(0, |run| run.end_s),
            runs,
            waits,
            longest_s,
            max_jobs_per_user: limit.filter(|_| has_users),
        }
    }

    /// Returns the number of runs.
    pub fn count(&self) -> usize {
        self.runs.len()
    }
}
