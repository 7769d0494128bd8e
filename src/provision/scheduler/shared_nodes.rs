//! Nodes that jobs share: each job holds cores, memory and GPUs of one node or of several.
//!
//! Like Slurm's backfill, a plan reserves whole nodes for a job that cannot start yet: no job
//! behind it may use them during that time, although they may have room for both.

use std::cell::Cell;
use std::collections::HashMap;

use super::node_pool::NodePool;
use super::queue_job::QueueJob;
use super::settings::SchedulerSettings;
use super::simulated_cluster::FIRST_ADDED_NUMBER;

/// Maximum number of kinds of resources.
pub const MAX_KINDS: usize = 12;

/// Amounts of each kind of resource: CPUs, memory in MiB, and then generic resources such as GPUs.
pub type Amounts = [i64; MAX_KINDS];

/// Maximum number of jobs for which a plan reserves nodes. Jobs behind them start where they fit and
/// nothing is reserved.
const MAX_RESERVATIONS: usize = 100;

/// The kinds that every cluster has.
const CPUS: usize = 0;
const MEMORY: usize = 1;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SharedNode {
    /// The resources of the node.
    pub amounts: Amounts,
    /// Number of CPUs in a core. Jobs hold whole cores.
    pub threads: i64,
}

/// The request of a job. Its tasks may be on any of `hosts`, at least one on each of its nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JobShape {
    /// Indices of the nodes on which the job may run, in ascending order.
    pub hosts: Vec<u32>,
    /// Minimum number of nodes.
    pub min_nodes: u32,
    /// Maximum number of nodes.
    pub max_nodes: u32,
    /// Number of tasks.
    pub tasks: i64,
    /// Maximum number of tasks on a node.
    pub max_tasks_per_node: i64,
    /// The needs of each task.
    pub per_task: Amounts,
    /// The needs of the job on each of its nodes, beside its tasks.
    pub per_node: Amounts,
    /// Memory for each CPU, in MiB.
    pub memory_per_cpu: i64,
    /// Minimum number of CPUs on each node.
    pub min_cpus_per_node: i64,
    /// Maximum number of CPUs that the job uses in a core; `None` for all.
    pub threads_per_core: Option<i64>,
    /// True if the job needs the whole memory of each of its nodes.
    pub needs_all_memory: bool,
    /// True if the job accepts no other job on its nodes.
    pub is_exclusive: bool,
}

/// The share of a job in a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeShare {
    /// Index of the node.
    pub node: u32,
    /// The resources that the job holds there.
    pub amounts: Amounts,
}

/// Nodes that jobs share, and the requests of the jobs in a queue.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedQueue {
    /// The nodes.
    pub nodes: Vec<SharedNode>,
    /// The different requests.
    pub shapes: Vec<JobShape>,
    /// The shares of each running job.
    pub running: Vec<Vec<NodeShare>>,
    /// Index of the request of each waiting job.
    pub waiting: Vec<usize>,
    /// Index of the request of the job whose start is forecast.
    pub successor: usize,
}

impl SharedQueue {
    /// Returns true if the successor could run on the empty nodes.
    pub fn could_hold_successor(&self) -> bool {
        SharedNodes::new(self).could_hold[self.successor]
    }
}

/// The share of a running job in one of its nodes.
#[derive(Debug, Clone, Copy)]
struct Holding {
    limit_end: i64,
    job: u32,
    amounts: Amounts,
}

/// The answer to the question of whether a shape fits now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Unknown,
    Never,
    /// It fits. A job on one node fits on this one.
    On(u32),
}

/// The state of nodes that jobs share. The jobs that run at the beginning are the first ones that are
/// added to the cluster, and the next one is the successor.
#[derive(Debug, Clone)]
pub struct SharedNodes<'a> {
    queue: &'a SharedQueue,
    /// The kind of each node: the first node that has the same.
    kinds: Vec<usize>,
    free: Vec<Amounts>,
    /// The shares of running jobs, by node, in the order of the jobs' time limits.
    holdings: Vec<Vec<Holding>>,
    /// The nodes of each running job.
    hosts_of_job: HashMap<u32, Vec<u32>>,
    /// True for each shape that could run on the empty cluster.
    could_hold: Vec<bool>,
    /// The answer for each shape.
    fits: Vec<Cell<Fit>>,
    /// Times at which nodes are reserved by the plan, by node.
    reserved: Vec<Vec<(i64, i64)>>,
    /// Number of jobs for which the plan has reserved nodes.
    reservations: usize,
    /// The nodes that the plan has chosen for the job that starts next.
    chosen: Option<Vec<NodeShare>>,
    /// True if jobs have started, ended or entered the queue since the last plan.
    has_changed: bool,
}

