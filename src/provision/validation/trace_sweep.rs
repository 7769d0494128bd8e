//! What a trace shows of its cluster at one moment after another.

use crate::forecast::{EndedRun, QueueMoment, SeenRun, SeenWait};
use crate::trace::{JobFate, TraceJob};

/// A trace at a moment that only moves on. Nothing later than the moment is told.
#[derive(Debug)]
pub(super) struct TraceSweep<'a> {
    jobs: &'a [TraceJob],
    /// Whose each job is.
    users: &'a [u32],
    /// How long jobs without a limit may run.
    longest_s: i64,
    /// How many jobs had been submitted.
    submitted: usize,
    /// Those of them that may not have left.
    present: Vec<usize>,
    /// Jobs that have run, by their start, and by their end.
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

    /// The queue that the job at `place` comes to, which is submitted later than any asked for before.
    /// `nodes` is how many nodes there are.
    pub(super) fn queue_before(&mut self, place: usize, nodes: u32) -> QueueMoment {
        let now_s = self.jobs[place].submit_s;
        self.present.extend(self.submitted..place);
        self.submitted = place;
        let jobs = self.jobs;
        self.present.retain(|other| {
            let job = &jobs[*other];
            let has_times = job.start_s.get().is_some() || job.fate == JobFate::Cancelled;
            !(has_times && job.end_s.get().is_some_and(|end_s| end_s <= now_s))
        });

        let mut queue = QueueMoment {
            now_s,
            nodes,
            running: Vec::new(),
            waiting: Vec::new(),
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

    /// How long the job at `place` may run.
    pub(super) fn limit_s(&self, place: usize) -> i64 {
        self.jobs[place]
            .limit_s
            .get()
            .unwrap_or(self.longest_s)
            .max(1)
    }

    /// The last `most` runs that had ended by `now_s`.
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

    /// The jobs that had started by `now_s`, the last first.
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

    /// Jobs that come second after second.
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

    /// The same jobs as far as they are known at `now_s`: all that is later is different.
    fn later_changed(jobs: &[TraceJob], now_s: i64) -> Vec<TraceJob> {
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
        fn nothing_later_is_told(seed in 0u64..1000, place in 1usize..60) {
            let jobs = jobs(seed);
            let changed = later_changed(&jobs, jobs[place].submit_s);
            prop_assert_eq!(known(&jobs, place), known(&changed, place));
        }
    }

    #[test]
    fn jobs_run_wait_or_are_gone() {
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
