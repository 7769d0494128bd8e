//! Names held jobs in a command that people may paste later. It affects no other job, also none that
//! nobody knew of, and no named job that has left its hold.

use std::fmt;

use serde::{Serialize, Serializer};

use super::command_names::{and_owned_by, program_at};
use super::id_ranges::{ClusterProc, MAX_IDS, id_expressions, id_list, is_one_of};
use poolcast_base::shared_text::SharedText;

/// A job that is held now, as commands name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HeldId {
    pub(super) cluster: i32,
    pub(super) proc: i32,
    /// Time of the hold, epoch s; 0 if it is unknown.
    pub(super) since_s: i64,
    /// Its owner, if it is known.
    pub(super) owner: Option<SharedText>,
    /// The access point that commands must name.
    pub(super) schedd: Option<SharedText>,
}

/// Maximum difference between the timestamps of a hold in the log and in the queue, s.
const CLOCK_SLACK_S: i64 = 2;

/// Jobs for one call of a program. Their ids must fit into one argument of 128 KiB.
const JOBS_PER_CALL: usize = 1000;

/// The program that shows why jobs are held.
const LOOK: &str = "condor_q -hold";

/// A command on held jobs. It is formatted as it is typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCommand {
    /// The program, with its options.
    program: String,
    /// An expression that is true only as long as the jobs are in the same hold; `None` if the
    /// program changes nothing, and gets their ids.
    guard: Option<String>,
    /// The jobs, sorted.
    jobs: Vec<ClusterProc>,
    /// The arguments after the jobs.
    arguments: String,
}

impl HeldCommand {
    /// Creates the command `program JOBS arguments`, which affects only the `jobs` that are
    /// still in the same hold. `jobs` must be sorted, and of one access point. Returns `None` if there
    /// are no jobs, if one of their hold times is unknown, or if a name is no plain one.
    pub(super) fn new(program: &str, jobs: &[HeldId], arguments: &str) -> Option<HeldCommand> {
        let since_s = jobs.iter().map(|job| job.since_s);
        if since_s.clone().any(|since_s| since_s <= 0) {
            return None;
        }
        let latest_s = since_s.max()?;
        let owners = and_owned_by(jobs.iter().map(|job| job.owner.as_deref()))?;
        Some(HeldCommand {
            program: program_at(program, jobs[0].schedd.as_deref())?,
            guard: Some(hold_guard(latest_s) + &owners),
            jobs: jobs.iter().map(|job| (job.cluster, job.proc)).collect(),
            arguments: arguments.to_owned(),
        })
    }

    /// Creates a command that shows why `jobs` are held. Returns `None` as [`HeldCommand::new`] does,
    /// but the hold times of a few jobs may be unknown.
    pub(super) fn look(jobs: &[HeldId]) -> Option<HeldCommand> {
        if jobs.len() > MAX_IDS {
            return HeldCommand::new(LOOK, jobs, "");
        }
        Some(HeldCommand {
            program: program_at(LOOK, jobs.first()?.schedd.as_deref())?,
            guard: None,
            jobs: jobs.iter().map(|job| (job.cluster, job.proc)).collect(),
            arguments: String::new(),
        })
    }

    /// The same command for the jobs whose ids `call` prints; `None` if it lists its ids, and changes
    /// nothing.
    pub(super) fn with_ids_of(&self, call: &str) -> Option<String> {
        let HeldCommand {
            program, arguments, ..
        } = self;
        let constraint = format!("{} && {}", self.guard.as_ref()?, is_one_of("$*"));
        let quoted = constraint.replace('"', "\\\"");
        Some(format!(
            "{call} | xargs -n {JOBS_PER_CALL} sh -c '{program} -constraint \"{quoted}\"{arguments}' -"
        ))
    }
}

