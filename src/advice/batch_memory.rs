//! Makes memory plans of batches from the runs of their jobs in a log.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::job_advice::JobAdvice;
use super::memory_plan::{JobNeed, MAX_REQUEST_MB, MemoryPlan, cheapest_requests};
use htcondor_eventlog::{ABORTED, EVICTED, EXECUTE, HELD, SHADOW_EXCEPTION, TERMINATED};
use htcondor_holdreasons::{Outcome, ReasonKind, Thing};
use poolcast_base::stats::upper_median;
use poolcast_events::{EventStore, StoredJob};
use poolcast_holds::answers::{ClusterKey, stated_kind};

/// Jobs with a known need from which on a batch gets a plan.
const MIN_KNOWN_JOBS: usize = 10;

/// Requests are multiples of this number of MB, because slots are
/// (`MODIFY_REQUEST_EXPR_REQUESTMEMORY`).
const STEP_MB: u64 = 128;

/// MB times ms in one GiB hour.
const MB_MS_PER_GIB_H: f64 = 1024.0 * 3_600_000.0;

/// The plans of the batches that some clusters belong to.
#[derive(Debug, Default)]
pub struct MemoryPlans {
    by_cluster: HashMap<ClusterKey, BatchKey>,
    by_batch: HashMap<BatchKey, Arc<MemoryPlan>>,
}

/// The jobs of one batch name and owner, or of one cluster if the batch has no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum BatchKey {
    Named { ap: u32, owner: u64, batch: u32 },
    Cluster(ClusterKey),
}

/// Memory and run time of a job.
#[derive(Debug, Clone, Copy, Default)]
struct JobMemory {
    /// Largest measured usage, MB; 0 if unknown.
    used_mb: u64,
    /// Request at submission, MB; 0 if unknown.
    requested_mb: u64,
    /// Duration of all runs, ms.
    all_runs_ms: u64,
    /// Duration of the last run that exceeded the request; 0 if none did.
    exceeded_ms: u64,
    was_exceeded: bool,
    /// Duration of the run that succeeded, ms; `None` if none did.
    success_ms: Option<u64>,
}

impl MemoryPlans {
    /// Makes plans for the batches of `store` that the clusters in `asked` belong to. Each of them has
    /// the memory that its jobs request, MB, if that is known from elsewhere than the log.
    pub fn of_clusters(
        store: &EventStore,
        asked: &HashMap<(u32, i32), Option<u64>>,
    ) -> MemoryPlans {
        let mut plans = MemoryPlans::default();
        if asked.is_empty() {
            return plans;
        }
        let jobs = store.jobs();
        for job in jobs.iter() {
            let cluster = (job.ap, job.cluster);
            if asked.contains_key(&cluster) {
                plans.by_cluster.entry(cluster).or_insert(batch_of(&job));
            }
        }

        let mut batches: HashMap<BatchKey, Batch> = HashMap::new();
        for (cluster, batch) in &plans.by_cluster {
            batches
                .entry(*batch)
                .or_default()
                .add_asked(*cluster, asked[cluster]);
        }
        for job in jobs.iter() {
            if let Some(batch) = batches.get_mut(&batch_of(&job)) {
                batch.jobs.push(JobMemory::of_job(&job));
            }
        }
        let planned = batches
            .into_iter()
            .filter_map(|(key, batch)| Some((key, Arc::new(batch.plan()?))));
        plans.by_batch = planned.collect();
        plans
    }

    /// Returns the plan of the batch that `cluster` of the access point `ap` belongs to; `None` if too
    /// few of its jobs are known to have ended well.
    pub fn of_cluster(&self, ap: u32, cluster: i32) -> Option<&Arc<MemoryPlan>> {
        self.by_batch.get(self.by_cluster.get(&(ap, cluster))?)
    }
}

