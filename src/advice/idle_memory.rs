//! Finds idle jobs that request less memory than many jobs of their batch used, or far more than all of them did.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::batch_memory::{MemoryPlans, add_request};
use super::idle_batch::{IdleBatch, IdleBatchKey, batch_key, commands_for};
use super::job_command::{RaisedRequest, RequestAttribute};
use super::unheld_job::UnheldJob;
use super::unheld_jobs::UnheldJobs;
use poolcast_events::EventStore;

/// Idle jobs of one batch whose request does not fit the memory that jobs of the batch used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnfitRequest {
    /// The jobs.
    #[serde(flatten)]
    pub members: IdleBatch,
    /// Their `RequestMemory`, MB.
    pub requested_mb: u64,
    /// Jobs of the batch whose usage is known.
    pub known_jobs: usize,
    /// Jobs among them that used more; 0 if the request is far too high.
    pub larger_jobs: usize,
    /// The request that does for most of them, MB.
    pub request_mb: u64,
    /// The commands that raise the request.
    pub commands: Vec<String>,
}

/// The common facts of one finding: batch, request, and the facts about the batch: known jobs, larger
/// jobs and a better request.
type RequestKey<'a> = (IdleBatchKey<'a>, u64, (usize, usize, u64));

/// Finds the idle ones of `jobs` that request too little or far too much, by the runs in `store`. The findings
/// about most jobs are first.
pub fn unfit_requests(store: &EventStore, jobs: &UnheldJobs) -> Vec<UnfitRequest> {
    let aps: HashMap<&str, u32> = (0..)
        .zip(&store.summary.aps)
        .map(|(at, ap)| (ap.as_str(), at))
        .collect();
    let idle = || {
        let idle = jobs.jobs.iter().filter(|job| job.is_idle);
        idle.filter_map(|job| Some((job, *aps.get(job.ap.as_str())?, job.request_mb?)))
    };
    let mut asked: HashMap<(u32, i32), Option<u64>> = HashMap::new();
    for (job, ap, request_mb) in idle() {
        add_request(&mut asked, (ap, job.job.cluster), Some(request_mb));
    }

    let plans = MemoryPlans::of_clusters(store, &asked);
    let mut low: BTreeMap<RequestKey<'_>, Vec<&UnheldJob>> = BTreeMap::new();
    for (job, ap, requested_mb) in idle() {
        let Some(plan) = plans.of_cluster(ap, job.job.cluster) else {
            continue;
        };
        let far_more = plan.is_far_below(requested_mb).then_some(0);
        let Some(larger_jobs) = plan.many_over(requested_mb).or(far_more) else {
            continue;
        };
        let facts = (plan.jobs, larger_jobs, plan.request_mb);
        let key = (batch_key(job), requested_mb, facts);
        low.entry(key).or_default().push(job);
    }
    let mut found: Vec<UnfitRequest> = low
        .into_iter()
        .map(|((_, requested_mb, facts), members)| UnfitRequest::new(&members, requested_mb, facts))
        .collect();
    found.sort_by_key(|one| Reverse(one.members.jobs.len()));
    found
}

impl UnfitRequest {
    /// Describes `members`, which are not empty, by the facts about their batch.
    fn new(
        members: &[&UnheldJob],
        requested_mb: u64,
        (known_jobs, larger_jobs, request_mb): (usize, usize, u64),
    ) -> UnfitRequest {
        let raised = RaisedRequest {
            attribute: RequestAttribute::RequestMemory,
            number: request_mb,
        };
        UnfitRequest {
            members: IdleBatch::of_members(members),
            requested_mb,
            known_jobs,
            larger_jobs,
            request_mb,
            commands: commands_for("condor_qedit", members, &raised.arguments()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::{EXECUTE, IMAGE_SIZE, JobEvent, SUBMIT, TERMINATED};
    use test_stores::store_of;

    /// Returns the findings for an idle job of a cluster where 12 jobs used 1000 MB, and 8 less.
    fn found(attributes: &str) -> Vec<UnfitRequest> {
        let mut events = Vec::new();
        for proc in 0..20 {
            let event = |number, hour: i64, value| JobEvent {
                cluster: 7,
                proc,
                number,
                time_ms: 3_600_000 * hour,
                normal: u8::from(number == TERMINATED),
                value,
                ..JobEvent::default()
            };
            let used_mb = if proc < 12 { 1000 } else { 200 };
            events.extend([
                event(SUBMIT, 0, 0),
                event(EXECUTE, 1, 0),
                event(IMAGE_SIZE, 2, used_mb),
                event(TERMINATED, 3, 0),
            ]);
        }
        let job = format!(
            r#"[{{"ClusterId": 7, "ProcId": 30, "JobStatus": 1, "GlobalJobId": "ap#7.30#9", "EnteredCurrentStatus": 100, {attributes}}}]"#
        );
        let jobs = UnheldJobs::read(job.as_bytes()).expect("a queue");
        unfit_requests(&store_of(&events), &jobs)
    }

    #[test]
    fn requests_below_the_usage_of_many_jobs_are_raised() {
        let low = found(r#""RequestMemory": 512"#);
        let [one] = &low[..] else {
            panic!("one finding: {low:?}")
        };
        assert_eq!((one.larger_jobs, one.known_jobs), (12, 20));
        assert_eq!((one.requested_mb, one.request_mb), (512, 1152));
        assert_eq!(
            one.commands,
            [
                "condor_qedit -constraint 'JobStatus==1 && EnteredCurrentStatus<=100 && ClusterId==7 && ProcId==30' RequestMemory 1152"
            ]
        );
    }

    #[test]
    fn requests_far_above_the_usage_of_all_jobs_are_lowered() {
        let found = found(r#""RequestMemory": 8192"#);
        let [one] = &found[..] else {
            panic!("one finding: {found:?}")
        };
        assert_eq!(
            (one.larger_jobs, one.requested_mb, one.request_mb),
            (0, 8192, 1152)
        );
        assert!(one.commands[0].ends_with(" RequestMemory 1152"));
    }

    #[test]
    fn other_requests_are_left_alone() {
        for attributes in [
            r#""RequestMemory": 1000"#,
            r#""RequestMemory": 2048"#,
            r#""RequestMemory": 6666"#,
            r#""RequestMemory": "/Expr(2 * 256)/""#,
            r#""RequestMemory": 512, "RetryRequestMemory": 2048"#,
        ] {
            assert_eq!(found(attributes), [], "{attributes}");
        }
    }
}