impl fmt::Display for HeldCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HeldCommand {
            program,
            jobs,
            arguments,
            ..
        } = self;
        let Some(guard) = &self.guard else {
            return write!(f, "{program} {}", id_list(jobs));
        };
        let is_any = match &id_expressions(jobs)[..] {
            [only] => only.clone(),
            _ if jobs.len() <= JOBS_PER_CALL => is_one_of(&id_list(jobs)),
            _ => {
                let by_ids = self.with_ids_of(&format!("echo {}", id_list(jobs)));
                return f.write_str(&by_ids.unwrap_or_default());
            }
        };
        write!(f, "{program} -constraint '{guard} && {is_any}'{arguments}")
    }
}

impl Serialize for HeldCommand {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Builds an expression that is true for jobs that have been held since `latest_s` or before. A job
/// that was released since, and is held again, has a later time.
fn hold_guard(latest_s: i64) -> String {
    format!(
        "JobStatus==5 && EnteredCurrentStatus<={}",
        latest_s + CLOCK_SLACK_S
    )
}

#[cfg(test)]
mod tests {
    use super::super::test_queue::{QueuedTestJob, affected};
    use super::*;
    use proptest::prelude::*;

    fn held(cluster: i32, proc: i32) -> HeldId {
        HeldId {
            cluster,
            proc,
            since_s: 100,
            owner: None,
            schedd: None,
        }
    }

    fn text(program: &str, jobs: &[HeldId], arguments: &str) -> Option<String> {
        let command = HeldCommand::new(program, jobs, arguments);
        command.map(|command| command.to_string())
    }

    #[test]
    fn every_command_is_limited_to_the_present_holds() {
        let all = [held(12, 0), held(12, 1), held(13, 0)];
        let guard = "-constraint 'JobStatus==5 && EnteredCurrentStatus<=102 && ";
        assert_eq!(
            text("condor_rm", &all[1..2], "").expect("one"),
            format!("condor_rm {guard}ClusterId==12 && ProcId==1'")
        );
        assert_eq!(
            text("condor_qedit", &all, " RequestCpus 2").expect("few"),
            format!(
                "condor_qedit {guard}stringListMember(strcat(ClusterId,\".\",ProcId),\"12.0 12.1 13.0\")' RequestCpus 2"
            )
        );
        let many: Vec<HeldId> = (0..20).map(|proc| held(7, proc)).collect();
        assert_eq!(
            text("condor_release", &many, "").expect("many"),
            format!("condor_release {guard}ClusterId==7 && ProcId>=0 && ProcId<=19'")
        );
        let few = HeldCommand::new("condor_qedit", &all, " RequestCpus 2");
        assert_eq!(
            few.expect("few")
                .with_ids_of("poolcast advise --ids")
                .as_deref(),
            Some(
                r#"poolcast advise --ids | xargs -n 1000 sh -c 'condor_qedit -constraint "JobStatus==5 && EnteredCurrentStatus<=102 && stringListMember(strcat(ClusterId,\".\",ProcId),\"$*\")" RequestCpus 2' -"#
            )
        );
    }

    #[test]
    fn looks_list_few_ids_even_of_holds_of_unknown_time() {
        let unknown = HeldId {
            since_s: 0,
            ..held(12, 0)
        };
        let both = [unknown, held(12, 1)];
        let look = HeldCommand::look(&both).expect("few");
        assert_eq!(look.to_string(), "condor_q -hold 12.0 12.1");
        assert_eq!(look.with_ids_of("call"), None);
        assert_eq!(HeldCommand::look(&[]), None);

        assert_eq!(text("condor_rm", &both, ""), None);
        assert_eq!(text("condor_rm", &[], ""), None);
    }

    #[test]
    fn owners_are_part_of_a_command() {
        let owned = |owner: &str| HeldId {
            owner: Some(owner.into()),
            ..held(12, 0)
        };
        let command = text("condor_rm", &[owned("ada")], "").expect("one");
        assert!(command.contains(" && Owner==\"ada\" && "), "{command}");
        assert_eq!(text("condor_rm", &[owned("a\" || true")], ""), None);
    }

