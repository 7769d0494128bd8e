//! Groups causes by the thing that failed: a server, a mount, a full disk, a policy, or requests that are too small.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::cause_groups::{CauseGroup, may_avoid_machine, settling_jobs};
use super::common_place::CommonPlace;
use super::failed_thing::FailedThing;
use super::held_ids::HeldId;
use super::job_advice::JobAdvice;
use super::job_command::JobId;
use poolcast_holds::answers::ThingState;
use poolcast_holds::decision::HoldAction;

/// An owner of held jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct JobOwner<'a> {
    /// Its name.
    pub owner: &'a str,
    /// Number of its jobs.
    pub jobs: usize,
}

/// The jobs of a thing that get one action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ThingAnswer {
    /// The action.
    pub action: HoldAction,
    /// Number of jobs.
    pub jobs: usize,
    /// The jobs whose release settles the answer for the others; empty for other actions, and while the outcome of
    /// a released job is awaited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settled_by: Vec<JobId>,
}

/// A thing that jobs are held for.
#[derive(Debug, Clone, Serialize)]
pub struct HeldThing<'a> {
    /// Its name.
    pub thing: String,
    /// What failed.
    #[serde(flatten)]
    pub failed: FailedThing,
    /// Number of jobs.
    pub jobs: usize,
    /// Number of jobs that its commands move: now, or once what failed is fixed.
    pub movable: usize,
    /// Known owners, the owner of the most jobs first.
    pub owners: Vec<JobOwner<'a>>,
    /// Clusters that the jobs belong to.
    pub clusters: usize,
    /// Median duration of the holds, ms.
    pub held_for_ms: i64,
    /// Start of the earliest hold, epoch ms.
    pub held_since_ms: i64,
    /// State of the thing for the latest hold with a known state.
    pub state: Option<&'a ThingState>,
    /// The answers, the one about the most jobs first.
    pub answers: Vec<ThingAnswer>,
    /// Machine or site where most of the jobs failed.
    #[serde(skip)]
    pub place: Option<CommonPlace>,
    /// The cause of the most jobs, in words.
    #[serde(skip)]
    pub largest_cause: String,
    /// Names of its causes, the most urgent first.
    pub causes: Vec<String>,
    /// The advice on its jobs.
    #[serde(skip)]
    pub members: Vec<&'a JobAdvice>,
}

/// Groups `causes` by thing. The things whose commands move the most jobs come first.
pub fn held_things<'a>(causes: &[CauseGroup<'a>]) -> Vec<HeldThing<'a>> {
    let mut by_thing: BTreeMap<&FailedThing, Vec<&CauseGroup<'a>>> = BTreeMap::new();
    for cause in causes {
        by_thing.entry(&cause.failed).or_default().push(cause);
    }
    let mut things: Vec<HeldThing<'a>> = (by_thing.into_iter())
        .map(|(failed, causes)| thing_of(failed, &causes))
        .collect();
    things.sort_by_key(|thing| Reverse((thing.movable, thing.jobs)));
    things
}

fn thing_of<'a>(failed: &FailedThing, causes: &[&CauseGroup<'a>]) -> HeldThing<'a> {
    let members: Vec<&'a JobAdvice> = causes
        .iter()
        .flat_map(|cause| cause.members.iter().copied())
        .collect();
    let states = causes.iter().filter_map(|cause| cause.state);
    let clusters: BTreeSet<(&str, i32)> = (members.iter())
        .map(|one| (one.ap.as_str(), one.cluster))
        .collect();
    let elsewhere: Vec<&JobAdvice> = (members.iter().copied())
        .filter(|one| may_avoid_machine(one))
        .collect();
    let named: Vec<HeldId> = elsewhere.iter().map(|one| one.held_id()).collect();
    let largest = causes.iter().max_by_key(|cause| cause.jobs.len());
    HeldThing {
        thing: failed.to_string(),
        failed: failed.clone(),
        jobs: members.len(),
        movable: members.iter().filter(|one| is_movable(one)).count(),
        owners: owners_by_jobs(&members),
        clusters: clusters.len(),
        held_for_ms: median(members.iter().map(|one| one.held_for_ms)),
        held_since_ms: (members.iter())
            .map(|one| one.held_since_ms)
            .min()
            .unwrap_or(0),
        state: states.max_by_key(|state| state.last_failure_ms),
        answers: answers_of(&members),
        place: CommonPlace::find(&elsewhere, &named),
        largest_cause: largest.map_or_else(String::new, |cause| cause.words.clone()),
        causes: causes.iter().map(|cause| cause.cause.clone()).collect(),
        members,
    }
}

