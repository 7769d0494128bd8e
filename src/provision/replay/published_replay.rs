//! Reproduces the decisions of Mirage's simulator exactly, including its faults.
//!
//! It counts wall-clock minutes, starts with an empty cluster of constant size, and knows no limits
//! per user. Jobs that were cancelled while pending run for a minute.

use anyhow::{Result, ensure};

use super::published_files::PublishedFiles;
use super::replayed_trace::{DatedNodes, ReplayedTrace, SimulatedClock, longest_limit_s};
use crate::scheduler::{CapacityStep, NEVER, QueueJob, SchedulerSettings, SimulatedCluster};
use crate::trace::{JobTrace, TraceJob};

/// Length of a tick of its clock, in seconds.
const TICK_S: i64 = 60;

/// Replays `trace` on `nodes` nodes, from the minute of the first submission on.
///
/// # Errors
/// Fails if no job of the trace fits on the nodes.
pub fn replay_published(
    trace: &JobTrace,
    files: &PublishedFiles,
    nodes: u32,
) -> Result<ReplayedTrace> {
    let begin_s = trace.jobs.first().map_or(0, |job| job.submit_s);
    replay_from(trace, files, nodes, begin_s)
}

/// Replays `trace` from `begin_s` on, which is the time of the first plan.
fn replay_from(
    trace: &JobTrace,
    files: &PublishedFiles,
    nodes: u32,
    begin_s: i64,
) -> Result<ReplayedTrace> {
    let longest_s = longest_limit_s(&trace.jobs);
    let places = indices_by_minute(trace, nodes);
    ensure!(
        !places.is_empty(),
        "every job of the trace needs more than {nodes} nodes"
    );
    let entries = places.iter().map(|place| &trace.jobs[*place as usize]);
    let jobs: Vec<QueueJob> = entries
        .map(|job| queue_job(trace, job, longest_s))
        .collect();

    let settings = published_settings(files, nodes, wall_tick(trace, begin_s));
    let cluster = SimulatedCluster::new(&settings, &jobs, 1);
    let dated = DatedNodes {
        from_s: begin_s,
        nodes,
    };
    let clock = SimulatedClock::WallMinutes;
    let mut replayed = ReplayedTrace::empty(&trace.jobs, clock, begin_s, vec![dated]);
    replayed.too_large = trace.jobs.len() - jobs.len();
    replayed.simulate(cluster, (&jobs, &places), |number, start| {
        (start - jobs[number].enter) * TICK_S
    });
    Ok(replayed)
}

/// Returns the indices of the jobs that fit on `nodes` nodes, in the order in which they enter the
/// queue. Jobs submitted in the same minute enter in the order of their ids as text.
fn indices_by_minute(trace: &JobTrace, nodes: u32) -> Vec<u32> {
    let minute = |place: &u32| wall_tick(trace, trace.jobs[*place as usize].submit_s);
    let mut places: Vec<u32> = Vec::with_capacity(trace.jobs.len());
    for (place, job) in trace.jobs.iter().enumerate() {
        if job.nodes <= nodes {
            places.push(place as u32);
        }
    }
    places.sort_by_key(minute);
    for together in places.chunk_by_mut(|a, b| minute(a) == minute(b)) {
        together.sort_by_cached_key(|place| trace.jobs[*place as usize].id.to_string());
    }
    places
}

fn queue_job(trace: &JobTrace, job: &TraceJob, longest_s: i64) -> QueueJob {
    let limit_s = job.limit_s.get().unwrap_or(longest_s);
    let run_s = match (job.start_s.get(), job.end_s.get()) {
        (Some(start_s), Some(end_s)) => trace.zone.wall_s(end_s) - trace.zone.wall_s(start_s),
        (None, Some(_)) => job.run_s.get().unwrap_or(0),
        (_, None) => job.run_s.get().unwrap_or(limit_s),
    };
    let enter = wall_tick(trace, job.submit_s);
    QueueJob {
        enter,
        since: enter,
        cancel: NEVER,
        run: ticks(run_s.min(limit_s)),
        limit: limit_s / TICK_S,
        nodes: job.nodes,
        user: 0,
    }
}

/// Returns the wall-clock minute at `moment_s`.
fn wall_tick(trace: &JobTrace, moment_s: i64) -> i64 {
    trace.zone.wall_s(moment_s).div_euclid(TICK_S)
}

/// Rounds `span_s` up to whole ticks, at least one.
fn ticks(span_s: i64) -> i64 {
    (span_s + TICK_S - 1).div_euclid(TICK_S).max(1)
}

