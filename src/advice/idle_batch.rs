//! Idle jobs of one batch that have one fault in common.

use std::collections::BTreeSet;

use serde::Serialize;

use super::command_names::{and_owned_by, program_at};
use super::id_ranges::{ClusterProc, id_expressions};
use super::job_command::JobId;
use super::unheld_job::UnheldJob;
use poolcast_base::shared_text::SharedText;

/// Idle jobs of one batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdleBatch {
    /// Their access point; empty if it is unknown.
    pub ap: SharedText,
    /// Their owner, if the queue names one.
    pub owner: Option<SharedText>,
    /// Their batch; `None` if it has no name, and then they are of one cluster.
    pub batch: Option<SharedText>,
    /// The jobs, by id.
    pub jobs: Vec<JobId>,
    /// The clusters of the jobs.
    pub clusters: Vec<i32>,
}

/// The key of a batch: access point, owner, name, and the cluster if there is no name.
pub(super) type IdleBatchKey<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Option<i32>);

/// Returns the key of the batch that `job` belongs to.
pub(super) fn batch_key(job: &UnheldJob) -> IdleBatchKey<'_> {
    let cluster = job.batch.is_none().then_some(job.job.cluster);
    (&job.ap, job.owner.as_deref(), job.batch.as_deref(), cluster)
}

impl IdleBatch {
    /// Describes `members`, which are not empty and have one key.
    pub(super) fn of_members(members: &[&UnheldJob]) -> IdleBatch {
        let first = members[0];
        let clusters: BTreeSet<i32> = members.iter().map(|job| job.job.cluster).collect();
        IdleBatch {
            ap: first.ap.clone(),
            owner: first.owner.clone(),
            batch: first.batch.clone(),
            jobs: members.iter().map(|job| job.job).collect(),
            clusters: clusters.into_iter().collect(),
        }
    }
}

/// Returns the commands `program JOBS arguments`, which affect exactly the `members` that are still
/// idle, and have been since they were seen. They must be of one access point. Returns none if it is
/// unknown since when one of them has been idle, or if a name is no plain one.
pub(super) fn commands_for(program: &str, members: &[&UnheldJob], arguments: &str) -> Vec<String> {
    let since_s = members.iter().map(|job| job.since_s);
    let owners = and_owned_by(members.iter().map(|job| job.owner.as_deref()));
    let schedd = members.first().and_then(|job| job.schedd.as_deref());
    let (Some(1..), Some(latest_s)) = (since_s.clone().min(), since_s.max()) else {
        return Vec::new();
    };
    let (Some(owners), Some(program)) = (owners, program_at(program, schedd)) else {
        return Vec::new();
    };
    // A job that starts and is idle again has a later time.
    let guard = format!("JobStatus==1 && EnteredCurrentStatus<={latest_s}{owners}");
    let jobs = members.iter().map(|job| (job.job.cluster, job.job.proc));
    let mut jobs: Vec<ClusterProc> = jobs.collect();
    jobs.sort_unstable();
    id_expressions(&jobs)
        .into_iter()
        .map(|jobs| format!("{program} -constraint '{guard} && {jobs}'{arguments}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::test_queue::{QueuedTestJob, affected};
    use super::super::unheld_jobs::UnheldJobs;
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Returns the commands for the idle ones of `seen`.
    fn hold_commands(seen: &[QueuedTestJob]) -> Vec<String> {
        let ad = |job: &QueuedTestJob| {
            json!({"ClusterId": job.cluster, "ProcId": job.proc, "JobStatus": job.status,
                "Owner": job.owner, "EnteredCurrentStatus": job.since_s})
        };
        let ads: Vec<_> = seen.iter().map(ad).collect();
        let text = json!(ads).to_string();
        let jobs = UnheldJobs::read(text.as_bytes()).expect("a queue");
        let idle: Vec<&UnheldJob> = jobs.jobs().iter().filter(|job| job.is_idle).collect();
        commands_for("condor_hold", &idle, "")
    }

    fn idle(cluster: i32, since_s: i64) -> QueuedTestJob {
        QueuedTestJob {
            cluster,
            proc: 2,
            owner: "ada",
            status: 1,
            since_s,
        }
    }

    #[test]
    fn commands_name_the_owner_and_the_time() {
        assert_eq!(
            hold_commands(&[idle(7, 102)]),
            [
                "condor_hold -constraint 'JobStatus==1 && EnteredCurrentStatus<=102 && Owner==\"ada\" && ClusterId==7 && ProcId==2'"
            ]
        );
    }

    #[test]
    fn jobs_of_unknown_time_or_odd_owner_get_no_command() {
        assert_eq!(hold_commands(&[idle(1, 0), idle(2, 100)]), [""; 0]);
        assert_eq!(hold_commands(&[]), [""; 0]);
        let odd = QueuedTestJob {
            owner: "ada' || true",
            ..idle(1, 100)
        };
        assert_eq!(hold_commands(&[odd]), [""; 0]);
    }

    proptest! {
        #[test]
        fn commands_affect_the_idle_jobs_that_were_seen_alone(
            jobs in prop::collection::btree_map(
                (0..8, 0..8),
                (prop::sample::select(vec!["ada", "bob"]), prop::sample::select(vec![1, 1, 2, 5]), 1i64..20, any::<bool>()),
                1..60,
            ),
        ) {
            let job = |(&(cluster, proc), &(owner, status, since_s, _))| QueuedTestJob { cluster, proc, owner, status, since_s };
            let queue: Vec<QueuedTestJob> = jobs.iter().map(job).collect();
            let seen: Vec<QueuedTestJob> = queue
                .iter()
                .zip(jobs.values())
                .filter(|(_, value)| value.3)
                .map(|(job, _)| *job)
                .collect();
            let mut all: Vec<ClusterProc> = Vec::new();
            for command in hold_commands(&seen) {
                all.extend(affected(&command, &queue));
            }
            all.sort_unstable();
            let expected: Vec<ClusterProc> = seen.iter().filter(|job| job.status == 1).map(QueuedTestJob::number).collect();
            prop_assert_eq!(all, expected);
        }
    }
}
