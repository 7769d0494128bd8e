//! What Slurm lists at a moment → the queue of one partition, as forecasts take it.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;

use super::host_list::expand_hosts;
use super::listed_job::{IdleReason, ListedJob};
use super::node_listing::NodeListing;
use super::past_runs::{PastRun, PastRuns};
use super::queue_listing::QueueListing;
use super::slurm_state::QueueState;
use poolcast_base::error::hinted;
use crate::forecast::{EndedRun, QueueMoment, SeenRun, SeenWait};
use crate::trace::hash_user;
use poolcast_base::salt::OwnerSalt;

/// How long jobs may run of which nothing says it, if no other job says more.
const LEAST_LONGEST_S: i64 = 86_400;

/// What is known of a cluster at a moment.
#[derive(Debug)]
pub struct ClusterView<'a> {
    /// The moment, epoch seconds.
    pub now_s: i64,
    /// The jobs.
    pub listing: &'a QueueListing,
    /// The nodes, where Slurm has told them.
    pub nodes: Option<&'a NodeListing>,
    /// How many nodes there are, where that is said.
    pub node_count: Option<u32>,
    /// The jobs that had ended before.
    pub past: &'a PastRuns,
    /// What users are hashed with, as in the trace of those jobs.
    pub salt: &'a OwnerSalt,
    /// How many of the last runs run times are drawn from.
    pub history_runs: usize,
}

/// How many jobs a partition has, and how many of them count for what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct QueueCounts {
    /// Jobs that run on its nodes.
    pub running: usize,
    /// Jobs that wait for their turn.
    pub waiting: usize,
    /// Jobs that depend on others.
    pub dependent: usize,
    /// Jobs that are held.
    pub held: usize,
    /// Jobs that are not to begin yet.
    pub later: usize,
}

/// The queue of a partition.
#[derive(Debug)]
pub(super) struct LiveQueue {
    pub(super) moment: QueueMoment,
    /// The same, with jobs that have waited since when Slurm says.
    pub(super) listed: QueueMoment,
    pub(super) counts: QueueCounts,
    /// The last runs that have ended, the oldest first.
    pub(super) ended_runs: Vec<EndedRun>,
    /// Whose the job is that is asked about.
    pub(super) user: u32,
    /// Slurm's priority of each job that waits, where it has one.
    priorities: Vec<Option<i64>>,
    /// Whether jobs wait in the order that Slurm has them in, whatever their size.
    pub(super) is_ranked: bool,
}

/// Users by number, in the order in which they are met.
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
    /// The queue of the first partition of `job`, which runs until `job_end_s` if it runs.
    ///
    /// # Errors
    /// Fails where it is not known how many nodes there are.
    pub(super) fn new(
        view: &ClusterView<'_>,
        job: &ListedJob,
        job_end_s: Option<i64>,
    ) -> Result<LiveQueue> {
        let partition = job.partitions.first().map_or("", String::as_str);
        let hosts = hosts_of(view, partition)?;
        let nodes = view.node_count.or(hosts.map(|hosts| hosts.len() as u32));
        let nodes = nodes.with_context(|| {
            hinted(
                format!("nothing says how many nodes the partition `{partition}` has"),
                "give what `sinfo --all --json` prints as `--node-list FILE`, or their number as `--nodes N`",
            )
        })?;

        let mut users = UserNumbers::default();
        let empty = QueueMoment {
            now_s: view.now_s,
            nodes,
            running: Vec::new(),
            waiting: Vec::new(),
        };
        let mut queue = LiveQueue {
            moment: empty.clone(),
            listed: empty,
            counts: QueueCounts::default(),
            ended_runs: Vec::new(),
            priorities: Vec::new(),
            is_ranked: false,
            user: users.number(view.user_hash(job)),
        };
        let longest_s = view.longest_s();
        for other in &view.listing.jobs {
            let limit_s = other.limit_s.unwrap_or(longest_s).max(1);
            let user = users.number(view.user_hash(other));
            match other.state {
                QueueState::Running | QueueState::Completing => {
                    let nodes = held_nodes(
                        other,
                        partition,
                        hosts.filter(|_| view.node_count.is_none()),
                    );
                    let end_s = job_end_s.filter(|_| other.id == job.id);
                    queue.add_running(other, nodes, limit_s, user, end_s);
                }
                QueueState::Pending if other.partitions.iter().any(|name| name == partition) => {
                    queue.add_pending(other, limit_s, user);
                }
                QueueState::Pending | QueueState::Ended => {}
            }
        }
        queue.ended_runs = view.ended_runs(longest_s, &mut users);
        queue.listed = queue.moment.clone();
        queue.rank();
        Ok(queue)
    }

    /// Lets jobs wait in the order of their priorities, if Slurm has told all of them: each counts as
    /// having waited for a second more than the one behind it. Whatever is submitted now comes last.
    fn rank(&mut self) {
        let waiting = &mut self.moment.waiting;
        let known: Vec<i64> = self.priorities.iter().copied().flatten().collect();
        if known.len() < waiting.len() {
            return;
        }
        let mut order: Vec<usize> = (0..waiting.len()).collect();
        order.sort_by_key(|place| (std::cmp::Reverse(known[*place]), waiting[*place].since_s));
        let mut ranked = Vec::with_capacity(waiting.len());
        for (rank, place) in order.into_iter().enumerate() {
            let ahead_s = (waiting.len() - rank) as i64;
            ranked.push(SeenWait {
                since_s: self.moment.now_s - ahead_s,
                ..waiting[place]
            });
        }
        *waiting = ranked;
        self.is_ranked = true;
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

    fn add_pending(&mut self, job: &ListedJob, limit_s: i64, user: u32) {
        let jobs = job.jobs as usize;
        match job.idle_reason(self.moment.now_s) {
            Some(IdleReason::Depends) => self.counts.dependent += jobs,
            Some(IdleReason::Held) => self.counts.held += jobs,
            Some(IdleReason::Later) => self.counts.later += jobs,
            None => {
                self.counts.waiting += jobs;
                let wait = SeenWait {
                    since_s: job.eligible_s.unwrap_or(job.submit_s),
                    limit_s,
                    nodes: job.nodes,
                    user,
                };
                self.moment.waiting.extend(std::iter::repeat_n(wait, jobs));
                self.priorities
                    .extend(std::iter::repeat_n(job.priority, jobs));
            }
        }
    }
}

/// The nodes of `partition`, if Slurm has told any.
fn hosts_of<'a>(view: &ClusterView<'a>, partition: &str) -> Result<Option<&'a BTreeSet<String>>> {
    let Some(nodes) = view.nodes else {
        return Ok(None);
    };
    let hosts = nodes.of_partition(partition);
    ensure!(
        hosts.is_some() || view.node_count.is_some(),
        hinted(
            format!("`sinfo` lists no partition `{partition}`, in which the job is"),
            "ask both programs at the same time; or say `--nodes N`"
        )
    );
    Ok(hosts)
}

/// How many nodes of `partition` the running `job` has; by their names where these are known.
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

impl ClusterView<'_> {
    fn user_hash(&self, job: &ListedJob) -> u64 {
        hash_user(self.salt.text(), &job.user)
    }

    /// How long jobs without a limit may run.
    fn longest_s(&self) -> i64 {
        let mut longest_s = self.past.longest_s.max(LEAST_LONGEST_S);
        for job in &self.listing.jobs {
            longest_s = longest_s.max(job.limit_s.unwrap_or(0));
        }
        longest_s
    }

    /// The last runs that had ended: those of the trace, and those that Slurm lists and that ended
    /// later.
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