/// Adds the plans of their batches to the jobs in `advice` that were held for memory.
pub fn add_memory_plans(store: &EventStore, advice: &mut [JobAdvice]) {
    let aps = &store.summary.aps;
    let key_of = |one: &JobAdvice| {
        if !states_memory_excess(one.hold.stated) {
            return None;
        }
        let ap = aps.iter().position(|ap| ap == one.job.ap.as_str())?;
        Some((ap as u32, one.job.id.cluster))
    };
    let mut asked: HashMap<ClusterKey, Option<u64>> = HashMap::new();
    for one in &*advice {
        if let Some(key) = key_of(one) {
            let facts = one.job.queue.as_deref();
            let requested_mb: Option<u64> =
                facts.and_then(|facts| facts.request_memory.as_ref()?.parse().ok());
            let requested_mb = requested_mb.filter(|mb| *mb <= MAX_REQUEST_MB);
            add_request(&mut asked, key, requested_mb);
        }
    }

    let plans = MemoryPlans::of_clusters(store, &asked);
    for one in advice {
        let key = key_of(one);
        one.verdict.memory_plan =
            key.and_then(|(ap, cluster)| plans.of_cluster(ap, cluster).cloned());
    }
}

/// Adds the request of a job of the cluster `key` to those in `asked`. The lowest request of a cluster
/// counts, because requests may have been raised since, one by one.
pub(super) fn add_request(
    asked: &mut HashMap<ClusterKey, Option<u64>>,
    key: ClusterKey,
    requested_mb: Option<u64>,
) {
    let least_mb = asked.entry(key).or_default();
    *least_mb = least_mb.iter().copied().chain(requested_mb).min();
}

fn states_memory_excess(stated: ReasonKind) -> bool {
    (stated.thing, stated.outcome) == (Thing::Memory, Outcome::Exceeded)
}

/// Returns true if a job has no slot after event `number`.
fn ends_memory_use(number: u16) -> bool {
    matches!(
        number,
        EVICTED | TERMINATED | HELD | ABORTED | SHADOW_EXCEPTION
    )
}

fn batch_of(job: &StoredJob<'_>) -> BatchKey {
    match job.names.batch {
        0 => BatchKey::Cluster((job.ap, job.cluster)),
        batch => BatchKey::Named {
            ap: job.ap,
            owner: job.owner,
            batch,
        },
    }
}

impl JobMemory {
    fn of_job(job: &StoredJob<'_>) -> JobMemory {
        let mut memory = JobMemory {
            requested_mb: job.request.memory_mb.into(),
            ..JobMemory::default()
        };
        let history = job.history;
        let (mut started_ms, mut last_run_ms) = (None, 0);
        for at in 0..history.number.len() {
            let used_mb = job.run_usage(at).memory_mb.max(job.image_memory_mb(at));
            memory.used_mb = memory.used_mb.max(used_mb.unwrap_or(0).into());
            let (number, time_ms) = (history.number[at], history.time_ms[at]);
            if number == EXECUTE {
                started_ms = Some(time_ms);
            } else if ends_memory_use(number)
                && let Some(started_ms) = started_ms.take()
            {
                last_run_ms = time_ms.saturating_sub(started_ms).max(0).cast_unsigned();
                memory.all_runs_ms = memory.all_runs_ms.saturating_add(last_run_ms);
            }
            memory.add_end(job, at, last_run_ms);
        }
        memory
    }

    /// Adds what event `at` says about the end of the last run, which took `run_ms`.
    fn add_end(&mut self, job: &StoredJob<'_>, at: usize, run_ms: u64) {
        let history = &job.history;
        match history.number[at] {
            TERMINATED if history.normal[at] == 1 && history.value[at] == 0 => {
                self.success_ms = Some(run_ms);
            }
            // HTCondor may have evicted the job before.
            HELD if states_memory_excess(stated_kind(job, at)) => {
                self.was_exceeded = true;
                self.exceeded_ms = run_ms;
            }
            _ => {}
        }
    }

