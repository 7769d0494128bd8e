//! Builds the nodes that jobs share, and the requests of jobs, in the form that forecasts need.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::feature_rule::meets_rule;
use super::host_list::expand_hosts;
use super::job_resources::JobResources;
use super::listed_job::ListedJob;
use super::no_advice_reason::NoAdviceReason;
use super::node_listing::NodeListing;
use super::node_resources::{GresCount, MAX_AMOUNT, NodeResources};
use super::pending_reason::PendingRole;
use super::queue_listing::QueueListing;
use super::slurm_settings::SlurmSettings;
use super::slurm_state::QueueState;
use poolcast_provision::scheduler::{Amounts, JobShape, MAX_KINDS, NodeShare, SharedNode};

/// Maximum number of CPUs in a core.
const MAX_THREADS: i64 = 64;

/// Generic resources that are parts of GPUs, which are not simulated.
const PARTS_OF_GPUS: [&str; 2] = ["mps", "shard"];

/// The usable nodes of a partition, and of all partitions that overlap with it.
#[derive(Debug)]
pub(super) struct SharedCluster<'a> {
    /// The partitions.
    partitions: BTreeSet<&'a str>,
    /// The nodes, in the order in which they are tried.
    pub(super) nodes: Vec<SharedNode>,
    /// The listing of each node.
    listed: Vec<&'a NodeResources>,
    /// The index of each node.
    places: HashMap<&'a str, u32>,
    /// The names of generic resources, without and with their types, from the third kind on.
    gres: Vec<String>,
    has_memory: bool,
    listing: &'a NodeListing,
    settings: Option<&'a SlurmSettings>,
}

impl<'a> SharedCluster<'a> {
    /// Builds the nodes for forecasts of `partition`. Jobs can share them, as `why` shows.
    ///
    /// # Errors
    /// Fails with the reason why such nodes cannot be simulated.
    pub(super) fn new(
        partition: &str,
        why: &str,
        queue: &QueueListing,
        listing: Option<&'a NodeListing>,
        settings: Option<&'a SlurmSettings>,
    ) -> Result<SharedCluster<'a>, NoAdviceReason> {
        let fault = |what: String| NoAdviceReason::SharedNodes(format!("{why}, and {what}"));
        let listing = listing.ok_or_else(|| fault("the nodes are not listed".to_owned()))?;
        let partitions = overlapping_partitions(partition, listing);
        for name in &partitions {
            if let Some(setting) = settings.and_then(|settings| settings.beyond_simulation(name)) {
                return Err(fault(format!(
                    "{setting} of the partition `{name}` is not simulated"
                )));
            }
        }

