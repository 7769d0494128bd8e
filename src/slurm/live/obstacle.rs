//! Finds what makes forecasts of a partition's queue impossible.

use std::collections::BTreeSet;

use super::host_list::expand_hosts;
use super::listed_job::ListedJob;
use super::no_advice_reason::NoAdviceReason;
use super::node_listing::NodeListing;
use super::queue_listing::QueueListing;
use super::shared_cluster::SharedCluster;
use super::slurm_settings::SlurmSettings;
use super::slurm_state::QueueState;
use poolcast_base::output::counted;

/// A cluster as Slurm's programs describe it at one time.
#[derive(Debug, Clone, Copy)]
pub struct ClusterListing<'a> {
    /// The jobs.
    pub queue: &'a QueueListing,
    /// The nodes, if listed.
    pub nodes: Option<&'a NodeListing>,
    /// The settings, if known.
    pub settings: Option<&'a SlurmSettings>,
}

impl<'a> ClusterListing<'a> {
    /// Finds what makes forecasts for `partition` at `now_s` impossible, if anything.
    pub fn find_obstacle(&self, partition: &str, now_s: i64) -> Option<NoAdviceReason> {
        let caller = rustix::process::getuid().as_raw();
        if self
            .settings
            .is_some_and(|settings| settings.hides_jobs(caller))
        {
            return Some(NoAdviceReason::HiddenJobs);
        }
        let unheard = self.nodes.map(|nodes| nodes.count_unheard(partition));
        if let Some(unheard) = unheard.filter(|unheard| *unheard > 0) {
            return Some(NoAdviceReason::UnheardNodes(counted(unheard, "node")));
        }
        let cluster = match self.shared_cluster(partition).transpose() {
            Ok(cluster) => cluster,
            Err(reason) => return Some(reason),
        };
        let competes = |job: &ListedJob| match &cluster {
            None => job.partitions.iter().any(|name| name == partition),
            Some(cluster) => cluster.is_here(job),
        };
        let jobs: Vec<&ListedJob> = self.queue.jobs.iter().filter(|job| competes(job)).collect();
        if let Some(what) = unknown_reason(&jobs, now_s) {
            return Some(NoAdviceReason::UnknownReason(what));
        }
        let cluster = cluster?;
        let mut waiting = jobs.iter().filter(|job| cluster.competes(job, now_s));
        waiting.find_map(|job| cluster.shape(job).err())
    }

    /// Returns the nodes of `partition` and of all partitions that overlap with it, if jobs share
    /// them. The error is the reason why they cannot be simulated.
    pub(super) fn shared_cluster(
        &self,
        partition: &str,
    ) -> Option<Result<SharedCluster<'a>, NoAdviceReason>> {
        let why = self.sharing(partition)?;
        Some(SharedCluster::new(
            partition,
            &why,
            self.queue,
            self.nodes,
            self.settings,
        ))
    }

    /// Returns the evidence that jobs of `partition` share nodes, if there is any.
    fn sharing(&self, partition: &str) -> Option<String> {
        if let Some(settings) = self.settings {
            if let Some(setting) = settings.sharing(partition) {
                return Some(setting);
            }
        } else if let Some(host) = self.nodes.and_then(|nodes| nodes.mixed_host(partition)) {
            return Some(format!("node {host} is partly allocated"));
        }
        let host = self.doubly_used_host(partition)?;
        Some(format!("two jobs run on node {host}"))
    }

    /// Returns a node of `partition` on which two jobs run, if there is one.
    fn doubly_used_host(&self, partition: &str) -> Option<String> {
        let hosts = self
            .nodes
            .and_then(|nodes| nodes.hosts_in_partition(partition));
        let mut used = BTreeSet::new();
        for job in &self.queue.jobs {
            let is_in_partition = job.partitions.iter().any(|name| name == partition);
            if job.state != QueueState::Running || (hosts.is_none() && !is_in_partition) {
                continue;
            }
            for host in expand_hosts(&job.node_list).unwrap_or_default() {
                let counts = hosts.is_none_or(|hosts| hosts.contains(&host));
                if counts && !used.insert(host.clone()) {
                    return Some(host);
                }
            }
        }
        None
    }
}

/// Returns the reason or the state of one of `jobs` that this program does not know.
fn unknown_reason(jobs: &[&ListedJob], now_s: i64) -> Option<String> {
    for job in jobs {
        match job.state {
            QueueState::Unknown => return Some(format!("the state of job {}", job.name())),
            QueueState::Pending if job.pending_role(now_s).is_none() => {
                return Some(format!("the reason `{}` of job {}", job.reason, job.name()));
            }
            _ => {}
        }
    }
    None
}