impl<'a> SharedNodes<'a> {
    /// Creates nodes on which nothing runs.
    pub fn new(queue: &'a SharedQueue) -> SharedNodes<'a> {
        let free: Vec<Amounts> = queue.nodes.iter().map(|node| node.amounts).collect();
        let mut first_of_kind = HashMap::new();
        let mut kinds = Vec::with_capacity(free.len());
        for (place, node) in queue.nodes.iter().enumerate() {
            kinds.push(*first_of_kind.entry(node).or_insert(place));
        }
        let mut nodes = SharedNodes {
            queue,
            kinds,
            holdings: vec![Vec::new(); free.len()],
            hosts_of_job: HashMap::new(),
            could_hold: Vec::new(),
            fits: vec![Cell::new(Fit::Unknown); queue.shapes.len()],
            reserved: vec![Vec::new(); free.len()],
            reservations: 0,
            free,
            chosen: None,
            has_changed: true,
        };
        for shape in &queue.shapes {
            let could_hold = nodes.place(shape).is_some();
            nodes.could_hold.push(could_hold);
        }
        nodes
    }

    fn shape_index(&self, number: u32) -> usize {
        match number.checked_sub(FIRST_ADDED_NUMBER) {
            None => self.queue.waiting[number as usize],
            Some(_) => self.queue.successor,
        }
    }

    /// Chooses nodes for a job that starts now.
    fn place(&self, shape: &JobShape) -> Option<Vec<NodeShare>> {
        let mut candidates = Vec::new();
        for host in &shape.hosts {
            let tasks = self.tasks_on(*host, &self.free[*host as usize], shape);
            // The first node with room for all tasks is enough.
            if shape.min_nodes == 1 && tasks >= shape.tasks {
                return Some(vec![self.share(*host, shape.tasks, shape)]);
            }
            if tasks > 0 {
                candidates.push((*host, tasks));
            }
        }
        self.choose(candidates, shape)
    }

    /// Returns the number of tasks for which `free` is enough on `host`.
    fn tasks_on(&self, host: u32, free: &Amounts, shape: &JobShape) -> i64 {
        let node = &self.queue.nodes[host as usize];
        if shape.is_exclusive && *free != node.amounts {
            return 0;
        }
        let mut tasks = shape.max_tasks_per_node.min(shape.tasks);
        for (kind, free) in free.iter().enumerate() {
            let left = free - shape.per_node[kind];
            if left < 0 {
                return 0;
            }
            if shape.per_task[kind] > 0 {
                tasks = tasks.min(left / shape.per_task[kind]);
            }
        }
        // Whole cores, and the memory of their CPUs, may need more than the division says.
        let fits = |tasks: i64| is_enough(free, &needed_on(node, tasks, shape));
        let (mut enough, mut too_many) = (0, tasks + 1);
        while too_many - enough > 1 {
            // The first question is the likely answer.
            let tried = match too_many > tasks {
                true => tasks,
                false => i64::midpoint(enough, too_many),
            };
            match fits(tried) {
                true => enough = tried,
                false => too_many = tried,
            }
        }
        enough
    }

    /// Returns what a job with `tasks` tasks on `host` holds there.
    fn share(&self, host: u32, tasks: i64, shape: &JobShape) -> NodeShare {
        let node = &self.queue.nodes[host as usize];
        NodeShare {
            node: host,
            amounts: match shape.is_exclusive {
                true => node.amounts,
                false => needed_on(node, tasks, shape),
            },
        }
    }

    /// Chooses nodes among `candidates`, which have room for so many tasks each. Prefers few nodes.
    fn choose(&self, mut candidates: Vec<(u32, i64)>, shape: &JobShape) -> Option<Vec<NodeShare>> {
        let min_nodes = shape.min_nodes.max(1) as usize;
        // An even distribution, on the first nodes with enough room.
        let even = (shape.tasks + min_nodes as i64 - 1) / min_nodes as i64;
        let roomy = candidates.iter().filter(|(_, tasks)| *tasks >= even);
        let roomy: Vec<(u32, i64)> = roomy.take(min_nodes).copied().collect();
        if roomy.len() == min_nodes {
            return Some(self.distribute(&roomy, shape));
        }
        candidates.sort_by_key(|(_, tasks)| std::cmp::Reverse(*tasks));
        candidates.truncate(shape.max_nodes as usize);
        let mut room = 0;
        for used in 0..candidates.len() {
            room += candidates[used].1;
            if room >= shape.tasks && used + 1 >= min_nodes {
                return Some(self.distribute(&candidates[..=used], shape));
            }
        }
        None
    }

    /// Distributes all tasks over `nodes`, which have enough room: at least one task on each.
    fn distribute(&self, nodes: &[(u32, i64)], shape: &JobShape) -> Vec<NodeShare> {
        let mut left = shape.tasks;
        let mut shares = Vec::with_capacity(nodes.len());
        for (place, (host, room)) in nodes.iter().enumerate() {
            let behind = (nodes.len() - place - 1) as i64;
            let tasks = (left - behind).min(*room).max(1);
            left -= tasks;
            shares.push(self.share(*host, tasks, shape));
        }
        shares
    }

    /// Finds the earliest start from `now` on, and before `horizon`, of a job with this shape and time
    /// limit, behind the jobs of the plan. Running jobs end at their limits.
    fn find_earliest(
        &self,
        shape: &JobShape,
        limit: i64,
        now: i64,
        horizon: i64,
    ) -> Option<(i64, Vec<NodeShare>)> {
        if shape.is_on_one_node() {
            return self.find_earliest_node(shape, limit, now, horizon);
        }
        let mut times = vec![now];
        for host in &shape.hosts {
            let held = self.holdings[*host as usize].iter();
            times.extend(held.map(|held| held.limit_end.max(now + 1)));
            times.extend(self.reserved[*host as usize].iter().map(|(_, end)| *end));
        }
        times.retain(|time| *time < horizon);
        times.sort_unstable();
        times.dedup();

        // Without reservations, a job that fits at one time also fits at all later times.
        let is_early = |time: &i64| {
            let candidates = self.candidates_at(*time, now, shape, |_| false);
            self.choose(candidates, shape).is_none()
        };
        let first = times.partition_point(is_early);
        for time in times.split_off(first) {
            let end = time.saturating_add(limit);
            let is_reserved = |host| self.is_reserved(host, time, end);
            let candidates = self.candidates_at(time, now, shape, is_reserved);
            if let Some(shares) = self.choose(candidates, shape) {
                return Some((time, shares));
            }
        }
        None
    }

    /// Returns the nodes that have room for tasks at `time`, and for how many, without those that
    /// are `excluded`.
    fn candidates_at(
        &self,
        time: i64,
        now: i64,
        shape: &JobShape,
        excluded: impl Fn(u32) -> bool,
    ) -> Vec<(u32, i64)> {
        let mut candidates = Vec::new();
        for host in &shape.hosts {
            if excluded(*host) {
                continue;
            }
            let tasks = self.tasks_on(*host, &self.free_at(*host, time, now), shape);
            if tasks > 0 {
                candidates.push((*host, tasks));
            }
        }
        candidates
    }

    /// Like [`SharedNodes::find_earliest`], for a job on one node.
    fn find_earliest_node(
        &self,
        shape: &JobShape,
        limit: i64,
        now: i64,
        horizon: i64,
    ) -> Option<(i64, Vec<NodeShare>)> {
        let mut best: Option<(i64, u32)> = None;
        // Most nodes are like the one before.
        let mut needed: Option<(usize, Amounts)> = None;
        for host in &shape.hosts {
            let before = best.map_or(horizon, |(time, _)| time);
            let kind = self.kinds[*host as usize];
            let needed = match needed {
                Some((of_kind, needed)) if of_kind == kind => needed,
                _ => {
                    let share = self.share(*host, shape.tasks, shape);
                    needed.insert((kind, share.amounts)).1
                }
            };
            if let Some(time) = self.find_earliest_on(*host, &needed, limit, now, before) {
                best = Some((time, *host));
                if time == now {
                    break;
                }
            }
        }
        let (time, host) = best?;
        Some((time, vec![self.share(host, shape.tasks, shape)]))
    }

    /// Returns the earliest time before `before` from which what is `needed` is free on `host`.
    fn find_earliest_on(
        &self,
        host: u32,
        needed: &Amounts,
        limit: i64,
        now: i64,
        before: i64,
    ) -> Option<i64> {
        let mut free = self.free[host as usize];
        let mut time = now;
        let mut held = self.holdings[host as usize].iter();
        while !is_enough(&free, needed) {
            let held = held.next()?;
            add(&mut free, &held.amounts);
            time = held.limit_end.max(now + 1);
            if time >= before {
                return None;
            }
        }
        let reserved = &self.reserved[host as usize];
        for (begin, end) in reserved {
            if *begin < time.saturating_add(limit) && time < *end {
                time = *end;
            }
        }
        (time < before).then_some(time)
    }

    fn is_reserved(&self, host: u32, begin: i64, end: i64) -> bool {
        let mut reserved = self.reserved[host as usize].iter();
        reserved.any(|(from, until)| *from < end && begin < *until)
    }

    /// Returns what will be free on `host` at `time`, if all jobs run to their limits.
    fn free_at(&self, host: u32, time: i64, now: i64) -> Amounts {
        let mut free = self.free[host as usize];
        for held in &self.holdings[host as usize] {
            // A job beyond its limit may end at any time, but its share is not free now.
            if held.limit_end.max(now + 1) <= time {
                add(&mut free, &held.amounts);
            }
        }
        free
    }

    /// Returns true if all tasks of a job fit on `host` now.
    fn fits_on(&self, host: u32, shape: &JobShape) -> bool {
        let needed = self.share(host, shape.tasks, shape).amounts;
        is_enough(&self.free[host as usize], &needed)
    }

    /// Updates which shapes fit, after jobs on `hosts` have started.
    fn note_less(&self, hosts: &[u32]) {
        for (fit, shape) in self.fits.iter().zip(&self.queue.shapes) {
            if let Fit::On(host) = fit.get() {
                let is_same =
                    shape.is_on_one_node() && (!hosts.contains(&host) || self.fits_on(host, shape));
                if !is_same {
                    fit.set(Fit::Unknown);
                }
            }
        }
    }

    /// Updates which shapes fit, after jobs on `hosts` have ended.
    fn note_more(&self, hosts: &[u32]) {
        for (fit, shape) in self.fits.iter().zip(&self.queue.shapes) {
            if fit.get() != Fit::Never {
                continue;
            }
            if !shape.is_on_one_node() {
                fit.set(Fit::Unknown);
                continue;
            }
            let fits = |host: &&u32| {
                shape.hosts.binary_search(host).is_ok() && self.fits_on(**host, shape)
            };
            if let Some(host) = hosts.iter().find(fits) {
                fit.set(Fit::On(*host));
            }
        }
    }
}

impl JobShape {
    /// Returns true if the job cannot be on several nodes.
    fn is_on_one_node(&self) -> bool {
        self.tasks == 1 || self.max_nodes == 1
    }
}

/// Returns true if `free` is at least what is `needed`.
fn is_enough(free: &Amounts, needed: &Amounts) -> bool {
    free.iter().zip(needed).all(|(free, needed)| free >= needed)
}

/// Returns what a job with `tasks` tasks on `node` needs there. It needs whole cores.
fn needed_on(node: &SharedNode, tasks: i64, shape: &JobShape) -> Amounts {
    let mut needed = shape.per_node;
    for (needed, per_task) in needed.iter_mut().zip(&shape.per_task) {
        *needed += per_task * tasks;
    }
    let used = needed[CPUS].max(shape.min_cpus_per_node);
    let threads = node.threads.max(1);
    let in_core = shape.threads_per_core.unwrap_or(threads).clamp(1, threads);
    needed[CPUS] = (used + in_core - 1) / in_core * threads;
    needed[MEMORY] += shape.memory_per_cpu
        * match shape.threads_per_core {
            None => needed[CPUS],
            Some(_) => used,
        };
    if shape.needs_all_memory {
        needed[MEMORY] = node.amounts[MEMORY];
    }
    needed
}

fn add(sum: &mut Amounts, amounts: &Amounts) {
    for (sum, amount) in sum.iter_mut().zip(amounts) {
        *sum += amount;
    }
}

impl NodePool for SharedNodes<'_> {
    /// The nodes never change.
    fn set_nodes(&mut self, _: u32) {}