/// Returns true if a command moves the job: now, as soon as a probe has succeeded, or once what failed is fixed.
fn is_movable(advice: &JobAdvice) -> bool {
    match advice.action {
        HoldAction::Release | HoldAction::Remove => advice.command.is_some(),
        HoldAction::Probe => !advice.settled_by.is_empty(),
        HoldAction::Fix => advice.then.is_some(),
        HoldAction::Later | HoldAction::Leave | HoldAction::None => false,
    }
}

/// Returns the known owners of `members`, the owner of the most jobs first.
pub(super) fn owners_by_jobs<'a>(members: &[&'a JobAdvice]) -> Vec<JobOwner<'a>> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for owner in members.iter().filter_map(|one| one.owner.as_deref()) {
        *counts.entry(owner).or_default() += 1;
    }
    let mut owners: Vec<JobOwner<'a>> = (counts.into_iter())
        .map(|(owner, jobs)| JobOwner { owner, jobs })
        .collect();
    owners.sort_by_key(|owner| Reverse(owner.jobs));
    owners
}

fn answers_of(members: &[&JobAdvice]) -> Vec<ThingAnswer> {
    let mut answers: Vec<ThingAnswer> = Vec::new();
    for action in HoldAction::COUNTED {
        let alike = || members.iter().filter(|one| one.action == action);
        let settled_by = settling_jobs(alike().copied());
        answers.push(ThingAnswer {
            action,
            jobs: alike().count(),
            settled_by,
        });
    }
    answers.retain(|answer| answer.jobs > 0);
    answers.sort_by_key(|answer| Reverse(answer.jobs));
    answers
}

fn median(values: impl Iterator<Item = i64>) -> i64 {
    let mut values: Vec<i64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::cause_groups::cause_groups;
    use super::super::job_advice::JobAdvice;
    use super::*;

    /// Returns the advice on a job of `owner` that is held with `reason` for `held_for_ms`.
    fn held(cluster: i32, owner: &str, reason: &str, action: HoldAction) -> JobAdvice {
        JobAdvice {
            cluster,
            job: JobId { cluster, proc: 0 },
            owner: Some(owner.into()),
            reason: Some(reason.into()),
            action,
            hold_code: 13,
            hold_subcode: 256,
            held_for_ms: i64::from(cluster),
            ..JobAdvice::of_test_job()
        }
    }

    fn timed_out(url: &str) -> String {
        format!(
            "Transfer input files failure at execution point slot1@e using protocol osdf. Details: Transfer.TimedOut ( URL file = {url} )"
        )
    }

    #[test]
    fn causes_of_one_server_are_one_thing() {
        let igwn = |dir: &str| timed_out(&format!("osdf:///igwn/{dir}/a.dat"));
        let other = timed_out("https://fs1.example/a.dat");
        let advice = [
            held(5, "ada", &igwn("ada"), HoldAction::Release),
            held(1, "bob", &igwn("bob"), HoldAction::Release),
            held(3, "bob", &igwn("bob"), HoldAction::Leave),
            held(9, "eve", &other, HoldAction::Leave),
        ];
        let causes = cause_groups(&advice.iter().collect::<Vec<_>>());
        let things = held_things(&causes);
        let names: Vec<&str> = things.iter().map(|thing| &*thing.thing).collect();
        assert_eq!(names, ["server igwn", "server fs1.example"]);

        let igwn = &things[0];
        assert_eq!((igwn.jobs, igwn.movable, igwn.clusters), (3, 2, 3));
        assert_eq!(igwn.held_for_ms, 3, "the median");
        assert_eq!(igwn.causes.len(), 3);
        let owners: Vec<_> = (igwn.owners.iter())
            .map(|one| (one.owner, one.jobs))
            .collect();
        assert_eq!(owners, [("bob", 2), ("ada", 1)]);
        let answers: Vec<_> = (igwn.answers.iter())
            .map(|answer| (answer.action, answer.jobs))
            .collect();
        assert_eq!(answers, [(HoldAction::Release, 2), (HoldAction::Leave, 1)]);
    }

    #[test]
    fn things_whose_jobs_no_command_moves_come_last() {
        let person = "via condor_hold (by user ada)";
        let left = |cluster| JobAdvice {
            hold_code: 1,
            ..held(cluster, "ada", person, HoldAction::Leave)
        };
        let server = timed_out("https://fs1.example/a.dat");
        let advice = [
            left(1),
            left(2),
            held(3, "ada", &server, HoldAction::Release),
        ];
        let causes = cause_groups(&advice.iter().collect::<Vec<_>>());
        let things = held_things(&causes);
        assert_eq!(things[0].thing, "server fs1.example");
        assert_eq!((things[1].jobs, things[1].movable), (2, 0));
    }
}
