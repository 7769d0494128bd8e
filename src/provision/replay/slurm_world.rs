//! A trace, prepared for a simulation with Slurm's actual rules.
//!
//! It covers nodes that are added and removed, limits per user, and jobs that are cancelled while
//! pending. It also covers jobs that become eligible after their submission, and jobs that ran or
//! waited at the beginning.

use anyhow::{Result, ensure};
use serde::Serialize;

use super::found_capacity::found_capacity;
use super::replayed_trace::{DatedNodes, longest_limit_s, number_users};
use crate::scheduler::{CapacityStep, NEVER, QueueJob, SchedulerSettings, SimulatedCluster};
use crate::trace::{JobFate, JobTrace, TraceJob, busiest_users};

/// Settings of a cluster's scheduler. Durations are in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SlurmReplay {
    /// Number of nodes over time; if empty, the number in the trace's header, else derived from its jobs.
    pub nodes: Vec<DatedNodes>,
    /// Maximum number of running jobs per user; 0 means unlimited, and `None` derives it from the
    /// trace.
    pub max_jobs_per_user: Option<u32>,
    /// The setting `bf_interval`.
    pub bf_interval_s: i64,
    /// The setting `bf_resolution`.
    pub bf_resolution_s: i64,
    /// The setting `bf_window`.
    pub bf_window_s: i64,
    /// The setting `bf_max_job_test`.
    pub bf_max_job_test: usize,
    /// Time after the end of a job during which its nodes accept no other job.
    pub turnaround_s: i64,
    /// The setting `PriorityWeightAge`.
    pub priority_weight_age: i64,
    /// The setting `PriorityWeightJobSize`.
    pub priority_weight_job_size: i64,
    /// The setting `PriorityMaxAge`.
    pub priority_max_age_s: i64,
}

/// The cluster of a trace and its jobs, ready for simulation. Times are in epoch seconds.
#[derive(Debug)]
pub struct SlurmWorld {
    /// The settings of the scheduler.
    pub settings: SchedulerSettings,
    /// The jobs, in the order in which they enter the queue.
    pub jobs: Vec<QueueJob>,
    /// The index of each of these jobs in the trace.
    pub places: Vec<u32>,
    /// The jobs that run at the beginning, and their starts.
    pub running: Vec<(QueueJob, i64)>,
    /// Number of users in the trace, who have the numbers below it. The number itself is reserved
    /// for a user who submits additional jobs.
    pub users: usize,
    /// Number of nodes over time.
    pub nodes: Vec<DatedNodes>,
    /// Skipped jobs that need more nodes than the cluster ever has.
    pub too_large: usize,
}

impl SlurmWorld {
    /// Prepares `trace` for simulation.
    ///
    /// # Errors
    /// Fails if neither the trace nor `replay` shows the number of nodes.
    pub fn new(trace: &JobTrace, replay: &SlurmReplay) -> Result<SlurmWorld> {
        let nodes = cluster_nodes(trace, replay);
        ensure!(
            !nodes.is_empty(),
            "cannot find the number of nodes, because no job of the trace has a start and an end: give `--nodes N`"
        );

        let begin_s = begin_s(&trace.jobs);
        let settings = replay.settings(trace, &nodes, begin_s);
        let most_nodes = settings.most_nodes();
        let (user_numbers, users) = number_users(&trace.jobs);
        let longest_s = longest_limit_s(&trace.jobs);

        let entry =
            |place: usize| queue_job(&trace.jobs[place], user_numbers[place], longest_s, begin_s);
        let mut places: Vec<u32> = Vec::with_capacity(trace.jobs.len());
        let (mut running, mut too_large) = (Vec::new(), 0);
        for (place, job) in trace.jobs.iter().enumerate() {
            if has_left(job, begin_s) {
                continue;
            }
            match job.start_s.get().filter(|start_s| *start_s <= begin_s) {
                Some(start_s) => running.push((entry(place), start_s)),
                None if job.nodes > most_nodes => too_large += 1,
                None => places.push(place as u32),
            }
        }
        places.sort_by_key(|place| enter_s(&trace.jobs[*place as usize], begin_s));
        let jobs = places.iter().map(|place| entry(*place as usize)).collect();
        Ok(SlurmWorld {
            settings,
            jobs,
            places,
            running,
            users,
            nodes,
            too_large,
        })
    }

