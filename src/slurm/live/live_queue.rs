//! Builds the queue of one partition, in the form that forecasts need, from Slurm's listings.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::host_list::expand_hosts;
use super::listed_job::ListedJob;
use super::no_advice_reason::NoAdviceReason;
use super::node_listing::NodeListing;
use super::obstacle::ClusterListing;
use super::past_runs::{PastRun, PastRuns};
use super::pending_reason::{IdleReason, PendingRole};
use super::queue_listing::QueueListing;
use super::shared_cluster::SharedCluster;
use super::slurm_settings::SlurmSettings;
use super::slurm_state::QueueState;
use poolcast_base::error::{HintedError, hinted};
use poolcast_base::salt::OwnerSalt;
use poolcast_provision::forecast::{EndedRun, QueueTime, SeenRun, SeenWait};
use poolcast_provision::scheduler::{JobShape, NodeShare, SharedQueue};
use poolcast_provision::trace::hash_user;

/// Minimum time limit, in seconds, that is assumed for jobs without a known limit. The longest
/// known limit replaces it if that is longer.
const MIN_LONGEST_LIMIT_S: i64 = 86_400;

/// Time after which Slurm has looked at a waiting job, also where its backfill takes minutes, in seconds.
pub(super) const LOOKED_AT_WITHIN_S: i64 = 600;

/// All facts about a cluster at one time.
#[derive(Debug)]
pub struct ClusterView<'a> {
    /// The time, in epoch seconds.
    pub now_s: i64,
    /// The jobs.
    pub listing: &'a QueueListing,
    /// The nodes, if Slurm has listed them.
    pub nodes: Option<&'a NodeListing>,
    /// The settings of the cluster, if Slurm has listed them.
    pub settings: Option<&'a SlurmSettings>,
    /// Number of nodes, if the user has given it.
    pub node_count: Option<u32>,
    /// The jobs that had ended before.
    pub past: &'a PastRuns,
    /// The salt for user hashes, the same as in the trace of `past`.
    pub salt: &'a OwnerSalt,
    /// Number of latest runs from which run times are drawn.
    pub history_runs: usize,
}

/// Numbers of jobs in a partition, by their role in the queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueCounts {
    /// Jobs that run on the partition's nodes.
    pub running: usize,
    /// Jobs that wait for nodes.
    pub waiting: usize,
    /// Jobs that depend on other jobs.
    pub dependent: usize,
    /// Jobs that are held.
    pub held: usize,
    /// Jobs that must not begin yet.
    pub later: usize,
    /// Jobs that wait for a limit of their own, such as the number of jobs of their user.
    pub limited: usize,
    /// Jobs that cannot start until a person acts.
    pub never: usize,
    /// Jobs for which there has been room for ten minutes, so that something which is not listed keeps them. They
    /// compete in forecasts of `advise` and `chain`, and not of `start`.
    pub kept: usize,
}

/// The queue of a partition.
#[derive(Debug)]
pub(super) struct LiveQueue {
    /// The queue for forecasts. If `is_ranked`, the waits encode the order of Slurm's priorities.
    pub(super) moment: QueueTime,
    /// The same queue, with the waiting times that Slurm lists.
    pub(super) listed: QueueTime,
    pub(super) counts: QueueCounts,
    /// The latest runs that have ended, oldest first.
    pub(super) ended_runs: Vec<EndedRun>,
    /// The number of the user of the queried job.
    pub(super) user: u32,
    /// The index of each waiting job in the listing.
    pub(super) rows: Vec<usize>,
    /// Slurm's priority of each waiting job, if known: its tier and its rank there.
    priorities: Vec<Option<(i64, i64)>>,
    /// The priority of the queried job, at the place that was asked.
    asked_priority: QueuePriority,
    /// What jobs hold and request, if they share nodes.
    shared: Option<SharedJobs>,
    /// True if jobs wait in the order of Slurm's priorities, regardless of their size.
    pub(super) is_ranked: bool,
}

/// What jobs on shared nodes hold and request.
#[derive(Debug, Default)]
struct SharedJobs {
    queue: SharedQueue,
    shape_indices: HashMap<JobShape, usize>,
}