    #[test]
    fn another_access_point_is_part_of_a_command() {
        let elsewhere = |schedd: &str| HeldId {
            schedd: Some(schedd.into()),
            ..held(12, 0)
        };
        let command = HeldCommand::new("condor_release", &[elsewhere("ap1")], "").expect("one");
        assert!(
            command
                .to_string()
                .starts_with("condor_release -name ap1 -constraint '")
        );
        let by_ids = command.with_ids_of("call").expect("a constraint");
        assert!(
            by_ids.contains(" sh -c 'condor_release -name ap1 -constraint "),
            "{by_ids}"
        );
        let look = HeldCommand::look(&[elsewhere("ap1")]).expect("one");
        assert_eq!(look.to_string(), "condor_q -hold -name ap1 12.0");
        assert_eq!(HeldCommand::look(&[elsewhere("-all")]), None);
        assert_eq!(text("condor_release", &[elsewhere("$(id)")], ""), None);
    }

    /// Returns the ids of the jobs in `queue` that the text of a command on `page` affects.
    fn affected_by(page: &[HeldId], queue: &[QueuedTestJob]) -> Vec<ClusterProc> {
        affected(&text("condor_release", page, "").expect("a command"), queue)
    }

    fn held_id(job: &QueuedTestJob) -> HeldId {
        HeldId {
            cluster: job.cluster,
            proc: job.proc,
            since_s: job.since_s,
            owner: Some(job.owner.into()),
            schedd: None,
        }
    }

    #[test]
    fn very_many_jobs_get_their_ids_in_parts() {
        let job = |cluster| QueuedTestJob {
            cluster,
            proc: 0,
            owner: ["ada", "bob"][cluster as usize % 2],
            status: 5,
            since_s: 100,
        };
        let queue: Vec<QueuedTestJob> = (0..7500).map(job).collect();
        for jobs in [100, 2500] {
            let page: Vec<QueuedTestJob> = queue.iter().copied().step_by(3).take(jobs).collect();
            let ids: Vec<HeldId> = page.iter().map(held_id).collect();
            let expected: Vec<ClusterProc> = page.iter().map(QueuedTestJob::number).collect();
            assert_eq!(affected_by(&ids, &queue), expected);
        }
    }

    proptest! {
        #[test]
        fn a_command_affects_the_jobs_of_the_page_alone(
            jobs in prop::collection::btree_map(
                (0..8, 0..8),
                (prop::sample::select(vec!["ada", "bob", "eve"]), prop::sample::select(vec![1, 2, 5, 5, 5]), 1i64..20, any::<bool>()),
                1..60,
            ),
            is_owner_known: bool,
        ) {
            let job = |(&(cluster, proc), &(owner, status, since_s, _))| QueuedTestJob { cluster, proc, owner, status, since_s };
            let queue: Vec<QueuedTestJob> = jobs.iter().map(job).collect();
            let chosen = queue.iter().zip(jobs.values()).filter(|(job, value)| job.status == 5 && value.3);
            let page: Vec<QueuedTestJob> = chosen.map(|(job, _)| *job).collect();
            prop_assume!(!page.is_empty());
            let ids: Vec<HeldId> = page
                .iter()
                .map(|job| HeldId { owner: is_owner_known.then(|| job.owner.into()), ..held_id(job) })
                .collect();
            let expected: Vec<ClusterProc> = page.iter().map(QueuedTestJob::number).collect();
            prop_assert_eq!(affected_by(&ids, &queue), expected);

            let latest_s = page.iter().map(|job| job.since_s).max().expect("some");
            let again: Vec<QueuedTestJob> = queue
                .iter()
                .map(|job| QueuedTestJob { since_s: latest_s + CLOCK_SLACK_S + 1, ..*job })
                .collect();
            prop_assert_eq!(affected_by(&ids, &again), []);
        }
    }
}