fn published_settings(files: &PublishedFiles, nodes: u32, begin: i64) -> SchedulerSettings {
    let (slurm, backfill) = (&files.slurm, &files.backfill);
    let slot = backfill.bf_resolution / TICK_S;
    SchedulerSettings {
        begin,
        capacity: vec![CapacityStep { from: begin, nodes }],
        max_jobs_per_user: None,
        backfill_interval: backfill.bf_interval,
        slot,
        slots: (backfill.bf_window / slot).max(1) as u32,
        max_job_test: backfill.bf_max_job_test,
        turnaround: 0,
        age_weight: slurm.priority_weight_age,
        max_age: slurm.priority_max_age * 1440,
        size_weight: slurm.priority_weight_job_size,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::trace::{JobNumber, TraceOptions, TraceSummary, TraceZone, read_trace};
    use poolcast_base::manifest;
    use poolcast_base::salt::OwnerSalt;

    const NODES: u32 = 76;

    /// Ten days of a real cluster.
    fn real_trace() -> JobTrace {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/provision/jobs.txt.xz");
        let options = TraceOptions {
            zone: Some(TraceZone::named("America/Chicago").expect("a zone")),
            procs_per_node: None,
        };
        let salt = OwnerSalt::random().expect("random");
        let read = read_trace(&[file], &options, &salt).expect("read");
        JobTrace {
            summary: TraceSummary::of(&read.jobs, read.sources, &read.zone),
            jobs: read.jobs,
            zone: read.zone,
        }
    }

    fn published_files() -> PublishedFiles {
        PublishedFiles::read(None, None).expect("the published values")
    }

    /// Simulates a window as the project Mirage defines it: the jobs of five days on an empty
    /// cluster, and 48-hour jobs submitted at `submits_s`. Returns the starts of these jobs, in
    /// minutes.
    fn window(trace: &JobTrace, begin_s: i64, submits_s: &[i64]) -> Vec<i64> {
        let end_s = begin_s + 5 * 86_400;
        let mut jobs: Vec<TraceJob> = Vec::new();
        for job in &trace.jobs {
            if (begin_s..=end_s).contains(&job.submit_s) {
                jobs.push(*job);
            }
        }
        for (number, submit_s) in submits_s.iter().enumerate() {
            jobs.push(TraceJob {
                id: JobNumber::single(1_000_000 + number as u64),
                user: 0,
                submit_s: *submit_s,
                eligible_s: *submit_s,
                start_s: (*submit_s).into(),
                end_s: (submit_s + 172_800).into(),
                run_s: 172_800.into(),
                limit_s: 172_800.into(),
                nodes: 1,
                fate: crate::trace::JobFate::Ended,
            });
        }
        jobs.sort_by_key(|job| (job.submit_s, job.id));
        let window = JobTrace {
            summary: trace.summary.clone(),
            jobs,
            zone: trace.zone.clone(),
        };
        let replayed = replay_from(&window, &published_files(), NODES, begin_s).expect("simulated");

        let mut starts = Vec::new();
        for (place, job) in window.jobs.iter().enumerate() {
            if job.id.number >= 1_000_000 {
                let start_s = replayed.start_wall_s(&window, place).expect("it starts");
                starts.push((job.id, start_s / 60));
            }
        }
        starts.sort_unstable();
        starts.into_iter().map(|(_, start)| start).collect()
    }

    /// Returns the wait of a first job, in minutes, and gaps between two jobs, in hours. A gap is
    /// the time from the end of the first job to the start of the second, negative if they overlap.
    /// There are seven gaps, for seven submission times of the second job, from the submission of
    /// the first to its end.
    fn probes(trace: &JobTrace, begin: &str) -> (i64, Vec<f64>) {
        let begin_s = trace.zone.moment_s(begin).expect("a date");
        let submit_s = begin_s + 2 * 86_400;
        let start = window(trace, begin_s, &[submit_s])[0];
        let submit = trace.zone.wall_s(submit_s) / 60;
        let end = start + 2880;

        let mut gaps = Vec::new();
        for probe in 0..7 {
            let first = submit + 1;
            let at = (first * 60) as f64 + (end - first) as f64 * 60.0 * f64::from(probe) / 6.0;
            let successor_s = submit_s + (at as i64 / 60 - submit) * 60;
            let starts = window(trace, begin_s, &[submit_s, successor_s]);
            assert_eq!(starts[0], start, "a later job delays none before it");
            let gap_h = (starts[1] - end) as f64 / 60.0;
            gaps.push((gap_h * 1000.0).round() / 1000.0);
        }
        (start - submit, gaps)
    }

    /// The numbers are results of the published program.
    #[test]
    fn windows_agree_with_the_published_program() {
        let trace = real_trace();
        let (wait, gaps) = probes(&trace, "2023-03-01T00:00:00");
        assert_eq!(wait, 430);
        let expected = [-47.217, -45.967, -36.767, -27.583, -18.383, -9.2, 0.0];
        assert_eq!(gaps, expected);
        let (wait, gaps) = probes(&trace, "2023-03-01T04:00:00");
        assert_eq!(wait, 200);
        let expected = [-47.817, -42.767, -34.217, -25.667, -17.117, -8.567, 0.0];
        assert_eq!(gaps, expected);
    }

    #[test]
    fn decisions_on_the_real_trace_are_unchanged() {
        let trace = real_trace();
        let replayed = replay_published(&trace, &published_files(), NODES).expect("simulated");
        let mut lines = String::new();
        for (place, job) in trace.jobs.iter().enumerate() {
            let wall_s = replayed.start_wall_s(&trace, place).expect("it starts");
            let passed = u8::from(replayed.is_backfilled[place]);
            lines.push_str(&format!("{}\t{wall_s}\t{passed}\n", job.id));
        }
        let digest = manifest::sha256(lines.as_bytes());
        assert_eq!(
            (&digest[..16], replayed.backfilled()),
            ("1b08ab09fd3758ec", 383)
        );
    }

    #[test]
    fn jobs_larger_than_the_cluster_are_skipped() {
        let trace = real_trace();
        let replayed = replay_published(&trace, &published_files(), 4).expect("simulated");
        assert_eq!(
            replayed.too_large,
            trace.jobs.iter().filter(|job| job.nodes > 4).count()
        );
        assert!(replay_published(&trace, &published_files(), 0).is_err());
    }
}
