//! Event-driven simulation of a cluster and its scheduler.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::node_pool::{NodePool, WholeNodes};
use super::queue_job::{NEVER, QueueJob};
use super::settings::SchedulerSettings;

/// The simulated start of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimulatedRun {
    /// Start time, in ticks; `None` if the job has not started.
    pub start: Option<i64>,
    /// True if backfill started the job while another job was before it in the queue.
    pub is_backfilled: bool,
}

/// A handle of a job that was added to a cluster, beyond its list of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddedJob(usize);

/// The number of the first added job. Jobs of the list have lower numbers.
pub(super) const FIRST_ADDED_NUMBER: u32 = 1 << 31;

/// A running job, ordered by the time at which its nodes become free.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RunningJob {
    /// The time from which its nodes accept another job.
    free_from: i64,
    limit_end: i64,
    nodes: u32,
    user: u32,
    job: u32,
}

/// A waiting job, ordered by its position in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WaitingJob {
    priority: Reverse<i128>,
    job: u32,
}

/// The state of a cluster at one time. A clone is an independent simulation.
#[derive(Debug, Clone)]
pub struct SimulatedCluster<'a, P = WholeNodes> {
    settings: &'a SchedulerSettings,
    /// The list of jobs, in the order in which they enter the queue.
    jobs: &'a [QueueJob],
    /// Number of listed jobs that have entered the queue.
    entered: usize,
    /// Added jobs, and the numbers of those that have not entered the queue yet.
    added: Vec<QueueJob>,
    added_to_enter: Vec<u32>,
    /// Number of capacity steps that have taken effect.
    steps: usize,
    pool: P,
    waiting: Vec<WaitingJob>,
    /// Waiting jobs with a cancellation time.
    cancels: BinaryHeap<Reverse<(i64, WaitingJob)>>,
    running: BinaryHeap<Reverse<RunningJob>>,
    running_by_user: Vec<u32>,
    /// Results of listed jobs that have entered the queue, from number `first_run` on.
    runs: Vec<SimulatedRun>,
    first_run: usize,
    added_runs: Vec<SimulatedRun>,
    /// Listed jobs that have started, and listed jobs that have ended, each in order of time.
    started: Vec<u32>,
    ended: Vec<u32>,
    next_backfill: i64,
}

impl<'a> SimulatedCluster<'a> {
    /// Creates an empty cluster of whole nodes. `jobs` must be in the order in which they enter the queue, and
    /// belong to `users` users.
    pub fn new(
        settings: &'a SchedulerSettings,
        jobs: &'a [QueueJob],
        users: usize,
    ) -> SimulatedCluster<'a> {
        SimulatedCluster::on_nodes(WholeNodes::default(), settings, jobs, users)
    }

    /// Like [`SimulatedCluster::new`], but starts at `begin`, and ignores jobs that enter the queue
    /// earlier.
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
        cluster.apply_capacity_steps(begin);
        cluster
    }

    /// Returns the current number of nodes.
    pub fn nodes(&self) -> u32 {
        self.pool.nodes
    }

    /// Returns the number of free nodes; negative if running jobs use more nodes than there are.
    pub fn free_nodes(&self) -> i64 {
        self.pool.free
    }
}