        let mut named: BTreeMap<&str, &NodeResources> = BTreeMap::new();
        for host in partitions
            .iter()
            .filter_map(|name| listing.hosts_in_partition(name))
            .flatten()
        {
            let resources = listing.resources(host);
            let resources = resources.ok_or_else(|| {
                fault(format!(
                    "the cores and the memory of node {host} are not listed"
                ))
            })?;
            named.insert(host, resources);
        }
        let mut order: Vec<(&str, &NodeResources)> = named.into_iter().collect();
        order.sort_by_key(|(_, resources)| resources.weight);
        let has_memory = match settings {
            Some(settings) => settings.allocates_memory(),
            None => holds_memory(queue),
        };
        let mut cluster = SharedCluster {
            partitions,
            nodes: Vec::new(),
            listed: order.iter().map(|(_, resources)| *resources).collect(),
            places: (0..)
                .zip(&order)
                .map(|(place, (name, _))| (*name, place))
                .collect(),
            gres: gres_names(&order)
                .ok_or_else(|| fault("there are too many kinds of resources".to_owned()))?,
            has_memory,
            listing,
            settings,
        };
        for resources in cluster.listed.clone() {
            cluster.nodes.push(cluster.node(resources));
        }
        cluster.check_allocations(queue).map_err(fault)?;
        Ok(cluster)
    }

    fn node(&self, resources: &NodeResources) -> SharedNode {
        let has_cores = self.settings.is_none_or(SlurmSettings::allocates_cores);
        let mut amounts = [0; MAX_KINDS];
        amounts[0] = resources.cpus;
        if self.has_memory {
            amounts[1] = resources.memory_mb;
        }
        // All names are known: they come from the nodes.
        self.add_gres(&mut amounts, &resources.gres, 1);
        SharedNode {
            amounts,
            threads: if has_cores {
                resources.threads.clamp(1, MAX_THREADS)
            } else {
                1
            },
        }
    }

    /// Adds `counts`, divided by `parts` and rounded up. Returns false if a name is unknown.
    fn add_gres(&self, amounts: &mut Amounts, counts: &[GresCount], parts: i64) -> bool {
        for gres in counts {
            let typed = gres
                .kind
                .as_ref()
                .map(|kind| format!("{}:{kind}", gres.name));
            for name in [Some(gres.name.clone()), typed].into_iter().flatten() {
                let Some(place) = self.gres.iter().position(|known| *known == name) else {
                    return false;
                };
                amounts[2 + place] += (gres.count + parts - 1) / parts;
            }
        }
        true
    }

    /// Reduces the nodes by what is allocated to no listed job.
    ///
    /// # Errors
    /// Fails if jobs hold more than there is.
    fn check_allocations(&mut self, queue: &QueueListing) -> Result<(), String> {
        let mut used: Vec<Amounts> = vec![[0; MAX_KINDS]; self.nodes.len()];
        for job in queue
            .jobs
            .iter()
            .filter(|job| job.state == QueueState::Running)
        {
            for share in self.shares(job)? {
                for (used, amount) in used[share.node as usize].iter_mut().zip(&share.amounts) {
                    *used += amount;
                }
            }
        }
        let names: HashMap<u32, &str> = self
            .places
            .iter()
            .map(|(name, place)| (*place, *name))
            .collect();
        for (place, used) in used.iter().enumerate() {
            let (node, listed) = (&mut self.nodes[place], self.listed[place]);
            if used
                .iter()
                .zip(&node.amounts)
                .any(|(used, amount)| used > amount)
            {
                let name = names[&(place as u32)];
                return Err(format!("jobs hold more than node {name} has"));
            }
            node.amounts[0] -= (listed.used_cpus - used[0]).clamp(0, node.amounts[0] - used[0]);
            node.amounts[1] -=
                (listed.used_memory_mb - used[1]).clamp(0, node.amounts[1] - used[1]);
        }
        Ok(())
    }

    /// Returns true if `job` may run on these nodes.
    pub(super) fn is_here(&self, job: &ListedJob) -> bool {
        job.partitions
            .iter()
            .any(|name| self.partitions.contains(name.as_str()))
    }

    /// Returns true if `job` waits for its turn on these nodes at `now_s`. The nodes of a reservation
    /// are not among them.
    pub(super) fn competes(&self, job: &ListedJob, now_s: i64) -> bool {
        let resources = job.resources.as_ref();
        let has_reservation = resources.is_some_and(|resources| !resources.reservation.is_empty());
        job.state == QueueState::Pending
            && job.pending_role(now_s) == Some(PendingRole::Turn)
            && self.is_here(job)
            && !has_reservation
    }

    /// Returns what the running `job` holds on these nodes.
    ///
    /// # Errors
    /// Fails with the missing fact.
    pub(super) fn shares(&self, job: &ListedJob) -> Result<Vec<NodeShare>, String> {
        let names = expand_hosts(&job.node_list).unwrap_or_default();
        if !names
            .iter()
            .any(|name| self.places.contains_key(name.as_str()))
        {
            return Ok(Vec::new());
        }
        let missing = || format!("`squeue` does not list what job {} holds", job.name());
        let resources = job.resources.as_ref().ok_or_else(missing)?;
        let allocated = resources.allocated.as_ref().ok_or_else(missing)?;
        let parts = names.len() as i64;
        let mut shares = Vec::new();
        for (number, name) in names.iter().enumerate() {
            let Some(place) = self.places.get(name.as_str()) else {
                continue;
            };
            let part = |amount: i64| (amount + parts - 1) / parts;
            let mut amounts = [0; MAX_KINDS];
            amounts[0] = part(allocated.cpus);
            amounts[1] = part(allocated.memory_mb);
            let held = resources.held_nodes.iter().find(|held| held.name == *name);
            if let Some(held) = held.filter(|held| parts > 1 && held.cpus > 0) {
                let threads = self
                    .nodes
                    .get(*place as usize)
                    .map_or(1, |node| node.threads);
                amounts[0] = held.cpus * if held.counts_cores { threads } else { 1 };
                amounts[1] = held.memory_mb;
            }
            if !self.has_memory {
                amounts[1] = 0;
            }
            let is_known = match resources.held_gres.get(number) {
                Some(gres) => self.add_gres(&mut amounts, gres, 1),
                None => self.add_gres(&mut amounts, &allocated.gres, parts),
            };
            if !is_known {
                return Err(format!(
                    "the generic resources of job {} are on no node",
                    job.name()
                ));
            }
            shares.push(NodeShare {
                node: *place,
                amounts,
            });
        }
        Ok(shares)
    }

    /// Returns what `job` requests.
    ///
    /// # Errors
    /// Fails if a part of the request cannot be simulated.
    pub(super) fn shape(&self, job: &ListedJob) -> Result<JobShape, NoAdviceReason> {
        let fault =
            |what: &str| NoAdviceReason::UnknownRequest(format!("{what} of job {}", job.name()));
        let resources = job
            .resources
            .as_ref()
            .ok_or_else(|| fault("the requested resources"))?;
        if let Some(unknown) = resources.unknown {
            return Err(fault(unknown));
        }
        if !resources.reservation.is_empty() {
            return Err(fault("the reservation"));
        }
        let held = (job.state == QueueState::Running).then_some(job.nodes);
        let (min_nodes, max_nodes) = resources.node_range(held);
        let tasks = resources.tasks.max(min_nodes);
        let mut shape = JobShape {
            hosts: self.hosts(job, resources)?,
            min_nodes: min_nodes as u32,
            max_nodes: max_nodes.map_or(u32::MAX, |most| most.min(u32::MAX.into()) as u32),
            tasks,
            max_tasks_per_node: resources.tasks_per_node.unwrap_or(tasks),
            per_task: [0; MAX_KINDS],
            per_node: [0; MAX_KINDS],
            memory_per_cpu: 0,
            min_cpus_per_node: resources.min_cpus_per_node,
            threads_per_core: resources.threads_per_core,
            needs_all_memory: false,
            is_exclusive: resources.is_exclusive || self.has_whole_nodes(job),
        };
        shape.per_task[0] = resources.cpus_per_task();
        self.request_memory(&mut shape, resources);
        let is_known = self.add_gres(&mut shape.per_node, &resources.gres_per_node, 1)
            && self.add_gres(&mut shape.per_node, resources.gres_of_job(), min_nodes)
            && self.add_gres(&mut shape.per_task, &resources.gres_per_task, 1);
        let mut gres = resources
            .requested
            .gres
            .iter()
            .chain(&resources.gres_per_node);
        if gres.any(|gres| PARTS_OF_GPUS.contains(&gres.name.as_str())) {
            return Err(fault("the parts of GPUs"));
        }
        let mut amounts = shape.per_task.iter().chain(&shape.per_node);
        if amounts.any(|amount| *amount > MAX_AMOUNT) {
            return Err(fault("the number of resources"));
        }
        if !is_known {
            // No node has them, so the job cannot start.
            shape.hosts.clear();
        }
        Ok(shape)
    }

    fn request_memory(&self, shape: &mut JobShape, resources: &JobResources) {
        if !self.has_memory {
            return;
        }
        match (resources.memory_per_cpu_mb, resources.memory_per_node_mb) {
            (Some(memory_mb), _) => shape.memory_per_cpu = memory_mb.min(MAX_AMOUNT >> 20),
            (None, Some(memory_mb)) if memory_mb > 0 => shape.per_node[1] = memory_mb,
            (None, _) if resources.has_memory_per_gres => {
                let requested = &resources.requested;
                shape.per_node[1] = requested.memory_mb / requested.nodes.max(1);
            }
            // `--mem=0`, or no request where there is no default.
            (None, _) => shape.needs_all_memory = true,
        }
    }

    /// Returns the nodes on which `job` may run.
    fn hosts(&self, job: &ListedJob, resources: &JobResources) -> Result<Vec<u32>, NoAdviceReason> {
        let fault =
            |what: String| NoAdviceReason::UnknownRequest(format!("{what} of job {}", job.name()));
        let mut hosts = BTreeSet::new();
        let partitions = job.partitions.iter();
        for name in partitions
            .filter_map(|name| self.listing.hosts_in_partition(name))
            .flatten()
        {
            hosts.extend(self.places.get(name.as_str()));
        }
        let named = |list: &str| -> Option<BTreeSet<u32>> {
            let names = expand_hosts(list)?;
            Some(
                names
                    .iter()
                    .filter_map(|name| self.places.get(name.as_str()))
                    .copied()
                    .collect(),
            )
        };
        let excluded = named(&resources.excluded_nodes)
            .ok_or_else(|| fault("the excluded nodes".to_owned()))?;
        hosts.retain(|host| !excluded.contains(host));
        if !resources.required_nodes.is_empty() {
            let required = named(&resources.required_nodes).unwrap_or_default();
            // Beside them, the job would have any other nodes.
            if (required.len() as i64) < resources.requested.nodes {
                return Err(fault("the required nodes".to_owned()));
            }
            hosts.retain(|host| required.contains(host));
        }
        let mut allowed = Vec::with_capacity(hosts.len());
        for host in hosts {
            let features = &self.listed[host as usize].features;
            match meets_rule(&resources.features, features) {
                Some(true) => allowed.push(host),
                Some(false) => {}
                None => return Err(fault(format!("the constraint `{}`", resources.features))),
            }
        }
        Ok(allowed)
    }

    /// Returns true if jobs have whole nodes in the partition of `job`.
    fn has_whole_nodes(&self, job: &ListedJob) -> bool {
        let partition = job.partitions.first();
        self.settings
            .zip(partition)
            .is_some_and(|(settings, name)| settings.sharing(name).is_none())
    }
}

