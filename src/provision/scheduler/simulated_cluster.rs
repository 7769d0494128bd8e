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

/// A job that was given to a cluster besides those of its list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedJob(usize);

/// Added jobs are numbered from here on, jobs of the list below.
const FIRST_ADDED: u32 = 1 << 31;

/// A running job: what matters of it, in the order in which nodes become free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RunningJob {
    /// When its nodes take another job.
    free_from: i64,
    limit_end: i64,
    nodes: u32,
    user: u32,
    job: u32,
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
    /// Jobs that were added, and those of them that have not entered the queue.
    added: Vec<QueueJob>,
    added_to_enter: Vec<u32>,
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
    /// What became of the jobs of the list that have entered, from number `first_run` on.
    runs: Vec<SimulatedRun>,
    first_run: usize,
    added_runs: Vec<SimulatedRun>,
    /// Jobs of the list that have started, and those that have ended, in that order.
    started: Vec<u32>,
    ended: Vec<u32>,
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
            added: Vec::new(),
            added_to_enter: Vec::new(),
            steps: 0,
            free: 0,
            nodes: 0,
            waiting: Vec::new(),
            cancels: BinaryHeap::new(),
            running: BinaryHeap::new(),
            running_by_user: vec![0; users],
            runs: Vec::new(),
            first_run: 0,
            added_runs: Vec::new(),
            started: Vec::new(),
            ended: Vec::new(),
            next_backfill: settings.begin,
            plan: SlotPlan::default(),
        };
        cluster.take_capacity_steps(settings.begin);
        cluster
    }

    /// The same from `begin` on, with those of `jobs` that enter the queue then or later.
    pub fn empty_at(
        begin: i64,
        settings: &'a SchedulerSettings,
        jobs: &'a [QueueJob],
        users: usize,
    ) -> SimulatedCluster<'a> {
        let first = jobs.partition_point(|job| job.enter < begin);
        let mut cluster = SimulatedCluster {
            entered: first,
            first_run: first,
            next_backfill: begin,
            ..SimulatedCluster::new(settings, jobs, users)
        };
        cluster.take_capacity_steps(begin);
        cluster
    }

    /// This cluster as it goes on by itself, without what it knows of jobs that have left; jobs of
    /// the list that enter at `close` or later do not come to it.
    pub fn branch(&self, close: i64) -> SimulatedCluster<'a> {
        let listed = self.waiting.iter().map(|waiting| waiting.job as usize);
        let first_run = listed.fold(self.entered, usize::min);
        let left = first_run - self.first_run;
        let open = self.jobs.partition_point(|job| job.enter < close);
        SimulatedCluster {
            jobs: &self.jobs[..open.max(self.entered)],
            added: self.added.clone(),
            added_to_enter: self.added_to_enter.clone(),
            waiting: self.waiting.clone(),
            cancels: self.cancels.clone(),
            running: self.running.clone(),
            running_by_user: self.running_by_user.clone(),
            runs: self.runs[left..].to_vec(),
            first_run,
            added_runs: self.added_runs.clone(),
            started: Vec::new(),
            ended: Vec::new(),
            plan: SlotPlan::default(),
            ..*self
        }
    }

    /// Lets `job` run from `start` on, before the simulation begins.
    pub fn add_running(&mut self, job: &QueueJob, start: i64) {
        let number = self.add(job);
        self.hold_nodes(number, job, start);
    }

    /// Submits `job`, which enters the queue later than all that was simulated.
    pub fn submit(&mut self, job: &QueueJob) -> AddedJob {
        let number = self.add(job);
        self.added_to_enter.push(number);
        AddedJob((number - FIRST_ADDED) as usize)
    }

    fn add(&mut self, job: &QueueJob) -> u32 {
        self.added.push(*job);
        self.added_runs.push(SimulatedRun::default());
        FIRST_ADDED + (self.added.len() - 1) as u32
    }

    /// How many nodes there are now.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// How many nodes are free; fewer than none where more jobs run than there are nodes for.
    pub fn free_nodes(&self) -> i64 {
        self.free
    }

    /// What became of each job of the list that has entered the queue so far, in order.
    pub fn runs(&self) -> &[SimulatedRun] {
        &self.runs
    }

    /// What became of the job `number` of the list, which has started or waits.
    pub fn run(&self, number: u32) -> SimulatedRun {
        self.runs[number as usize - self.first_run]
    }

    /// When the job `number` of the list started, as far as this cluster knows of it.
    #[cfg(test)]
    pub(in crate) fn started_at(&self, number: u32) -> Option<i64> {
        let place = (number as usize).checked_sub(self.first_run)?;
        self.runs.get(place)?.start
    }

    /// What became of an added job so far.
    pub fn added_run(&self, added: AddedJob) -> SimulatedRun {
        self.added_runs[added.0]
    }

    /// The jobs of the list that have started, by number, in that order; of a branch, since then.
    pub fn started(&self) -> &[u32] {
        &self.started
    }

    /// The jobs of the list that have ended, by number, in that order; of a branch, since then.
    pub fn ended(&self) -> &[u32] {
        &self.ended
    }

    /// The jobs that run, and when they started; in no order.
    pub fn running(&self) -> impl Iterator<Item = (&QueueJob, i64)> {
        self.running.iter().map(|Reverse(running)| {
            let job = self.job(running.job);
            (job, running.limit_end - job.limit)
        })
    }

    /// The jobs that wait, in the order of the queue.
    pub fn waiting(&self) -> impl Iterator<Item = &QueueJob> {
        self.waiting.iter().map(|waiting| self.job(waiting.job))
    }

    fn job(&self, number: u32) -> &QueueJob {
        match number.checked_sub(FIRST_ADDED) {
            None => &self.jobs[number as usize],
            Some(added) => &self.added[added as usize],
        }
    }

    /// Simulates all that happens until `until`, that moment included.
    pub fn run_until(&mut self, until: i64) {
        while self.step(until) {}
    }

    /// Simulates until `added` has started, `until` at the latest. Returns when that was.
    pub fn run_until_start(&mut self, added: AddedJob, until: i64) -> Option<i64> {
        while self.added_run(added).start.is_none() && self.step(until) {}
        self.added_run(added).start
    }

    /// Simulates the next moment at which something happens, unless it is after `until`. Returns
    /// whether there may be another.
    fn step(&mut self, until: i64) -> bool {
        let event = self.next_event();
        let backfill = if self.waiting.is_empty() {
            NEVER
        } else {
            self.next_backfill
        };
        let now = event.min(backfill);
        if now > until || now == NEVER {
            return false;
        }

        self.take_events(now);
        // Plans are made at their moments whether or not there was somebody to plan for before.
        let interval = self.settings.backfill_interval;
        let missed = (now - self.next_backfill).div_euclid(interval).max(0);
        self.next_backfill += missed * interval;
        if now == self.next_backfill {
            self.next_backfill += interval;
            self.plan_ahead(now);
            // Otherwise jobs are left that can never start, and nothing will change.
            return !self.running.is_empty() || self.next_event() != NEVER;
        }
        if now > self.next_backfill {
            self.next_backfill += interval;
        }
        self.start_in_order(now);
        true
    }

    /// The next moment at which a job enters, ends or is cancelled, or nodes come or go.
    fn next_event(&self) -> i64 {
        let enter = self.jobs.get(self.entered).map_or(NEVER, |job| job.enter);
        let step = self.settings.capacity.get(self.steps);
        let step = step.map_or(NEVER, |step| step.from);
        let end = self.running.peek();
        let end = end.map_or(NEVER, |running| running.0.free_from);
        let cancel = self.cancels.peek().map_or(NEVER, |cancel| cancel.0.0);
        let mut event = enter.min(step).min(end).min(cancel);
        for number in &self.added_to_enter {
            event = event.min(self.job(*number).enter);
        }
        event
    }

    /// What happens at `now` before the scheduler acts.
    fn take_events(&mut self, now: i64) {
        while let Some(Reverse(running)) = self.running.peek().copied() {
            if running.free_from > now {
                break;
            }
            self.running.pop();
            self.free += i64::from(running.nodes);
            self.running_by_user[running.user as usize] -= 1;
            if running.job < FIRST_ADDED {
                self.ended.push(running.job);
            }
        }
        self.take_capacity_steps(now);
        while let Some(job) = self.jobs.get(self.entered) {
            if job.enter > now {
                break;
            }
            self.runs.push(SimulatedRun::default());
            self.enter(self.entered as u32, job);
            self.entered += 1;
        }
        if !self.added_to_enter.is_empty() {
            self.take_added(now);
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

    fn take_added(&mut self, now: i64) {
        for number in std::mem::take(&mut self.added_to_enter) {
            let job = *self.job(number);
            if job.enter <= now {
                self.enter(number, &job);
            } else {
                self.added_to_enter.push(number);
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
            let job = *self.job(waiting.job);
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
            let job = *self.job(number);
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
            let job = self.job(waiting.job);
            i64::from(job.nodes) <= free && self.may_start(job)
        };
        let last = self.waiting[..tested].iter().rposition(fits);
        last.map_or(0, |last| last + 1)
    }

    fn start(&mut self, number: u32, now: i64, is_backfilled: bool) {
        let run = SimulatedRun {
            start: Some(now),
            is_backfilled,
        };
        match number.checked_sub(FIRST_ADDED) {
            None => {
                self.runs[number as usize - self.first_run] = run;
                self.started.push(number);
            }
            Some(added) => self.added_runs[added as usize] = run,
        }
        let job = *self.job(number);
        self.hold_nodes(number, &job, now);
    }

    fn hold_nodes(&mut self, number: u32, job: &QueueJob, start: i64) {
        self.free -= i64::from(job.nodes);
        self.running_by_user[job.user as usize] += 1;
        self.running.push(Reverse(RunningJob {
            free_from: start.saturating_add(job.run + self.settings.turnaround),
            limit_end: start.saturating_add(job.limit),
            nodes: job.nodes,
            user: job.user,
            job: number,
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
            turnaround: 0,
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

    /// A branch goes on as the whole does, but for a job that is added to it.
    #[test]
    fn a_branch_takes_another_job() {
        let settings = settings(&[(0, 4)]);
        let jobs = [
            job(0, 4, 7, 30),
            job(1, 3, 5, 30),
            job(2, 2, 5, 30),
            job(40, 1, 5, 30),
        ];
        let mut cluster = SimulatedCluster::new(&settings, &jobs, 1);
        cluster.run_until(8);
        assert_eq!(
            (cluster.started(), cluster.ended()),
            (&[0, 1][..], &[0][..])
        );
        let mut branch = cluster.branch(40);
        let probe = branch.submit(&job(9, 2, 20, 40));
        assert_eq!(branch.run_until_start(probe, 9), None);
        let mut later = branch.clone();
        assert_eq!(later.run_until_start(probe, NEVER - 1), Some(12));
        branch.run_until(NEVER - 1);
        let started: Vec<Option<i64>> = branch.runs().iter().map(|run| run.start).collect();
        assert_eq!(started, [Some(12)], "what enters at 40 does not come");
        assert_eq!(
            (branch.run(2).start, branch.started()),
            (Some(12), &[2][..])
        );
        assert_eq!(branch.added_run(probe).start, Some(12));

        cluster.run_until(NEVER - 1);
        assert_eq!(cluster.runs().len(), 4);
        assert_eq!(cluster.runs()[3].start, Some(40));
    }

    #[test]
    fn a_job_that_no_node_is_there_for_holds_up_nobody() {
        let settings = settings(&[(0, 2), (50, 4), (70, 1)]);
        let jobs = [job(0, 5, 1, 1), job(0, 3, 30, 30), job(1, 1, 10, 10)];
        assert_eq!(starts(&settings, &jobs), [None, Some(50), Some(1)]);
    }

    #[test]
    fn nodes_take_another_job_after_the_turnaround() {
        let slow = SchedulerSettings {
            turnaround: 3,
            ..settings(&[(0, 2)])
        };
        let jobs = [job(0, 2, 5, 30), job(1, 2, 5, 30), job(2, 2, 5, 30)];
        assert_eq!(starts(&slow, &jobs), [Some(0), Some(8), Some(16)]);
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