impl SharedJobs {
    /// Returns the index of `shape`.
    fn index_of(&mut self, shape: JobShape) -> usize {
        let shapes = &mut self.queue.shapes;
        *self.shape_indices.entry(shape).or_insert_with_key(|shape| {
            shapes.push(shape.clone());
            shapes.len() - 1
        })
    }
}

/// The place in the queue for which a start is forecast.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AskedPlace {
    /// Behind all others of its tier: another job like the queried one is submitted now.
    Behind,
    /// Behind all others of its tier: another job replaces the queried one, if that is pending, and is submitted now.
    InsteadOfIt,
    /// The place of the queried job, if that is pending.
    Own,
    /// None: all listed jobs compete, and what jobs had that have just ended is not free yet.
    Nowhere,
}

/// Where the jobs of a queue run.
struct QueuePlace<'a> {
    partition: &'a str,
    /// The nodes of the partition, unless their number was given.
    hosts: Option<&'a BTreeSet<String>>,
    /// The nodes that jobs share.
    cluster: Option<SharedCluster<'a>>,
}

impl QueuePlace<'_> {
    /// Returns true if the pending `job` may run here.
    fn is_of(&self, job: &ListedJob) -> bool {
        match &self.cluster {
            None => job.partitions.iter().any(|name| name == self.partition),
            Some(cluster) => cluster.is_here(job),
        }
    }
}

/// The priority of a waiting job, on which the order in the queue depends.
#[derive(Debug, Clone, Copy)]
struct QueuePriority {
    tier: i64,
    rank: i64,
    since_s: i64,
}

impl QueuePriority {
    /// The priority of a job that is submitted at `now_s`.
    fn behind_all(now_s: i64) -> QueuePriority {
        QueuePriority {
            tier: 0,
            rank: i64::MIN,
            since_s: now_s,
        }
    }

    /// A key by which the job that is to start first comes first.
    fn order(self) -> (Reverse<(i64, i64)>, i64) {
        (Reverse((self.tier, self.rank)), self.since_s)
    }
}

/// Numbers users in the order of their first appearance.
#[derive(Debug, Default)]
struct UserNumbers {
    known: HashMap<u64, u32>,
}

impl UserNumbers {
    fn number(&mut self, hash: u64) -> u32 {
        let next = self.known.len() as u32;
        *self.known.entry(hash).or_insert(next)
    }
}

impl LiveQueue {
    /// Builds the queue of the first partition of `job`, in which the queried job has the place `asked`. If `job`
    /// runs, it runs until `job_end_s`. The jobs with the indices `kept` in the listing do not compete.
    ///
    /// # Errors
    /// Fails if the number of nodes is unknown.
    pub(super) fn new(
        view: &ClusterView<'_>,
        job: &ListedJob,
        job_end_s: Option<i64>,
        asked: AskedPlace,
        kept: &BTreeSet<usize>,
    ) -> Result<LiveQueue> {
        let partition = job.partitions.first().map_or("", String::as_str);
        let hosts = find_hosts(view, partition)?;
        let cluster = view.listing().shared_cluster(partition);
        let cluster = cluster.and_then(Result::ok);
        let counted = view.node_count.filter(|_| cluster.is_none());
        let nodes = counted.or(hosts.map(|hosts| hosts.len() as u32));
        let nodes = nodes.with_context(|| unknown_nodes(partition))?;

        let mut users = UserNumbers::default();
        let mut queue = LiveQueue::empty(view.now_s, nodes, users.number(view.user_hash(job)));
        let longest_s = view.longest_s();
        if let Some(cluster) = &cluster {
            queue.share_nodes(view, cluster, job);
        }
        if let Some(priority) = job.priority.filter(|_| asked == AskedPlace::Own) {
            let since_s = job.eligible_s.unwrap_or(job.submit_s);
            (queue.asked_priority.rank, queue.asked_priority.since_s) = (priority, since_s);
        }
        let place = QueuePlace {
            partition,
            hosts: hosts.filter(|_| view.node_count.is_none()),
            cluster,
        };
        let has_own_place = matches!(asked, AskedPlace::Own | AskedPlace::InsteadOfIt);
        let is_asked = |other: &ListedJob| (other.id, other.array_task) == (job.id, job.array_task);
        for (row, other) in view.listing.jobs.iter().enumerate() {
            // A pending job does not wait behind itself.
            if has_own_place && other.state == QueueState::Pending && is_asked(other) {
                continue;
            }
            if kept.contains(&row) {
                queue.counts.kept += turns(other, view.listing);
                continue;
            }
            let mut limit_s = other.limit_s.unwrap_or(longest_s).max(1);
            if other.state == QueueState::Ended {
                if asked != AskedPlace::Nowhere || !has_just_ended(other, view.now_s) {
                    continue;
                }
                limit_s = 1;
            }
            let user = users.number(view.user_hash(other));
            let end_s = job_end_s.filter(|_| other.id == job.id);
            queue.add_job(view, &place, other, limit_s, user, end_s);
            queue.rows.resize(queue.moment.waiting.len(), row);
        }
        queue.ended_runs = view.ended_runs(longest_s, &mut users);
        // The copy keeps the listed waiting times, which `rank` replaces.
        queue.listed = queue.moment.clone();
        queue.rank();
        let shared = queue.shared.take().map(|shared| Arc::new(shared.queue));
        queue.moment.shared = shared;
        Ok(queue)
    }