/// Returns `partition`, and all partitions that have nodes in common with it, also by way of others.
fn overlapping_partitions<'a>(partition: &str, listing: &'a NodeListing) -> BTreeSet<&'a str> {
    let mut found: BTreeSet<&str> = listing
        .partitions()
        .filter(|name| *name == partition)
        .collect();
    let mut hosts: BTreeSet<&str> = BTreeSet::new();
    loop {
        for name in &found {
            hosts.extend(
                listing
                    .hosts_in_partition(name)
                    .into_iter()
                    .flatten()
                    .map(String::as_str),
            );
        }
        let overlaps = |name: &&str| {
            let others = listing.hosts_in_partition(name).into_iter().flatten();
            !found.contains(*name) && others.into_iter().any(|host| hosts.contains(host.as_str()))
        };
        let more: Vec<&str> = listing.partitions().filter(overlaps).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// Returns true if a job holds memory, so that Slurm allocates it.
fn holds_memory(queue: &QueueListing) -> bool {
    let resources = queue.jobs.iter().filter_map(|job| job.resources.as_ref());
    let mut held = resources.flat_map(|resources| &resources.held_nodes);
    held.any(|held| held.memory_mb > 0)
}

/// Returns the names of all generic resources of `nodes`; `None` if there are too many.
fn gres_names(nodes: &[(&str, &NodeResources)]) -> Option<Vec<String>> {
    let mut names = BTreeSet::new();
    for gres in nodes.iter().flat_map(|(_, resources)| &resources.gres) {
        names.insert(gres.name.clone());
        if let Some(kind) = &gres.kind {
            names.insert(format!("{}:{kind}", gres.name));
        }
    }
    (names.len() <= MAX_KINDS - 2).then(|| names.into_iter().collect())
}
