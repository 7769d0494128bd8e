//! Slurm, as it works: nodes that came and went, users' limits, jobs that are cancelled while they
//! wait or become eligible after their submission, and what ran and waited at the beginning.

use anyhow::{Result, ensure};

use super::found_capacity::found_capacity;
use super::replayed_trace::{DatedNodes, ReplayedTrace, longest_limit_s, number_users};
use crate::provision::scheduler::{
    CapacityStep, NEVER, QueueJob, SchedulerSettings, SimulatedCluster,
};
use crate::provision::trace::{JobFate, JobTrace, TraceJob, busiest_users};

/// How the scheduler of a cluster is set. Spans are seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct SlurmReplay {
    /// How many nodes there are, from when on; empty: as the trace shows.
    pub nodes: Vec<DatedNodes>,
    /// How many jobs of one user may run at once; `None`: as the trace shows, 0: any number.
    pub max_jobs_per_user: Option<u32>,
    /// `bf_interval`.
    pub bf_interval_s: i64,
    /// `bf_resolution`.
    pub bf_resolution_s: i64,
    /// `bf_window`.
    pub bf_window_s: i64,
    /// `bf_max_job_test`.
    pub bf_max_job_test: usize,
    /// `PriorityWeightAge`.
    pub priority_weight_age: i64,
    /// `PriorityWeightJobSize`.
    pub priority_weight_job_size: i64,
    /// `PriorityMaxAge`.
    pub priority_max_age_s: i64,
}

/// Replays `trace`.
///
/// # Errors
/// Fails for a trace that tells no number of nodes where none is given.
pub fn replay_slurm(trace: &JobTrace, replay: &SlurmReplay) -> Result<ReplayedTrace> {
    let nodes = if replay.nodes.is_empty() {
        found_capacity(trace)
    } else {
        replay.nodes.clone()
    };
    ensure!(
        !nodes.is_empty(),
        "no job of the trace has a start and an end, so it shows no number of nodes: give `--nodes`"
    );

    let begin_s = begin_s(&trace.jobs);
    let settings = replay.settings(trace, &nodes, begin_s);
    let most_nodes = settings.most_nodes();
    let (users, user_count) = number_users(&trace.jobs);
    let longest_s = longest_limit_s(&trace.jobs);
    let mut replayed = ReplayedTrace::empty(&trace.jobs, begin_s, nodes);
    replayed.max_jobs_per_user = settings.max_jobs_per_user;

    let (mut entries, mut running) = (Vec::new(), Vec::new());
    for (place, job) in trace.jobs.iter().enumerate() {
        let entry = queue_job(job, users[place], longest_s, begin_s);
        if has_left(job, begin_s) {
            continue;
        }
        match job.start_s.filter(|start_s| *start_s <= begin_s) {
            Some(start_s) => running.push((entry, start_s)),
            None if job.nodes > most_nodes => replayed.too_large += 1,
            None => entries.push((entry, place)),
        }
    }
    entries.sort_by_key(|(job, place)| (job.enter, *place));
    let jobs: Vec<QueueJob> = entries.iter().map(|(job, _)| *job).collect();

    let mut cluster = SimulatedCluster::new(&settings, &jobs, user_count);
    for (job, start_s) in &running {
        cluster.add_running(job, *start_s);
    }
    replayed.running_at_begin = running.len();
    replayed.excess_nodes = (-cluster.free_nodes()).max(0) as u32;
    cluster.run_until(NEVER - 1);

    for (run, (_, place)) in cluster.runs().iter().zip(&entries) {
        let start_s = run.start.unwrap_or(begin_s);
        let wait_s = start_s - trace.jobs[*place].submit_s;
        replayed.take(*place, *run, trace.zone.wall_s(start_s), wait_s);
    }
    Ok(replayed)
}

/// The first end of a run: an export has all jobs that ran then, but not those that had ended
/// before. Without an end, the first submission.
fn begin_s(jobs: &[TraceJob]) -> i64 {
    let ran = jobs.iter().filter(|job| job.fate == JobFate::Ended);
    let first_end_s = ran.filter_map(|job| job.end_s).min();
    first_end_s.unwrap_or_else(|| jobs.first().map_or(0, |job| job.submit_s))
}

/// Whether a job was gone when the simulation begins.
fn has_left(job: &TraceJob, begin_s: i64) -> bool {
    let has_times = job.start_s.is_some() || job.fate == JobFate::Cancelled;
    has_times && job.end_s.is_some_and(|end_s| end_s <= begin_s)
}