    /// Returns the duration of the run that succeeded, ms, if the memory that it used is known.
    fn known_run_ms(&self) -> Option<u64> {
        self.success_ms.filter(|_| self.used_mb > 0)
    }

    /// Returns the need of the job, or of one that was held for memory and never succeeded. A whole
    /// run of such a job takes `typical_ms`.
    fn need(&self, typical_ms: u64) -> Option<JobNeed> {
        let exceeded_ms = |run_ms| {
            if self.was_exceeded {
                self.exceeded_ms
            } else {
                run_ms
            }
        };
        if let Some(run_ms) = self.known_run_ms() {
            // HTCondor measures every few minutes, and misses short peaks.
            let need_mb = (self.used_mb + self.used_mb.div_ceil(10)).next_multiple_of(STEP_MB);
            return Some(JobNeed {
                need_mb,
                used_mb: self.used_mb,
                run_ms,
                exceeded_ms: exceeded_ms(run_ms),
            });
        }
        let known_mb = self.used_mb.max(self.requested_mb);
        (self.was_exceeded && known_mb > 0).then(|| JobNeed {
            need_mb: (known_mb * 3 / 2).next_multiple_of(STEP_MB),
            used_mb: known_mb + 1,
            run_ms: typical_ms,
            exceeded_ms: self.exceeded_ms,
        })
    }
}

/// The jobs of one batch.
#[derive(Debug, Default)]
struct Batch {
    clusters: BTreeSet<i32>,
    /// Request of its jobs in the queue, MB; `None` if unknown.
    requested_mb: Option<u64>,
    jobs: Vec<JobMemory>,
}

impl Batch {
    fn add_asked(&mut self, (_, cluster): ClusterKey, requested_mb: Option<u64>) {
        self.clusters.insert(cluster);
        self.requested_mb = self.requested_mb.into_iter().chain(requested_mb).min();
    }

    /// Makes the plan; `None` if the needs of too few jobs are known.
    fn plan(mut self) -> Option<MemoryPlan> {
        let is_known = |job: &&JobMemory| job.known_run_ms().is_some();
        let known = self.jobs.iter().filter(is_known).count();
        if known < MIN_KNOWN_JOBS {
            return None;
        }
        for job in &mut self.jobs {
            if job.requested_mb == 0 {
                job.requested_mb = self.requested_mb.unwrap_or(0);
            }
        }

        let typical_ms = self.median_run_ms();
        let counted: Vec<(&JobMemory, JobNeed)> = (self.jobs.iter())
            .filter_map(|job| Some((job, job.need(typical_ms)?)))
            .collect();
        let mut needs: Vec<JobNeed> = counted.iter().map(|(_, need)| *need).collect();
        needs.sort_by_key(|need| need.need_mb);
        let requests = cheapest_requests(&needs)?;
        let fits = |need: &&JobNeed| need.need_mb <= requests.first_mb;
        let requested = |(job, _): &(&JobMemory, JobNeed)| {
            let known_mb = (job.requested_mb > 0).then_some(job.requested_mb as f64)?;
            Some(known_mb * job.all_runs_ms as f64)
        };
        let requested: Option<Vec<f64>> = counted.iter().map(requested).collect();
        Some(MemoryPlan {
            clusters: self.clusters,
            jobs: needs.len(),
            assumed_jobs: needs.len() - known,
            request_mb: requests.first_mb,
            fitting_jobs: needs.iter().filter(fits).count(),
            retry_mb: requests.retry_mb,
            planned_gib_h: requests.cost_mb_ms / MB_MS_PER_GIB_H,
            requested_gib_h: requested.map(|all| all.iter().sum::<f64>() / MB_MS_PER_GIB_H),
            used_mb: needs.iter().map(|need| need.used_mb).collect(),
        })
    }