    fn could_hold(&self, number: u32, _: &QueueJob) -> bool {
        self.could_hold[self.shape_index(number)]
    }

    fn fits(&self, number: u32, _: &QueueJob) -> bool {
        let index = self.shape_index(number);
        if self.fits[index].get() == Fit::Unknown {
            let shares = self.place(&self.queue.shapes[index]);
            let first = shares.and_then(|shares| Some(shares.first()?.node));
            self.fits[index].set(first.map_or(Fit::Never, Fit::On));
        }
        self.fits[index].get() != Fit::Never
    }

    fn hold(&mut self, number: u32, job: &QueueJob, start: i64) {
        let first = number.checked_sub(FIRST_ADDED_NUMBER);
        let known = first.and_then(|place| self.queue.running.get(place as usize));
        let shares = match (known, self.chosen.take()) {
            (Some(shares), _) => shares.clone(),
            (None, Some(shares)) => shares,
            (None, None) => {
                let shape = &self.queue.shapes[self.shape_index(number)];
                self.place(shape).unwrap_or_default()
            }
        };
        let limit_end = start.saturating_add(job.limit);
        for share in &shares {
            let host = share.node as usize;
            for (free, amount) in self.free[host].iter_mut().zip(&share.amounts) {
                *free -= amount;
            }
            let holdings = &mut self.holdings[host];
            let place = holdings.partition_point(|held| held.limit_end <= limit_end);
            let holding = Holding {
                limit_end,
                job: number,
                amounts: share.amounts,
            };
            holdings.insert(place, holding);
        }
        let hosts: Vec<u32> = shares.iter().map(|share| share.node).collect();
        self.note_less(&hosts);
        self.hosts_of_job.insert(number, hosts);
        self.has_changed = true;
    }