    /// A queue without jobs on `nodes` nodes, for a job of `user`.
    fn empty(now_s: i64, nodes: u32, user: u32) -> LiveQueue {
        let moment = QueueTime {
            now_s,
            nodes,
            running: Vec::new(),
            waiting: Vec::new(),
            shared: None,
        };
        LiveQueue {
            listed: moment.clone(),
            moment,
            counts: QueueCounts::default(),
            ended_runs: Vec::new(),
            rows: Vec::new(),
            priorities: Vec::new(),
            asked_priority: QueuePriority::behind_all(now_s),
            shared: None,
            is_ranked: false,
            user,
        }
    }

    /// Adds a listed job, if it is at `place`.
    fn add_job(
        &mut self,
        view: &ClusterView<'_>,
        place: &QueuePlace<'_>,
        job: &ListedJob,
        limit_s: i64,
        user: u32,
        end_s: Option<i64>,
    ) {
        match job.state {
            QueueState::Running | QueueState::Completing | QueueState::Ended => {
                let Some(cluster) = &place.cluster else {
                    let nodes = held_nodes(job, place.partition, place.hosts);
                    return self.add_running(job, nodes, limit_s, user, end_s);
                };
                let shares = cluster.shares(job).unwrap_or_default();
                self.add_running(job, shares.len() as u32, limit_s, user, end_s);
                self.hold(shares);
            }
            QueueState::Pending if place.is_of(job) => {
                let turns = turns(job, view.listing);
                let Some(cluster) = &place.cluster else {
                    return self.add_pending(job, turns, limit_s, user);
                };
                let shape = cluster.shape(job).ok();
                let shape = shape.filter(|_| cluster.competes(job, view.now_s));
                let turns = if shape.is_some() { turns } else { 0 };
                self.add_pending(job, turns, limit_s, user);
                self.request(shape, turns, view.tier(job));
            }
            QueueState::Pending | QueueState::Unknown => {}
        }
    }

    /// Notes the nodes of `cluster`, and what the successor of `job` requests.
    fn share_nodes(
        &mut self,
        view: &ClusterView<'_>,
        cluster: &SharedCluster<'_>,
        job: &ListedJob,
    ) {
        let Ok(shape) = cluster.shape(job) else {
            return;
        };
        let mut shared = SharedJobs::default();
        shared.queue.nodes.clone_from(&cluster.nodes);
        shared.queue.successor = shared.index_of(shape);
        self.shared = Some(shared);
        self.asked_priority.tier = view.tier(job);
    }

    /// Notes what the running job that was added last holds.
    fn hold(&mut self, shares: Vec<NodeShare>) {
        if let Some(shared) = self.shared.as_mut().filter(|_| !shares.is_empty()) {
            shared.queue.running.push(shares);
        }
    }

    /// Notes what the `turns` waiting jobs that were added last request.
    fn request(&mut self, shape: Option<JobShape>, turns: usize, tier: i64) {
        let from = self.priorities.len() - turns;
        for priority in self.priorities[from..].iter_mut().flatten() {
            priority.0 = tier;
        }
        if let Some((shared, shape)) = self.shared.as_mut().zip(shape) {
            let index = shared.index_of(shape);
            shared
                .queue
                .waiting
                .extend(std::iter::repeat_n(index, turns));
        }
    }