    /// Returns the median duration of the runs that succeeded, ms.
    fn median_run_ms(&self) -> u64 {
        let mut runs: Vec<u64> = self.jobs.iter().filter_map(|job| job.success_ms).collect();
        runs.sort_unstable();
        upper_median(&runs).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::{EventFacts, IMAGE_SIZE, JobEvent, RunUsage, SUBMIT};
    use test_stores::store_of;

    /// Returns the events of a job of cluster 7 whose runs use these MB, one hour each. All runs but
    /// the last are held for memory; the last one succeeds if `succeeds`.
    fn job_events(proc: i32, runs_mb: &[i32], succeeds: bool) -> Vec<JobEvent> {
        let event = |number, hour: i64| JobEvent {
            number,
            time_ms: hour * 3_600_000,
            cluster: 7,
            proc,
            ..JobEvent::default()
        };
        let mut found = vec![event(SUBMIT, 0)];
        for (run, &used_mb) in runs_mb.iter().enumerate() {
            let hour = 2 * run as i64 + 1;
            found.push(event(EXECUTE, hour));
            found.push(JobEvent {
                value: used_mb,
                ..event(IMAGE_SIZE, hour)
            });
            if succeeds && run + 1 == runs_mb.len() {
                found.push(JobEvent {
                    normal: 1,
                    ..event(TERMINATED, hour + 1)
                });
                continue;
            }
            // HTCondor 25.14 writes both, in this order.
            found.push(event(EVICTED, hour + 1));
            found.push(JobEvent {
                hold_code: 34,
                hold_subcode: 102,
                ..event(HELD, hour + 1)
            });
        }
        found
    }

    fn plan_of(jobs: &[(&[i32], bool)], requested_mb: Option<u64>) -> Option<MemoryPlan> {
        let mut all = Vec::new();
        for (proc, (runs_mb, succeeds)) in jobs.iter().enumerate() {
            all.extend(job_events(proc as i32, runs_mb, *succeeds));
        }
        let store = store_of(&all);
        let plans = MemoryPlans::of_clusters(&store, &HashMap::from([((0, 7), requested_mb)]));
        assert!(plans.of_cluster(0, 8).is_none() && plans.of_cluster(1, 7).is_none());
        plans.of_cluster(0, 7).map(|plan| (**plan).clone())
    }

    #[test]
    fn plan_follows_from_successes_and_holds_for_memory() {
        let small: (&[i32], bool) = (&[900], true);
        let mut jobs = vec![small; 18];
        jobs.push((&[1024, 3000], true));
        jobs.push((&[1024], false));
        let plan = plan_of(&jobs, Some(1024)).expect("a plan");
        // 900 and 10 % are 990; the one without a success gets 1.5 times what it used.
        assert_eq!((plan.request_mb, plan.retry_mb), (1024, Some(3328)));
        assert_eq!(
            (plan.jobs, plan.fitting_jobs, plan.assumed_jobs),
            (20, 18, 1)
        );
        // 20 runs that fit or fail, and one of two hours that were not enough.
        assert_eq!(plan.requested_gib_h, Some(21.0));
        assert_eq!(plan.planned_gib_h, 18.0 + 2.0 + 2.0 * 3328.0 / 1024.0);
    }

    #[test]
    fn few_known_needs_give_no_plan() {
        let small: (&[i32], bool) = (&[900], true);
        assert!(plan_of(&[small; 9], None).is_none());
        let plan = plan_of(&[small; 10], None).expect("a plan");
        assert_eq!((plan.request_mb, plan.requested_gib_h), (1024, None));
        let failed: (&[i32], bool) = (&[900], false);
        assert!(plan_of(&[failed; 10], None).is_none());
    }

    #[test]
    fn usage_at_the_end_of_a_run_counts() {
        let mut found = job_events(0, &[0], true);
        if let Some(end) = found.last_mut() {
            end.facts = EventFacts::from_run(RunUsage {
                memory_mb: Some(500),
                ..RunUsage::default()
            });
        }
        let store = store_of(&found);
        let jobs = store.jobs();
        assert_eq!(JobMemory::of_job(&jobs.get(0)).used_mb, 500);
    }
}