    fn give_back(&mut self, number: u32, _: u32) {
        let hosts = self.hosts_of_job.remove(&number).unwrap_or_default();
        for host in &hosts {
            let host = *host as usize;
            let (free, holdings) = (&mut self.free[host], &mut self.holdings[host]);
            holdings.retain(|held| {
                if held.job == number {
                    add(free, &held.amounts);
                }
                held.job != number
            });
        }
        self.note_more(&hosts);
        self.has_changed = true;
    }

    fn note_queue_change(&mut self) {
        self.has_changed = true;
    }

    fn begin_plan(
        &mut self,
        _: i64,
        _: &SchedulerSettings,
        _: impl Iterator<Item = (i64, u32)>,
    ) -> bool {
        for reserved in &mut self.reserved {
            reserved.clear();
        }
        self.reservations = 0;
        std::mem::take(&mut self.has_changed)
    }

    /// Ignores reservations: jobs that fit may still have to wait.
    fn fits_plan(&self, number: u32, job: &QueueJob) -> bool {
        self.fits(number, job)
    }

    fn reserve(
        &mut self,
        number: u32,
        job: &QueueJob,
        now: i64,
        settings: &SchedulerSettings,
    ) -> bool {
        let mut horizon = now.saturating_add(settings.slot * i64::from(settings.slots));
        if self.reservations == MAX_RESERVATIONS {
            if !self.fits(number, job) {
                return false;
            }
            horizon = now + 1;
        }
        let shape = &self.queue.shapes[self.shape_index(number)];
        let Some((start, shares)) = self.find_earliest(shape, job.limit, now, horizon) else {
            return false;
        };
        if start == now {
            self.chosen = Some(shares);
            return true;
        }
        self.reservations += 1;
        for share in shares {
            let end = start.saturating_add(job.limit);
            let reserved = &mut self.reserved[share.node as usize];
            let place = reserved.partition_point(|(begin, _)| *begin <= start);
            reserved.insert(place, (start, end));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::queue_job::NEVER;
    use super::super::settings::CapacityStep;
    use super::super::simulated_cluster::SimulatedCluster;
    use super::*;

    const HOUR: i64 = 3600;

    fn amounts(cpus: i64, memory: i64, gpus: i64) -> Amounts {
        let mut amounts = [0; MAX_KINDS];
        amounts[..3].copy_from_slice(&[cpus, memory, gpus]);
        amounts
    }

    /// Nodes with 8 CPUs, 16 GiB and two GPUs each.
    fn nodes(count: usize) -> Vec<SharedNode> {
        let node = SharedNode {
            amounts: amounts(8, 16_384, 2),
            threads: 1,
        };
        vec![node; count]
    }

    /// A job of `tasks` tasks with one CPU each, on any of the first `hosts` nodes.
    fn shape(hosts: u32, tasks: i64) -> JobShape {
        JobShape {
            hosts: (0..hosts).collect(),
            min_nodes: 1,
            max_nodes: u32::MAX,
            tasks,
            max_tasks_per_node: tasks,
            per_task: amounts(1, 0, 0),
            per_node: amounts(0, 0, 0),
            memory_per_cpu: 0,
            min_cpus_per_node: 0,
            threads_per_core: None,
            needs_all_memory: false,
            is_exclusive: false,
        }
    }

    fn one_node(tasks: i64) -> JobShape {
        JobShape {
            max_nodes: 1,
            ..shape(4, tasks)
        }
    }

    fn settings() -> SchedulerSettings {
        SchedulerSettings {
            backfill_interval: 30,
            ..SchedulerSettings::small_cluster(4)
        }
    }

    fn job(enter: i64, limit: i64) -> QueueJob {
        QueueJob {
            enter,
            since: enter,
            cancel: NEVER,
            run: limit,
            limit,
            nodes: 1,
            user: 0,
        }
    }

    /// Simulates jobs that enter one second after each other, with these shapes and limits.
    fn starts(nodes: Vec<SharedNode>, jobs: &[(JobShape, i64)]) -> Vec<Option<i64>> {
        let queue = SharedQueue {
            nodes,
            shapes: jobs.iter().map(|(shape, _)| shape.clone()).collect(),
            waiting: (0..jobs.len()).collect(),
            ..SharedQueue::default()
        };
        let listed = jobs.iter().enumerate();
        let listed: Vec<QueueJob> = listed
            .map(|(at, (_, limit))| job(at as i64, *limit))
            .collect();
        let settings = settings();
        let pool = SharedNodes::new(&queue);
        let mut cluster = SimulatedCluster::on_nodes(pool, &settings, &listed, 1);
        cluster.run_until(NEVER - 1);
        cluster.runs().iter().map(|run| run.start).collect()
    }

    #[test]
    fn jobs_start_where_their_cores_memory_and_gpus_are_free() {
        let gpus = |count| JobShape {
            per_node: amounts(0, 1024, count),
            ..shape(1, 1)
        };
        let memory = JobShape {
            needs_all_memory: true,
            ..shape(1, 1)
        };
        let cores = |tasks| shape(1, tasks);
        let jobs = [
            (gpus(1), HOUR),
            (gpus(1), 2 * HOUR),
            (cores(6), 3 * HOUR),
            (gpus(1), HOUR),
            (memory, HOUR),
        ];
        // The third GPU waits for the first one, all memory for all jobs with memory.
        let found = starts(nodes(1), &jobs);
        let expected = [0, 1, 2, HOUR, 2 * HOUR + 1].map(Some);
        assert_eq!(found, expected);
        // A job that fits on no node blocks nobody.
        assert_eq!(
            starts(nodes(1), &[(gpus(3), 60), (cores(8), 60)]),
            [None, Some(1)]
        );
    }

    #[test]
    fn tasks_are_spread_unless_the_number_of_nodes_is_given() {
        let most = |min_nodes, max_nodes, tasks| JobShape {
            min_nodes,
            max_nodes,
            ..shape(4, tasks)
        };
        let busy = (one_node(5), HOUR);
        let jobs = |last| {
            vec![
                busy.clone(),
                busy.clone(),
                busy.clone(),
                busy.clone(),
                (last, HOUR),
            ]
        };
        // Three cores are free on each node.
        for (last, start) in [
            (shape(4, 12), 4),
            (most(1, 1, 4), HOUR),
            (most(1, 2, 6), 4),
            (most(1, 2, 7), HOUR),
            (most(4, 4, 4), 4),
            (
                JobShape {
                    max_tasks_per_node: 1,
                    ..shape(4, 4)
                },
                4,
            ),
            (
                JobShape {
                    max_tasks_per_node: 1,
                    ..shape(4, 5)
                },
                -1,
            ),
            (
                JobShape {
                    is_exclusive: true,
                    ..shape(4, 1)
                },
                HOUR,
            ),
        ] {
            let found = starts(nodes(4), &jobs(last.clone()))[4];
            assert_eq!(found, Some(start).filter(|start| *start >= 0), "{last:?}");
        }
    }

    #[test]
    fn cores_are_given_whole() {
        let node = SharedNode {
            amounts: amounts(8, 1000, 0),
            threads: 2,
        };
        let needed = |tasks, shape: &JobShape| needed_on(&node, tasks, shape)[..2].to_vec();
        let by_cpu = JobShape {
            memory_per_cpu: 100,
            ..shape(1, 3)
        };
        assert_eq!(needed(3, &by_cpu), [4, 400]);
        let one_thread = JobShape {
            threads_per_core: Some(1),
            ..by_cpu
        };
        assert_eq!(needed(3, &one_thread), [6, 300]);
    }

    /// The third job would fit beside the second one, but Slurm does not start it before.
    #[test]
    fn reserved_nodes_are_not_shared() {
        let jobs = [
            (shape(1, 5), HOUR),
            (shape(1, 6), HOUR),
            (shape(1, 1), 2 * HOUR),
            (shape(1, 1), HOUR / 2),
        ];
        let expected = [0, HOUR, HOUR, 30].map(Some);
        assert_eq!(starts(nodes(1), &jobs), expected);
    }

    fn any_jobs() -> impl Strategy<Value = Vec<(JobShape, i64, i64)>> {
        let drawn = (
            1..5u32,
            1..4u32,
            0..4u32,
            1..20i64,
            0..20_000i64,
            0..4i64,
            any::<[bool; 3]>(),
        );
        let drawn = drawn.prop_map(
            |(hosts, least, more, tasks, memory, gpus, flags)| JobShape {
                min_nodes: least,
                max_nodes: least + more,
                per_node: amounts(0, memory, gpus),
                memory_per_cpu: if flags[0] { memory / 8 } else { 0 },
                needs_all_memory: flags[1],
                is_exclusive: flags[2],
                ..shape(hosts, tasks.max(least.into()))
            },
        );
        prop::collection::vec((drawn, 1..500i64, 1..700i64), 1..30)
    }

    proptest! {
        #[test]
        fn no_node_is_overfilled_and_every_possible_job_starts(jobs in any_jobs()) {
            let queue = SharedQueue {
                nodes: nodes(4),
                shapes: jobs.iter().map(|(shape, ..)| shape.clone()).collect(),
                waiting: (0..jobs.len()).collect(),
                ..SharedQueue::default()
            };
            let listed = jobs.iter().enumerate().map(|(at, (_, run, limit))| QueueJob {
                run: *run,
                ..job(at as i64 * 20, *limit)
            });
            let listed: Vec<QueueJob> = listed.collect();
            let settings = settings();
            let mut cluster = SimulatedCluster::on_nodes(SharedNodes::new(&queue), &settings, &listed, 1);
            for until in (0..50_000).step_by(50) {
                cluster.run_until(until);
                for (free, node) in cluster.pool().free.iter().zip(&queue.nodes) {
                    for (free, amount) in free.iter().zip(&node.amounts) {
                        prop_assert!((0..=*amount).contains(free));
                    }
                }
            }
            let could_hold = &cluster.pool().could_hold;
            for (run, could_hold) in cluster.runs().iter().zip(could_hold) {
                prop_assert_eq!(run.start.is_some(), *could_hold);
            }
        }

        /// In the order of the queue, exclusive jobs start as on whole nodes.
        #[test]
        fn exclusive_jobs_have_whole_nodes(jobs in prop::collection::vec((1..6u32, 1..500i64), 1..30)) {
            let exclusive = |nodes: u32| JobShape {
                min_nodes: nodes,
                max_nodes: nodes,
                is_exclusive: true,
                ..shape(4, nodes.into())
            };
            let queue = SharedQueue {
                nodes: nodes(4),
                shapes: jobs.iter().map(|(nodes, _)| exclusive(*nodes)).collect(),
                waiting: (0..jobs.len()).collect(),
                ..SharedQueue::default()
            };
            let listed = jobs.iter().enumerate().map(|(at, (nodes, run))| QueueJob {
                nodes: *nodes,
                ..job(at as i64 * 20, *run)
            });
            let listed: Vec<QueueJob> = listed.collect();
            let settings = SchedulerSettings {
                max_job_test: 0,
                capacity: vec![CapacityStep { from: 0, nodes: 4 }],
                ..settings()
            };
            let mut shared = SimulatedCluster::on_nodes(SharedNodes::new(&queue), &settings, &listed, 1);
            shared.run_until(NEVER - 1);
            let mut whole = SimulatedCluster::new(&settings, &listed, 1);
            whole.run_until(NEVER - 1);
            prop_assert_eq!(shared.runs(), whole.runs());
        }
    }
}