    /// Orders the waiting jobs by priority, if Slurm has listed all priorities. Each job is given a
    /// waiting time one second longer than the job behind it, with the queried job at its place.
    fn rank(&mut self) {
        let waiting = &mut self.moment.waiting;
        let known: Vec<(i64, i64)> = self.priorities.iter().copied().flatten().collect();
        if known.len() < waiting.len() {
            return;
        }
        let priority_of = |at: usize| QueuePriority {
            tier: known[at].0,
            rank: known[at].1,
            since_s: waiting[at].since_s,
        };
        let mut order: Vec<usize> = (0..waiting.len()).collect();
        order.sort_by_key(|at| priority_of(*at).order());
        let is_before = |at: &&usize| priority_of(**at).order() <= self.asked_priority.order();
        let before = order.iter().filter(is_before).count() as i64;
        let mut ranked = Vec::with_capacity(waiting.len());
        for (rank, place) in (0..).zip(&order) {
            // Jobs behind the queried one are as if submitted after it.
            let ahead_s = if rank < before {
                before - rank
            } else {
                before - rank - 1
            };
            ranked.push(SeenWait {
                since_s: self.moment.now_s - ahead_s,
                ..waiting[*place]
            });
        }
        *waiting = ranked;
        self.rows = order.iter().map(|place| self.rows[*place]).collect();
        if let Some(shared) = &mut self.shared {
            let shapes = &shared.queue.waiting;
            shared.queue.waiting = order.iter().map(|place| shapes[*place]).collect();
        }
        self.is_ranked = true;
    }

    /// The time since which the queried job waits in the queue for forecasts.
    pub(super) fn asked_since_s(&self) -> i64 {
        match self.is_ranked {
            // Waiting times encode the order of priorities.
            true => self.moment.now_s,
            false => self.asked_priority.since_s,
        }
    }

    /// Returns true if the successor of `job` could not run on the empty nodes.
    pub(super) fn is_too_large(&self, job: &ListedJob) -> bool {
        match &self.moment.shared {
            None => job.nodes > self.moment.nodes,
            Some(shared) => !shared.could_hold_successor(),
        }
    }

    fn add_running(
        &mut self,
        job: &ListedJob,
        nodes: u32,
        limit_s: i64,
        user: u32,
        end_s: Option<i64>,
    ) {
        if nodes == 0 {
            return;
        }
        self.counts.running += 1;
        let now_s = self.moment.now_s;
        let start_s = job.start_s.unwrap_or(now_s).min(now_s);
        let ends_now = job.state == QueueState::Completing;
        self.moment.running.push(SeenRun {
            start_s,
            limit_s,
            nodes,
            user,
            end_s: if ends_now { Some(now_s + 1) } else { end_s },
        });
    }

    /// Adds a pending row. At most `turns` of its jobs can start.
    fn add_pending(&mut self, job: &ListedJob, turns: usize, limit_s: i64, user: u32) {
        let jobs = job.jobs as usize;
        let counts = &mut self.counts;
        match job.pending_role(self.moment.now_s) {
            Some(PendingRole::Idle(IdleReason::Depends)) => counts.dependent += jobs,
            Some(PendingRole::Idle(IdleReason::Held)) => counts.held += jobs,
            Some(PendingRole::Idle(IdleReason::Later)) => counts.later += jobs,
            Some(PendingRole::Idle(IdleReason::OwnLimit)) => counts.limited += jobs,
            Some(PendingRole::Idle(IdleReason::Never)) => counts.never += jobs,
            Some(PendingRole::Turn) => {
                counts.waiting += turns;
                counts.limited += jobs - turns;
                let wait = SeenWait {
                    since_s: job.eligible_s.unwrap_or(job.submit_s),
                    limit_s,
                    nodes: job.nodes,
                    user,
                };
                self.moment.waiting.extend(std::iter::repeat_n(wait, turns));
                self.priorities.extend(std::iter::repeat_n(
                    job.priority.map(|rank| (0, rank)),
                    turns,
                ));
            }
            // There is no advice on a queue with such a job.
            None => {}
        }
    }
}

