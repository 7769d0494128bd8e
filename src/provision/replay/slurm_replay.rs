//! Replays a trace with Slurm's actual scheduling rules.

use anyhow::Result;

use super::replayed_trace::{ReplayedTrace, SimulatedClock};
use super::slurm_world::{SlurmReplay, SlurmWorld};
use crate::trace::JobTrace;

/// Replays `trace`.
///
/// # Errors
/// Fails if neither the trace nor `replay` shows the number of nodes.
pub fn replay_slurm(trace: &JobTrace, replay: &SlurmReplay) -> Result<ReplayedTrace> {
    let world = SlurmWorld::new(trace, replay)?;
    let cluster = world.cluster();
    let (clock, begin_s) = (SimulatedClock::Universal, world.settings.begin);
    let mut replayed = ReplayedTrace::empty(&trace.jobs, clock, begin_s, world.nodes.clone());
    replayed.max_jobs_per_user = world.settings.max_jobs_per_user;
    replayed.too_large = world.too_large;
    replayed.running_at_begin = world.running.len();
    replayed.excess_nodes = (-cluster.free_nodes()).max(0) as u32;
    replayed.simulate(cluster, (&world.jobs, &world.places), |number, start_s| {
        start_s - trace.jobs[world.places[number] as usize].submit_s
    });
    Ok(replayed)
}

#[cfg(test)]
mod tests {
    use super::super::replayed_trace::DatedNodes;
    use super::*;
    use crate::trace::{JobFate, JobNumber, OptionalSeconds, TraceJob, TraceSummary, TraceZone};

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
            turnaround_s: 0,
            priority_weight_age: 7000,
            priority_weight_job_size: 100,
            priority_max_age_s: 7 * 86_400,
        }
    }

    /// Returns a job with these submission, start and end times.
    fn job(number: u64, submit_s: i64, start_s: i64, end_s: i64) -> TraceJob {
        TraceJob {
            id: JobNumber::single(number),
            user: number,
            submit_s,
            eligible_s: submit_s,
            start_s: start_s.into(),
            end_s: end_s.into(),
            run_s: (end_s - start_s).into(),
            limit_s: 3600.into(),
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
        let trace = trace(jobs);
        let replayed = replay_slurm(&trace, settings).expect("simulated");
        let places = 0..trace.jobs.len();
        places
            .map(|place| replayed.start_wall_s(&trace, place))
            .collect()
    }

    #[test]
    fn jobs_at_the_beginning_are_simulated() {
        let jobs = vec![
            job(1, 1000, 1000, 2000),
            job(2, 1100, 1500, 4000),
            job(3, 1200, 9000, 9100),
            job(4, 2500, 2500, 2600),
        ];
        // The first end is at 2000: job 1 has left, job 2 runs as logged, and job 3 waits.
        assert_eq!(
            starts(jobs.clone(), &settings(&[(0, 2)])),
            [None, None, Some(4000), Some(4100)]
        );
        let replayed = replay_slurm(&trace(jobs), &settings(&[(0, 1)])).expect("simulated");
        assert_eq!((replayed.running_at_begin, replayed.excess_nodes), (1, 1));
        assert_eq!(replayed.too_large, 2);
    }

    #[test]
    fn jobs_start_when_eligible_and_leave_when_cancelled() {
        let mut late = job(2, 2000, 9000, 9100);
        late.eligible_s = 6000;
        let mut cancelled = job(3, 2001, 0, 2500);
        (cancelled.start_s, cancelled.run_s) = (OptionalSeconds::UNKNOWN, OptionalSeconds::UNKNOWN);
        cancelled.fate = JobFate::Cancelled;
        let holder = job(4, 1999, 2000, 5000);
        let first = job(1, 1000, 1000, 1900);
        assert_eq!(
            starts(vec![first, holder, late, cancelled], &settings(&[(0, 2)])),
            [None, Some(1999), Some(6000), None]
        );
    }

    #[test]
    fn jobs_wait_for_later_nodes() {
        let mut large = job(2, 2000, 9000, 9100);
        large.nodes = 4;
        let found = starts(
            vec![job(1, 1000, 1000, 1900), large, job(3, 2001, 2001, 2100)],
            &settings(&[(0, 2), (5000, 4)]),
        );
        assert_eq!(found, [None, Some(5000), Some(2001)]);
    }

    #[test]
    fn the_head_of_a_trace_states_the_cluster_size() {
        use crate::trace::{TraceOptions, read_trace};
        use poolcast_base::salt::OwnerSalt;

        // Two runs overlap by more than an hour, as if the cluster had 300 nodes.
        let row = |number: u32, start_s: u32| {
            format!("{number} {start_s} 0 90000 150 -1 -1 150 90000 -1 1 5 -1 -1 1 -1 -1 -1\n")
        };
        let nodes = |head: &str, settings: &SlurmReplay| {
            let dir = tempfile::tempdir().expect("a directory");
            let file = dir.path().join("workload.swf");
            fs_err::write(&file, format!("{head}{}{}", row(1, 0), row(2, 100))).expect("written");
            let salt = OwnerSalt::random().expect("random");
            let read = read_trace(&[file], &TraceOptions::default(), &salt).expect("read");
            let trace = JobTrace {
                summary: TraceSummary::of(&read.jobs, read.sources, &read.zone),
                jobs: read.jobs,
                zone: read.zone,
            };
            let world = SlurmWorld::new(&trace, settings).expect("a world");
            world
                .nodes
                .iter()
                .map(|step| step.nodes)
                .collect::<Vec<_>>()
        };
        let head = "; MaxNodes: 200\n; MaxProcs: 200\n";
        assert_eq!(nodes("", &settings(&[])), [300]);
        assert_eq!(nodes(head, &settings(&[])), [200]);
        assert_eq!(nodes(head, &settings(&[(0, 250)])), [250]);
    }

    #[test]
    fn traces_without_runs_need_a_node_count() {
        let mut pending = job(1, 1000, 0, 0);
        pending.start_s = OptionalSeconds::UNKNOWN;
        (pending.end_s, pending.run_s) = (OptionalSeconds::UNKNOWN, OptionalSeconds::UNKNOWN);
        pending.fate = JobFate::Pending;
        let error = replay_slurm(&trace(vec![pending]), &settings(&[])).expect_err("no nodes");
        assert!(error.to_string().contains("--nodes"), "{error}");
        assert_eq!(starts(vec![pending], &settings(&[(0, 2)])), [Some(1000)]);
    }
}
