//! Replays a trace in order of time and returns the state of the queue at each submission.

use crate::forecast::{EndedRun, QueueTime, SeenRun, SeenWait};
use crate::trace::{JobFate, TraceJob};

/// A trace at a point in time that only moves forward. It never reveals anything later.
#[derive(Debug)]
pub(super) struct TraceSweep<'a> {
    jobs: &'a [TraceJob],
    /// User of each job.
    users: &'a [u32],
    /// Time limit of jobs without a limit of their own, in seconds.
    longest_s: i64,
    /// Number of jobs that have been submitted.
    submitted: usize,
    /// Submitted jobs that may still be in the queue or running.
    present: Vec<usize>,
    /// Jobs that have run, sorted by start and by end.
    by_start: Vec<usize>,
    by_end: Vec<usize>,
}

impl<'a> TraceSweep<'a> {
    pub(super) fn new(jobs: &'a [TraceJob], users: &'a [u32], longest_s: i64) -> TraceSweep<'a> {
        let mut by_start: Vec<usize> = Vec::new();
        let mut by_end: Vec<usize> = Vec::new();
        for (place, job) in jobs.iter().enumerate() {
            if job.wait_s().is_some() {
                by_start.push(place);
            }
            if job.fate == JobFate::Ended && job.end_s.get().is_some() && job.run_s.get().is_some()
            {
                by_end.push(place);
            }
        }
        by_start.sort_by_key(|place| jobs[*place].start_s);
        by_end.sort_by_key(|place| jobs[*place].end_s);
        TraceSweep {
            jobs,
            users,
            longest_s,
            submitted: 0,
            present: Vec::new(),
            by_start,
            by_end,
        }
    }

    /// Returns the queue at the submission of the job with index `place`. Calls must be in order of
    /// submission. `nodes` is the number of nodes at that time.
    pub(super) fn queue_before(&mut self, place: usize, nodes: u32) -> QueueTime {
        let now_s = self.jobs[place].submit_s;
        self.present.extend(self.submitted..place);
        self.submitted = place;
        let jobs = self.jobs;
        self.present.retain(|other| {
            let job = &jobs[*other];
            // A job without a start counts as gone only if it was cancelled.
            let has_times = job.start_s.get().is_some() || job.fate == JobFate::Cancelled;
            !(has_times && job.end_s.get().is_some_and(|end_s| end_s <= now_s))
        });

        let mut queue = QueueTime {
            now_s,
            nodes,
            running: Vec::new(),
            waiting: Vec::new(),
            shared: None,
        };
        for other in &self.present {
            let job = &self.jobs[*other];
            let limit_s = self.limit_s(*other);
            let user = self.users[*other];
            if let Some(start_s) = job.start_s.get().filter(|start_s| *start_s <= now_s) {
                queue.running.push(SeenRun {
                    start_s,
                    limit_s,
                    nodes: job.nodes,
                    user,
                    end_s: None,
                });
            } else if job.eligible_s <= now_s {
                queue.waiting.push(SeenWait {
                    since_s: job.eligible_s,
                    limit_s,
                    nodes: job.nodes,
                    user,
                });
            }
        }
        queue
    }

    /// Returns the time limit of the job with index `place`, in seconds.
    pub(super) fn limit_s(&self, place: usize) -> i64 {
        self.jobs[place]
            .limit_s
            .get()
            .unwrap_or(self.longest_s)
            .max(1)
    }

    /// Returns the last `most` runs that had ended by `now_s`.
    pub(super) fn ended_runs(&self, now_s: i64, most: usize) -> impl Iterator<Item = EndedRun> {
        let has_ended = |place: &usize| {
            let end_s = self.jobs[*place].end_s.get();
            end_s.is_some_and(|end_s| end_s <= now_s)
        };
        let end = self.by_end.partition_point(has_ended);
        let last = &self.by_end[end.saturating_sub(most)..end];
        last.iter().map(|place| EndedRun {
            user: self.users[*place],
            limit_s: self.limit_s(*place),
            run_s: self.jobs[*place].run_s.get().unwrap_or(0),
        })
    }

    /// Returns the jobs that had started by `now_s`, in order of start, the latest first.
    pub(super) fn started(&self, now_s: i64) -> impl Iterator<Item = &TraceJob> {
        let has_started = |place: &usize| {
            let start_s = self.jobs[*place].start_s.get();
            start_s.is_some_and(|start_s| start_s <= now_s)
        };
        let end = self.by_start.partition_point(has_started);
        self.by_start[..end]
            .iter()
            .rev()
            .map(|place| &self.jobs[*place])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rand::Rng as _;

    use super::*;
    use crate::trace::{JobNumber, OptionalSeconds};

    /// Creates jobs that are submitted one after the other.
    fn jobs(seed: u64) -> Vec<TraceJob> {
        let mut random = poolcast_base::seed::generator(seed, "traces", &[]);
        let mut jobs = Vec::new();
        for number in 0..60 {
            let submit_s = number * 10;
            let start_s = submit_s + random.random_range(0..200);
            let run_s = random.random_range(1..300);
            let is_cancelled = random.random_range(0..6) == 0;
            jobs.push(TraceJob {
                id: JobNumber::single(number as u64),
                user: random.random_range(1..4),
                submit_s,
                eligible_s: submit_s + random.random_range(0..20),
                start_s: Some(start_s).filter(|_| !is_cancelled).into(),
                end_s: (start_s + run_s).into(),
                run_s: Some(run_s).filter(|_| !is_cancelled).into(),
                limit_s: 400.into(),
                nodes: 1,
                fate: if is_cancelled {
                    JobFate::Cancelled
                } else {
                    JobFate::Ended
                },
            });
        }
        jobs
    }

    /// Changes everything in `jobs` that is not known yet at `now_s`.
    fn with_later_changes(jobs: &[TraceJob], now_s: i64) -> Vec<TraceJob> {
        let mut changed = jobs.to_vec();
        for job in &mut changed {
            if job.submit_s > now_s {
                (job.nodes, job.limit_s, job.user) = (7, OptionalSeconds::UNKNOWN, 9);
            }
            if job.end_s.get().is_some_and(|end_s| end_s > now_s) {
                (job.end_s, job.run_s) = ((now_s + 5000).into(), 4000.into());
                if job.start_s.get().is_none_or(|start_s| start_s > now_s) {
                    (job.start_s, job.fate) = ((now_s + 1).into(), JobFate::Ended);
                }
            }
        }
        changed
    }

    fn known(jobs: &[TraceJob], place: usize) -> String {
        let users: Vec<u32> = jobs.iter().map(|job| job.user as u32).collect();
        let mut sweep = TraceSweep::new(jobs, &users, 400);
        sweep.queue_before(place / 2, 4);
        let queue = sweep.queue_before(place, 4);
        let ended: Vec<EndedRun> = sweep.ended_runs(queue.now_s, 10).collect();
        let mut waits_s: Vec<Option<i64>> =
            sweep.started(queue.now_s).map(TraceJob::wait_s).collect();
        waits_s.sort_unstable();
        format!("{queue:?} {ended:?} {waits_s:?}")
    }

    proptest! {
        #[test]
        fn later_changes_are_not_visible(seed in 0u64..1000, place in 1usize..60) {
            let jobs = jobs(seed);
            let changed = with_later_changes(&jobs, jobs[place].submit_s);
            prop_assert_eq!(known(&jobs, place), known(&changed, place));
        }
    }

    #[test]
    fn jobs_are_running_waiting_or_gone() {
        let mut jobs = jobs(1);
        for (job, (start_s, end_s)) in
            jobs.iter_mut()
                .zip([(0, 15), (10, 500), (60, 90), (200, 201)])
        {
            (job.start_s, job.end_s, job.run_s) =
                (start_s.into(), end_s.into(), (end_s - start_s).into());
            (job.eligible_s, job.fate) = (job.submit_s, JobFate::Ended);
        }
        jobs[3].eligible_s = 100;
        let mut sweep = TraceSweep::new(&jobs, &[0; 60], 400);
        let queue = sweep.queue_before(4, 4);
        assert_eq!(
            (queue.now_s, queue.running.len(), queue.waiting.len()),
            (40, 1, 1)
        );
        assert_eq!(
            (queue.running[0].start_s, queue.waiting[0].since_s),
            (10, 20)
        );
        assert_eq!(sweep.ended_runs(40, 10).count(), 1);
        assert_eq!(
            sweep.started(40).next().map(|job| job.start_s),
            Some(10.into())
        );
    }
}