fn unknown_nodes(partition: &str) -> HintedError {
    hinted(
        format!("the number of nodes in the partition `{partition}` is unknown"),
        "give the output of `sinfo --all --json` as `--node-list FILE`, or the number as `--nodes N`",
    )
}

/// Returns true if `job` has ended so lately that Slurm may not have looked at the queue since.
fn has_just_ended(job: &ListedJob, now_s: i64) -> bool {
    job.end_s
        .is_some_and(|end_s| now_s - end_s <= LOOKED_AT_WITHIN_S)
}

/// Returns the number of jobs in a pending row that can start. An array may limit how many of its
/// elements run at once.
fn turns(row: &ListedJob, listing: &QueueListing) -> usize {
    let Some(limit) = row.array_limit else {
        return row.jobs as usize;
    };
    let is_running = |job: &&ListedJob| {
        let is_element = job
            .array_task
            .is_some_and(|(array, _)| array == row.id as i64);
        is_element && matches!(job.state, QueueState::Running | QueueState::Completing)
    };
    let running = listing.jobs.iter().filter(is_running).count() as u32;
    limit.saturating_sub(running).min(row.jobs) as usize
}

/// Returns the nodes of `partition`, if Slurm has listed any nodes.
fn find_hosts<'a>(view: &ClusterView<'a>, partition: &str) -> Result<Option<&'a BTreeSet<String>>> {
    let Some(nodes) = view.nodes else {
        return Ok(None);
    };
    let hosts = nodes.hosts_in_partition(partition);
    ensure!(
        hosts.is_some() || view.node_count.is_some(),
        hinted(
            format!("`sinfo` does not list the job's partition `{partition}`"),
            "query both programs at the same time, or give `--nodes N`"
        )
    );
    Ok(hosts)
}

/// Counts the nodes of `partition` that the running `job` holds, by their names if known.
fn held_nodes(job: &ListedJob, partition: &str, hosts: Option<&BTreeSet<String>>) -> u32 {
    let names = expand_hosts(&job.node_list).filter(|names| !names.is_empty());
    if let (Some(hosts), Some(names)) = (hosts, names) {
        let held = names.iter().filter(|name| hosts.contains(*name));
        return held.count() as u32;
    }
    if job.partitions.iter().any(|name| name == partition) {
        return job.nodes;
    }
    0
}

