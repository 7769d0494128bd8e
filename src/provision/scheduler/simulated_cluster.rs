//! A cluster and its scheduler, simulated from one moment at which something happens to the next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::plan::SlotPlan;
use super::queue_job::{NEVER, QueueJob};
use super::settings::SchedulerSettings;

/// What became of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimulatedRun {
    /// When it started, in ticks; `None` where it did not.
    pub start: Option<i64>,
    /// Whether a plan ahead started it while another job stood before it in the queue.
    pub is_backfilled: bool,
}

/// A running job: what matters of it, in the order of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RunningJob {
    end: i64,
    limit_end: i64,
    nodes: u32,
    user: u32,
}

/// A job that waits: in the order of the queue, the first one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WaitingJob {
    priority: Reverse<i128>,
    job: u32,
}

/// A cluster at a moment. A clone of it goes on by itself.
#[derive(Debug, Clone)]
pub struct SimulatedCluster<'a> {
    settings: &'a SchedulerSettings,
    /// Jobs in the order in which they enter the queue.
    jobs: &'a [QueueJob],
    /// How many of them have entered it.
    entered: usize,
    /// How many steps of the capacity have come.
    steps: usize,
    /// Nodes that are free; fewer than none where nodes went away below running jobs.
    free: i64,
    nodes: u32,
    waiting: Vec<WaitingJob>,
    /// Jobs that wait and will be cancelled.
    cancels: BinaryHeap<Reverse<(i64, WaitingJob)>>,
    running: BinaryHeap<Reverse<RunningJob>>,
    running_by_user: Vec<u32>,
    runs: Vec<SimulatedRun>,
    next_backfill: i64,
    plan: SlotPlan,
}