fn queue_job(job: &TraceJob, user: u32, longest_s: i64, begin_s: i64) -> QueueJob {
    let limit_s = job.limit_s.unwrap_or(longest_s);
    let cancel = match job.fate {
        JobFate::Cancelled => job.end_s.unwrap_or(NEVER),
        JobFate::Pending | JobFate::Running | JobFate::Ended => NEVER,
    };
    // A job that was cancelled while it waited is taken for one that fails at once.
    let run_s = match job.fate {
        JobFate::Ended => job.run_s.unwrap_or(limit_s),
        JobFate::Pending | JobFate::Running => limit_s,
        JobFate::Cancelled => 0,
    };
    QueueJob {
        enter: job.eligible_s.max(begin_s),
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
            // What comes before the first step has as many nodes.
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
        SchedulerSettings {
            begin: begin_s,
            capacity: nodes.iter().enumerate().map(step).collect(),
            // Jobs of users who are not known would be those of one.
            max_jobs_per_user: max_jobs_per_user
                .filter(|_| trace.jobs.iter().all(|job| job.user != 0)),
            backfill_interval: self.bf_interval_s,
            slot: self.bf_resolution_s,
            slots: (self.bf_window_s / self.bf_resolution_s).max(1) as u32,
            max_job_test: self.bf_max_job_test,
            age_weight: self.priority_weight_age,
            max_age: self.priority_max_age_s,
            size_weight: self.priority_weight_job_size,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::trace::{JobNumber, TraceSummary, TraceZone};

    fn settings(nodes: &[(i64, u32)]) -> SlurmReplay {
        let dated = |(from_s, nodes): &(i64, u32)| DatedNodes {
            from_s: *from_s,
            nodes: *nodes,
        };
        SlurmReplay {
            nodes: nodes.iter().map(dated).collect(),
            max_jobs_per_user: Some(0),
            bf_interval_s: 60,
            bf_resolution_s: 600,
            bf_window_s: 172_800,
            bf_max_job_test: 3000,
            priority_weight_age: 7000,
            priority_weight_job_size: 100,
            priority_max_age_s: 7 * 86_400,
        }
    }

    /// A job that was submitted, started and ended at these moments.
    fn job(number: u64, submit_s: i64, start_s: i64, end_s: i64) -> TraceJob {
        TraceJob {
            id: JobNumber::single(number),
            user: number,
            submit_s,
            eligible_s: submit_s,
            start_s: Some(start_s),
            end_s: Some(end_s),
            run_s: Some(end_s - start_s),
            limit_s: Some(3600),
            nodes: 2,
            fate: JobFate::Ended,
        }
    }

    fn trace(jobs: Vec<TraceJob>) -> JobTrace {
        let zone = TraceZone::utc();
        JobTrace {
            summary: TraceSummary::of(&jobs, Vec::new(), &zone),
            jobs,
            zone,
        }
    }

    fn starts(jobs: Vec<TraceJob>, settings: &SlurmReplay) -> Vec<Option<i64>> {
        let replayed = replay_slurm(&trace(jobs), settings).expect("simulated");
        replayed.starts_wall_s
    }

    #[test]
    fn what_runs_and_waits_at_the_beginning_is_there() {
        let jobs = vec![
            job(1, 1000, 1000, 2000),
            job(2, 1100, 1500, 4000),
            job(3, 1200, 9000, 9100),
            job(4, 2500, 2500, 2600),
        ];
        // The first end is at 2000: job 1 has gone, job 2 runs as logged, job 3 waits.
        assert_eq!(
            starts(jobs.clone(), &settings(&[(0, 2)])),
            [None, None, Some(4000), Some(4100)]
        );
        let replayed = replay_slurm(&trace(jobs), &settings(&[(0, 1)])).expect("simulated");
        assert_eq!((replayed.running_at_begin, replayed.excess_nodes), (1, 1));
        assert_eq!(replayed.too_large, 2);
    }

    #[test]
    fn jobs_wait_until_they_are_eligible_and_leave_when_they_are_cancelled() {
        let mut late = job(2, 2000, 9000, 9100);
        late.eligible_s = 6000;
        let mut cancelled = job(3, 2001, 0, 2500);
        (cancelled.start_s, cancelled.run_s) = (None, None);
        cancelled.fate = JobFate::Cancelled;
        let holder = job(4, 1999, 2000, 5000);
        let first = job(1, 1000, 1000, 1900);
        assert_eq!(
            starts(vec![first, holder, late, cancelled], &settings(&[(0, 2)])),
            [None, Some(1999), Some(6000), None]
        );
    }

    #[test]
    fn jobs_wait_for_nodes_that_come_later() {
        let mut large = job(2, 2000, 9000, 9100);
        large.nodes = 4;
        let found = starts(
            vec![job(1, 1000, 1000, 1900), large, job(3, 2001, 2001, 2100)],
            &settings(&[(0, 2), (5000, 4)]),
        );
        assert_eq!(found, [None, Some(5000), Some(2001)]);
    }

    #[test]
    fn a_trace_that_shows_no_nodes_needs_to_be_told() {
        let mut pending = job(1, 1000, 0, 0);
        (pending.start_s, pending.end_s, pending.run_s) = (None, None, None);
        pending.fate = JobFate::Pending;
        let error = replay_slurm(&trace(vec![pending]), &settings(&[])).expect_err("no nodes");
        assert!(error.to_string().contains("--nodes"), "{error}");
        assert_eq!(starts(vec![pending], &settings(&[(0, 2)])), [Some(1000)]);
    }
}