impl<'a> ClusterView<'a> {
    /// Returns what Slurm's programs have listed.
    pub(super) fn listing(&self) -> ClusterListing<'a> {
        ClusterListing {
            queue: self.listing,
            nodes: self.nodes,
            settings: self.settings,
        }
    }

    /// Finds what makes a forecast for the successor of `job` impossible where jobs share nodes.
    pub(super) fn find_own_obstacle(
        &self,
        job: &ListedJob,
        has_model: bool,
    ) -> Option<NoAdviceReason> {
        let partition = job.partitions.first().map_or("", String::as_str);
        let cluster = self.listing().shared_cluster(partition)?.ok()?;
        if has_model {
            let why = "jobs have parts of nodes, and models know whole nodes alone";
            return Some(NoAdviceReason::SharedNodes(why.to_owned()));
        }
        cluster.shape(job).err()
    }

    /// Returns the tier of `job`.
    fn tier(&self, job: &ListedJob) -> i64 {
        self.settings
            .map_or(0, |settings| settings.tier(&job.partitions))
    }

    fn user_hash(&self, job: &ListedJob) -> u64 {
        hash_user(self.salt.text(), &job.user)
    }

    /// Returns the assumed time limit of jobs without one, in seconds.
    fn longest_s(&self) -> i64 {
        let mut longest_s = self.past.longest_s.max(MIN_LONGEST_LIMIT_S);
        for job in &self.listing.jobs {
            longest_s = longest_s.max(job.limit_s.unwrap_or(0));
        }
        longest_s
    }

    /// Returns the latest runs that had ended: from the trace, and later ones from Slurm's listing.
    fn ended_runs(&self, longest_s: i64, users: &mut UserNumbers) -> Vec<EndedRun> {
        let known = &self.past.runs;
        let known = &known[..known.partition_point(|run| run.end_s <= self.now_s)];
        let mut listed: Vec<PastRun> = Vec::new();
        for job in &self.listing.jobs {
            let is_new = job.end_s.is_some_and(|end_s| end_s > self.past.until_s);
            let has_run = job.state == QueueState::Ended && !job.node_list.is_empty();
            let (Some(start_s), Some(end_s)) = (job.start_s, job.end_s) else {
                continue;
            };
            if is_new && has_run && start_s <= end_s && end_s <= self.now_s {
                listed.push(PastRun {
                    end_s,
                    user: self.user_hash(job),
                    limit_s: job.limit_s.unwrap_or(longest_s).max(1),
                    run_s: end_s - start_s,
                });
            }
        }
        listed.sort_by_key(|run| run.end_s);

        // Fill up to `history_runs` with the latest runs of the trace.
        let before = self.history_runs.saturating_sub(listed.len());
        let known = &known[known.len().saturating_sub(before)..];
        let mut runs = Vec::with_capacity(known.len() + listed.len());
        for run in known.iter().chain(&listed) {
            runs.push(EndedRun {
                user: users.number(run.user),
                limit_s: run.limit_s,
                run_s: run.run_s,
            });
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_provision::scheduler::{
        CapacityStep, NEVER, QueueJob, SchedulerSettings, SharedNodes, SimulatedCluster,
    };

    const QUEUE: &str = include_str!("../../../tests/data/provision/shared-queue.json");
    const NODES: &str = include_str!("../../../tests/data/provision/shared-nodes.txt");

    /// Simulates the waiting jobs of `queue`, which run to their limits. Returns their starts.
    fn simulated_starts_s(queue: &QueueTime) -> Vec<Option<i64>> {
        let shared = queue.shared.as_ref().expect("nodes are shared");
        let settings = SchedulerSettings {
            begin: queue.now_s,
            capacity: vec![CapacityStep {
                from: queue.now_s,
                nodes: 4,
            }],
            max_jobs_per_user: None,
            backfill_interval: 1,
            slot: 60,
            slots: 1440,
            max_job_test: 100,
            turnaround: 0,
            age_weight: 1,
            max_age: 86_400,
            size_weight: 0,
        };
        let entry = |since: i64, limit: i64, nodes: u32, user: u32| QueueJob {
            enter: since,
            since,
            cancel: NEVER,
            run: limit,
            limit,
            nodes,
            user,
        };
        let waiting = queue.waiting.iter();
        let jobs: Vec<QueueJob> = waiting
            .map(|wait| entry(wait.since_s, wait.limit_s, wait.nodes, wait.user))
            .collect();
        let mut cluster = SimulatedCluster::on_nodes(SharedNodes::new(shared), &settings, &jobs, 9);
        for run in &queue.running {
            let job = entry(run.start_s, run.limit_s, run.nodes, run.user);
            cluster.add_running(&job, run.start_s);
        }
        cluster.run_until(NEVER - 1);
        cluster.runs().iter().map(|run| run.start).collect()
    }

    /// Slurm's plan, in steps of a minute, is in the same listing.
    #[test]
    fn starts_on_shared_nodes_are_near_slurms_plan() {
        let listing = QueueListing::parse(QUEUE.as_bytes()).expect("read");
        let nodes = NodeListing::parse(NODES.as_bytes()).expect("read");
        let view = ClusterView {
            now_s: listing.last_event_s(),
            listing: &listing,
            nodes: Some(&nodes),
            settings: None,
            node_count: None,
            past: &PastRuns::default(),
            salt: &OwnerSalt::random().expect("a salt"),
            history_runs: 0,
        };
        let job = listing.find("14").expect("listed");
        let queue = LiveQueue::new(&view, job, job.end_s, AskedPlace::Behind, &BTreeSet::new())
            .expect("a queue");
        assert_eq!((queue.counts.running, queue.counts.waiting), (5, 5));
        let starts_s = simulated_starts_s(&queue.moment);
        let mut pending = listing.jobs.clone();
        pending.retain(|job| job.state == QueueState::Pending);
        let early_s = pending.iter().zip(starts_s);
        let early_s: Vec<i64> = early_s
            .filter_map(|(job, start_s)| Some(job.start_s? - start_s?))
            .collect();
        // Slurm plans the last job behind one that is to use its node, but it fits beside that.
        assert_eq!(early_s, [0, 60, 0, 60, 360]);
    }
}