impl<'a> SimulatedCluster<'a> {
    /// An empty cluster that `jobs` of `users` users come to, in the order in which they enter the
    /// queue.
    pub fn new(
        settings: &'a SchedulerSettings,
        jobs: &'a [QueueJob],
        users: usize,
    ) -> SimulatedCluster<'a> {
        let mut cluster = SimulatedCluster {
            settings,
            jobs,
            entered: 0,
            steps: 0,
            free: 0,
            nodes: 0,
            waiting: Vec::new(),
            cancels: BinaryHeap::new(),
            running: BinaryHeap::new(),
            running_by_user: vec![0; users],
            runs: vec![SimulatedRun::default(); jobs.len()],
            next_backfill: settings.begin,
            plan: SlotPlan::default(),
        };
        cluster.take_capacity_steps(settings.begin);
        cluster
    }

    /// Lets `job` run from `start` on, before the simulation begins.
    pub fn add_running(&mut self, job: &QueueJob, start: i64) {
        self.hold_nodes(job, start);
    }

    /// How many nodes are free; fewer than none where more jobs run than there are nodes for.
    pub fn free_nodes(&self) -> i64 {
        self.free
    }

    /// What became of each job so far.
    pub fn runs(&self) -> &[SimulatedRun] {
        &self.runs
    }

    /// Simulates all that happens until `until`, that moment included.
    pub fn run_until(&mut self, until: i64) {
        loop {
            let event = self.next_event();
            let backfill = if self.waiting.is_empty() {
                NEVER
            } else {
                self.next_backfill
            };
            let now = event.min(backfill);
            if now > until || now == NEVER {
                return;
            }

            self.take_events(now);
            // Plans are made at their moments whether or not there was somebody to plan for before.
            let interval = self.settings.backfill_interval;
            let missed = (now - self.next_backfill).div_euclid(interval).max(0);
            self.next_backfill += missed * interval;
            if now == self.next_backfill {
                self.next_backfill += interval;
                self.plan_ahead(now);
                // Then jobs are left that can never start, and nothing will change.
                if self.running.is_empty() && self.next_event() == NEVER {
                    return;
                }
            } else {
                if now > self.next_backfill {
                    self.next_backfill += interval;
                }
                self.start_in_order(now);
            }
        }
    }

    /// The next moment at which a job enters, ends or is cancelled, or nodes come or go.
    fn next_event(&self) -> i64 {
        let enter = self.jobs.get(self.entered).map_or(NEVER, |job| job.enter);
        let step = self.settings.capacity.get(self.steps);
        let step = step.map_or(NEVER, |step| step.from);
        let end = self.running.peek().map_or(NEVER, |running| running.0.end);
        let cancel = self.cancels.peek().map_or(NEVER, |cancel| cancel.0.0);
        enter.min(step).min(end).min(cancel)
    }

    /// What happens at `now` before the scheduler acts.
    fn take_events(&mut self, now: i64) {
        while let Some(Reverse(running)) = self.running.peek().copied() {
            if running.end > now {
                break;
            }
            self.running.pop();
            self.free += i64::from(running.nodes);
            self.running_by_user[running.user as usize] -= 1;
        }
        self.take_capacity_steps(now);
        while let Some(job) = self.jobs.get(self.entered) {
            if job.enter > now {
                break;
            }
            self.enter(self.entered as u32, job);
            self.entered += 1;
        }
        while let Some(Reverse((cancel, waiting))) = self.cancels.peek().copied() {
            if cancel > now {
                break;
            }
            self.cancels.pop();
            if let Ok(place) = self.waiting.binary_search(&waiting) {
                self.waiting.remove(place);
            }
        }
    }

    fn take_capacity_steps(&mut self, now: i64) {
        while let Some(step) = self.settings.capacity.get(self.steps) {
            if step.from > now {
                break;
            }
            self.free += i64::from(step.nodes) - i64::from(self.nodes);
            self.nodes = step.nodes;
            self.steps += 1;
        }
    }

    fn enter(&mut self, number: u32, job: &QueueJob) {
        let waiting = WaitingJob {
            priority: Reverse(self.settings.priority(job.since, job.nodes)),
            job: number,
        };
        let place = self.waiting.partition_point(|other| *other < waiting);
        self.waiting.insert(place, waiting);
        if job.cancel != NEVER {
            self.cancels.push(Reverse((job.cancel, waiting)));
        }
    }

    /// Whether nothing but its turn keeps a job from starting.
    fn may_start(&self, job: &QueueJob) -> bool {
        let running = self.running_by_user[job.user as usize];
        let is_within_limit = self
            .settings
            .max_jobs_per_user
            .is_none_or(|most| running < most);
        is_within_limit && job.nodes <= self.nodes
    }

    /// Starts jobs in the order of the queue, up to the first for which there are too few nodes.
    fn start_in_order(&mut self, now: i64) {
        let mut place = 0;
        while let Some(waiting) = self.waiting.get(place).copied() {
            let job = self.jobs[waiting.job as usize];
            if !self.may_start(&job) {
                place += 1;
            } else if i64::from(job.nodes) <= self.free {
                self.waiting.remove(place);
                self.start(waiting.job, now, false);
            } else {
                return;
            }
        }
    }

    /// Plans all jobs ahead, and starts those whose turn is now.
    fn plan_ahead(&mut self, now: i64) {
        // Jobs behind the last one that could start now change nothing for those before them.
        let free = self.free;
        let tested = self.waiting.len().min(self.settings.max_job_test);
        let mut end = self.last_that_fits(tested, free);
        if end == 0 {
            return;
        }

        let (slot, slots) = (self.settings.slot, self.settings.slots);
        let freed = self.running.iter();
        let freed = freed.map(|running| (running.0.limit_end - now, running.0.nodes));
        let mut plan = std::mem::take(&mut self.plan);
        plan.begin(free, slots, slot, freed);

        let mut started = Vec::new();
        let mut place = 0;
        while place < end {
            let number = self.waiting[place].job;
            let job = self.jobs[number as usize];
            if self.may_start(&job) {
                let length = (job.limit + slot - 1).div_euclid(slot).max(1);
                if plan.reserve(job.nodes, length.min(i64::from(slots)) as u32) == Some(0) {
                    let is_behind_another = place > 0;
                    started.push(place);
                    self.start(number, now, is_behind_another);
                    end = self.last_that_fits(end, plan.free_now());
                }
            }
            place += 1;
        }
        self.plan = plan;
        for place in started.into_iter().rev() {
            self.waiting.remove(place);
        }
    }

    /// The end of the shortest beginning of the first `tested` waiting jobs that has all those that
    /// could start if `free` nodes are free.
    fn last_that_fits(&self, tested: usize, free: i64) -> usize {
        let fits = |waiting: &WaitingJob| {
            let job = &self.jobs[waiting.job as usize];
            i64::from(job.nodes) <= free && self.may_start(job)
        };
        let last = self.waiting[..tested].iter().rposition(fits);
        last.map_or(0, |last| last + 1)
    }

    fn start(&mut self, number: u32, now: i64, is_backfilled: bool) {
        self.runs[number as usize] = SimulatedRun {
            start: Some(now),
            is_backfilled,
        };
        let job = self.jobs[number as usize];
        self.hold_nodes(&job, now);
    }

    fn hold_nodes(&mut self, job: &QueueJob, start: i64) {
        self.free -= i64::from(job.nodes);
        self.running_by_user[job.user as usize] += 1;
        self.running.push(Reverse(RunningJob {
            end: start.saturating_add(job.run),
            limit_end: start.saturating_add(job.limit),
            nodes: job.nodes,
            user: job.user,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::CapacityStep;
    use super::*;

    fn settings(nodes: &[(i64, u32)]) -> SchedulerSettings {
        let step = |(from, nodes): &(i64, u32)| CapacityStep {
            from: *from,
            nodes: *nodes,
        };
        SchedulerSettings {
            begin: 0,
            capacity: nodes.iter().map(step).collect(),
            max_jobs_per_user: None,
            backfill_interval: 10,
            slot: 10,
            slots: 288,
            max_job_test: 3000,
            age_weight: 7000,
            max_age: 7 * 1440,
            size_weight: 100,
        }
    }

    fn job(enter: i64, nodes: u32, run: i64, limit: i64) -> QueueJob {
        QueueJob {
            enter,
            since: enter,
            cancel: NEVER,
            run,
            limit,
            nodes,
            user: 0,
        }
    }

    fn starts(settings: &SchedulerSettings, jobs: &[QueueJob]) -> Vec<Option<i64>> {
        let mut cluster = SimulatedCluster::new(settings, jobs, 3);
        cluster.run_until(NEVER - 1);
        cluster.runs().iter().map(|run| run.start).collect()
    }

    /// Of 88 nodes one job has 87; the next needs 4, and a short one fits beside the first.
    #[test]
    fn a_short_job_passes_a_large_one_at_the_next_plan() {
        let settings = settings(&[(0, 88)]);
        let jobs = [
            job(0, 87, 60, 60),
            job(1, 4, 30, 30),
            job(2, 1, 20, 20),
            job(3, 1, 20, 90),
        ];
        let mut cluster = SimulatedCluster::new(&settings, &jobs, 1);
        cluster.run_until(NEVER - 1);
        let found: Vec<Option<i64>> = cluster.runs().iter().map(|run| run.start).collect();
        assert_eq!(found, [Some(0), Some(60), Some(10), Some(30)]);
        let backfilled: Vec<bool> = cluster.runs().iter().map(|run| run.is_backfilled).collect();
        assert_eq!(backfilled, [false, false, true, true]);
    }

    #[test]
    fn a_clone_goes_on_by_itself() {
        let settings = settings(&[(0, 4)]);
        let jobs = [job(0, 4, 7, 30), job(1, 2, 5, 30), job(2, 3, 5, 30)];
        let mut cluster = SimulatedCluster::new(&settings, &jobs, 1);
        cluster.run_until(3);
        let mut branch = cluster.clone();
        branch.run_until(NEVER - 1);
        assert_eq!(cluster.runs()[1].start, None);
        cluster.run_until(NEVER - 1);
        assert_eq!(cluster.runs(), branch.runs());
        assert_eq!(cluster.runs()[1].start, Some(12));
    }

    #[test]
    fn a_job_that_no_node_is_there_for_holds_up_nobody() {
        let settings = settings(&[(0, 2), (50, 4), (70, 1)]);
        let jobs = [job(0, 5, 1, 1), job(0, 3, 30, 30), job(1, 1, 10, 10)];
        assert_eq!(starts(&settings, &jobs), [None, Some(50), Some(1)]);
    }

    #[test]
    fn users_have_a_limit_and_jobs_are_cancelled() {
        let limited = SchedulerSettings {
            max_jobs_per_user: Some(1),
            ..settings(&[(0, 8)])
        };
        let mut jobs = vec![
            job(0, 1, 25, 30),
            job(1, 1, 5, 30),
            job(2, 1, 5, 30),
            job(3, 8, 5, 30),
        ];
        jobs[2].user = 1;
        jobs[3].user = 2;
        assert_eq!(
            starts(&limited, &jobs),
            [Some(0), Some(30), Some(2), Some(25)]
        );
        jobs[1].cancel = 20;
        assert_eq!(starts(&limited, &jobs), [Some(0), None, Some(2), Some(25)]);
    }
}