impl<'a, P: NodePool> SimulatedCluster<'a, P> {
    /// Like [`SimulatedCluster::new`], with the nodes `pool`, on which nothing runs.
    pub fn on_nodes(
        pool: P,
        settings: &'a SchedulerSettings,
        jobs: &'a [QueueJob],
        users: usize,
    ) -> SimulatedCluster<'a, P> {
        let mut cluster = SimulatedCluster {
            settings,
            jobs,
            entered: 0,
            added: Vec::new(),
            added_to_enter: Vec::new(),
            steps: 0,
            pool,
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
        };
        cluster.apply_capacity_steps(settings.begin);
        cluster
    }

    /// Returns an independent copy without the results of jobs that have left. Listed jobs that
    /// enter the queue at `close` or later do not enter the copy.
    pub fn branch(&self, close: i64) -> SimulatedCluster<'a, P> {
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
            pool: self.pool.clone(),
            ..*self
        }
    }

    /// Adds `job` as running since `start`, before the simulation begins.
    pub fn add_running(&mut self, job: &QueueJob, start: i64) {
        let number = self.add(job);
        self.hold_nodes(number, job, start);
    }

    /// Submits `job`, which must enter the queue later than the simulated time.
    pub fn submit(&mut self, job: &QueueJob) -> AddedJob {
        let number = self.add(job);
        self.added_to_enter.push(number);
        AddedJob((number - FIRST_ADDED_NUMBER) as usize)
    }

    fn add(&mut self, job: &QueueJob) -> u32 {
        self.added.push(*job);
        self.added_runs.push(SimulatedRun::default());
        FIRST_ADDED_NUMBER + (self.added.len() - 1) as u32
    }

    /// Returns the results of the listed jobs that have entered the queue, in order.
    pub fn runs(&self) -> &[SimulatedRun] {
        &self.runs
    }

    /// Returns the result of the listed job `number`, which must wait or have started.
    pub fn run(&self, number: u32) -> SimulatedRun {
        self.runs[number as usize - self.first_run]
    }

    /// Returns the start of the listed job `number`, if this cluster still knows it.
    #[cfg(test)]
    pub(crate) fn started_at(&self, number: u32) -> Option<i64> {
        let place = (number as usize).checked_sub(self.first_run)?;
        self.runs.get(place)?.start
    }

    /// Returns the nodes.
    #[cfg(test)]
    pub(super) fn pool(&self) -> &P {
        &self.pool
    }

    /// Returns the current result of an added job.
    pub fn added_run(&self, added: AddedJob) -> SimulatedRun {
        self.added_runs[added.0]
    }

    /// Returns the numbers of the listed jobs that have started, in order of time. In a branch,
    /// only those since the branch.
    pub fn started(&self) -> &[u32] {
        &self.started
    }

    /// Returns the numbers of the listed jobs that have ended, in order of time. In a branch, only
    /// those since the branch.
    pub fn ended(&self) -> &[u32] {
        &self.ended
    }

    /// Returns the running jobs and their starts, in no particular order.
    pub fn running(&self) -> impl Iterator<Item = (&QueueJob, i64)> {
        self.running.iter().map(|Reverse(running)| {
            let job = self.job(running.job);
            (job, running.limit_end - job.limit)
        })
    }

    /// Returns the waiting jobs, in the order of the queue.
    pub fn waiting(&self) -> impl Iterator<Item = &QueueJob> {
        self.waiting.iter().map(|waiting| self.job(waiting.job))
    }

    fn job(&self, number: u32) -> &QueueJob {
        match number.checked_sub(FIRST_ADDED_NUMBER) {
            None => &self.jobs[number as usize],
            Some(added) => &self.added[added as usize],
        }
    }

    /// Simulates all events until `until`, inclusive.
    pub fn run_until(&mut self, until: i64) {
        while self.step(until) {}
    }

    /// Simulates until `added` has started, or until `until`. Returns its start.
    pub fn run_until_start(&mut self, added: AddedJob, until: i64) -> Option<i64> {
        while self.added_run(added).start.is_none() && self.step(until) {}
        self.added_run(added).start
    }

    /// Simulates the next event, unless it is after `until`. Returns true if there may be another
    /// one.
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

        self.apply_events(now);
        // Plans happen at fixed times, even if no job waited at the previous ones.
        let interval = self.settings.backfill_interval;
        let missed = (now - self.next_backfill).div_euclid(interval).max(0);
        self.next_backfill += missed * interval;
        if now == self.next_backfill {
            self.next_backfill += interval;
            self.plan_ahead(now);
            // If nothing runs and no event follows, the jobs left can never start.
            return !self.running.is_empty() || self.next_event() != NEVER;
        }
        if now > self.next_backfill {
            self.next_backfill += interval;
        }
        self.start_in_order(now);
        true
    }

    /// Returns the time of the next event: a job enters, ends or is cancelled, or the capacity
    /// changes.
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

    /// Applies all events at `now`, before the scheduler acts.
    fn apply_events(&mut self, now: i64) {
        while let Some(Reverse(running)) = self.running.peek().copied() {
            if running.free_from > now {
                break;
            }
            self.running.pop();
            self.pool.give_back(running.job, running.nodes);
            self.running_by_user[running.user as usize] -= 1;
            if running.job < FIRST_ADDED_NUMBER {
                self.ended.push(running.job);
            }
        }
        self.apply_capacity_steps(now);
        while let Some(job) = self.jobs.get(self.entered) {
            if job.enter > now {
                break;
            }
            self.runs.push(SimulatedRun::default());
            self.enter(self.entered as u32, job);
            self.entered += 1;
        }
        if !self.added_to_enter.is_empty() {
            self.enter_added_jobs(now);
        }
        while let Some(Reverse((cancel, waiting))) = self.cancels.peek().copied() {
            if cancel > now {
                break;
            }
            self.cancels.pop();
            if let Ok(place) = self.waiting.binary_search(&waiting) {
                self.waiting.remove(place);
                self.pool.note_queue_change();
            }
        }
    }

    fn enter_added_jobs(&mut self, now: i64) {
        for number in std::mem::take(&mut self.added_to_enter) {
            let job = *self.job(number);
            if job.enter <= now {
                self.enter(number, &job);
            } else {
                self.added_to_enter.push(number);
            }
        }
    }

    fn apply_capacity_steps(&mut self, now: i64) {
        while let Some(step) = self.settings.capacity.get(self.steps) {
            if step.from > now {
                break;
            }
            self.pool.set_nodes(step.nodes);
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
        self.pool.note_queue_change();
        if job.cancel != NEVER {
            self.cancels.push(Reverse((job.cancel, waiting)));
        }
    }

    /// Returns true if the job respects its user's limit and is not larger than the cluster.
    fn may_start(&self, number: u32, job: &QueueJob) -> bool {
        let running = self.running_by_user[job.user as usize];
        let is_within_limit = self
            .settings
            .max_jobs_per_user
            .is_none_or(|most| running < most);
        is_within_limit && self.pool.could_hold(number, job)
    }

    /// Starts jobs in queue order, up to the first one without enough free nodes. Skips jobs that
    /// must wait for other reasons.
    fn start_in_order(&mut self, now: i64) {
        let mut place = 0;
        while let Some(waiting) = self.waiting.get(place).copied() {
            let job = *self.job(waiting.job);
            if !self.may_start(waiting.job, &job) {
                place += 1;
            } else if self.pool.fits(waiting.job, &job) {
                self.waiting.remove(place);
                self.start(waiting.job, now, false);
            } else {
                return;
            }
        }
    }

    /// Plans all jobs ahead, and starts jobs whose first slot is the current one.
    fn plan_ahead(&mut self, now: i64) {
        // Jobs behind the last one that could start now do not affect the jobs before it.
        let tested = self.waiting.len().min(self.settings.max_job_test);
        let mut end = self.count_candidates(tested, P::fits);
        if end == 0 {
            return;
        }
        let running = self.running.iter();
        let running = running.map(|running| (running.0.limit_end, running.0.nodes));
        if !self.pool.begin_plan(now, self.settings, running) {
            return;
        }

        let mut started = Vec::new();
        let mut place = 0;
        while place < end {
            let number = self.waiting[place].job;
            let job = *self.job(number);
            if self.may_start(number, &job) && self.pool.reserve(number, &job, now, self.settings) {
                let is_behind_another = place > 0;
                started.push(place);
                self.start(number, now, is_behind_another);
                end = self.count_candidates(end, P::fits_plan);
            }
            place += 1;
        }
        for place in started.into_iter().rev() {
            self.waiting.remove(place);
        }
    }

    /// Returns the length of the shortest prefix of the first `tested` waiting jobs that contains
    /// all jobs that could start now, which `fits` finds.
    fn count_candidates(&self, tested: usize, fits: impl Fn(&P, u32, &QueueJob) -> bool) -> usize {
        let can_start = |waiting: &WaitingJob| {
            let job = self.job(waiting.job);
            fits(&self.pool, waiting.job, job) && self.may_start(waiting.job, job)
        };
        let last = self.waiting[..tested].iter().rposition(can_start);
        last.map_or(0, |last| last + 1)
    }

    fn start(&mut self, number: u32, now: i64, is_backfilled: bool) {
        let run = SimulatedRun {
            start: Some(now),
            is_backfilled,
        };
        match number.checked_sub(FIRST_ADDED_NUMBER) {
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
        self.pool.hold(number, job, start);
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

    /// On 88 nodes, the first job has 87. The next one needs 4, and a short one fits beside the
    /// first.
    #[test]
    fn short_jobs_are_backfilled_at_the_next_plan() {
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
    fn clones_are_independent() {
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

    /// A branch develops like the original, except for the job that is added to it.
    #[test]
    fn branches_accept_added_jobs() {
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
    fn jobs_larger_than_the_cluster_block_nobody() {
        let settings = settings(&[(0, 2), (50, 4), (70, 1)]);
        let jobs = [job(0, 5, 1, 1), job(0, 3, 30, 30), job(1, 1, 10, 10)];
        assert_eq!(starts(&settings, &jobs), [None, Some(50), Some(1)]);
    }

    #[test]
    fn nodes_are_reused_after_the_turnaround() {
        let slow = SchedulerSettings {
            turnaround: 3,
            ..settings(&[(0, 2)])
        };
        let jobs = [job(0, 2, 5, 30), job(1, 2, 5, 30), job(2, 2, 5, 30)];
        assert_eq!(starts(&slow, &jobs), [Some(0), Some(8), Some(16)]);
    }

    #[test]
    fn user_limits_and_cancellations_apply() {
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