    /// Returns the cluster at the beginning, with its running jobs.
    pub fn cluster(&self) -> SimulatedCluster<'_> {
        let mut cluster = SimulatedCluster::new(&self.settings, &self.jobs, self.users + 1);
        for (job, start_s) in &self.running {
            cluster.add_running(job, *start_s);
        }
        cluster
    }

    /// Returns a cluster that is empty at `begin_s`, regardless of running and waiting jobs.
    pub fn empty_cluster(&self, begin_s: i64) -> SimulatedCluster<'_> {
        SimulatedCluster::empty_at(begin_s, &self.settings, &self.jobs, self.users + 1)
    }
}

/// Returns the number of nodes over time: the configured one, else the one in the trace's header, else
/// the number that was busy in the trace.
fn cluster_nodes(trace: &JobTrace, replay: &SlurmReplay) -> Vec<DatedNodes> {
    if !replay.nodes.is_empty() {
        return replay.nodes.clone();
    }
    match trace.summary.cluster_nodes() {
        Some(nodes) => vec![DatedNodes { from_s: 0, nodes }],
        None => found_capacity(trace),
    }
}

/// Returns the first end of a run, in epoch seconds. An export contains all jobs that ran at that
/// time, but no jobs that ended before. Without an end, returns the first submission.
fn begin_s(jobs: &[TraceJob]) -> i64 {
    let ran = jobs.iter().filter(|job| job.fate == JobFate::Ended);
    let first_end_s = ran.filter_map(|job| job.end_s.get()).min();
    first_end_s.unwrap_or_else(|| jobs.first().map_or(0, |job| job.submit_s))
}

/// Returns true if the job has left before the simulation begins.
fn has_left(job: &TraceJob, begin_s: i64) -> bool {
    let has_times = job.start_s.get().is_some() || job.fate == JobFate::Cancelled;
    has_times && job.end_s.get().is_some_and(|end_s| end_s <= begin_s)
}

/// Returns the time at which the job enters the queue.
fn enter_s(job: &TraceJob, begin_s: i64) -> i64 {
    job.eligible_s.max(begin_s)
}

fn queue_job(job: &TraceJob, user: u32, longest_s: i64, begin_s: i64) -> QueueJob {
    let limit_s = job.limit_s.get().unwrap_or(longest_s);
    let cancel = match job.fate {
        JobFate::Cancelled => job.end_s.get().unwrap_or(NEVER),
        JobFate::Pending | JobFate::Running | JobFate::Ended => NEVER,
    };
    // If a cancelled job starts in the simulation after all, it ends at once.
    let run_s = match job.fate {
        JobFate::Ended => job.run_s.get().unwrap_or(limit_s),
        JobFate::Pending | JobFate::Running => limit_s,
        JobFate::Cancelled => 0,
    };
    QueueJob {
        enter: enter_s(job, begin_s),
        since: job.eligible_s,
        cancel,
        run: run_s.max(1),
        limit: limit_s.max(1),
        nodes: job.nodes,
        user,
    }
}

impl SlurmReplay {
    fn settings(&self, trace: &JobTrace, nodes: &[DatedNodes], begin_s: i64) -> SchedulerSettings {
        let step = |(number, dated): (usize, &DatedNodes)| CapacityStep {
            // The first step also applies to the time before it.
            from: if number == 0 {
                dated.from_s.min(begin_s)
            } else {
                dated.from_s
            },
            nodes: dated.nodes,
        };
        let max_jobs_per_user = match self.max_jobs_per_user {
            None => busiest_users(&trace.jobs).likely_limit(),
            given => given.filter(|most| *most > 0),
        };
        // All jobs of unknown users would count as jobs of one user, so the limit cannot be
        // applied.
        let max_jobs_per_user =
            max_jobs_per_user.filter(|_| trace.jobs.iter().all(|job| job.user != 0));
        let capacity = nodes.iter().enumerate().map(step).collect();
        self.scheduler_settings(begin_s, capacity, max_jobs_per_user)
    }

    /// Returns the scheduler settings for a simulation that begins at `begin_s`.
    pub fn scheduler_settings(
        &self,
        begin_s: i64,
        capacity: Vec<CapacityStep>,
        max_jobs_per_user: Option<u32>,
    ) -> SchedulerSettings {
        SchedulerSettings {
            begin: begin_s,
            capacity,
            max_jobs_per_user,
            backfill_interval: self.bf_interval_s,
            slot: self.bf_resolution_s,
            slots: (self.bf_window_s / self.bf_resolution_s).max(1) as u32,
            max_job_test: self.bf_max_job_test,
            turnaround: self.turnaround_s,
            age_weight: self.priority_weight_age,
            max_age: self.priority_max_age_s,
            size_weight: self.priority_weight_job_size,
        }
    }
}
