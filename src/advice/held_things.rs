//! Groups held jobs by the thing that failed, such as a server, a full disk or requests that are too small, or by what
//! else they have in common.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::cause_groups::{CauseGroup, may_avoid_machine, settling_jobs};
use super::common_place::CommonPlace;
use super::failed_thing::FailedThing;
use super::held_ids::HeldId;
use super::job_advice::JobAdvice;
use super::job_command::JobId;
use poolcast_base::output;
use poolcast_base::stats::upper_median;
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
    /// The thing or mistake; `None` if the jobs have something else in common.
    #[serde(flatten)]
    pub failed: Option<FailedThing>,
    /// Number of jobs.
    pub jobs: usize,
    /// Number of jobs that its commands move: now, once a job that was tried has succeeded, or once
    /// what failed is fixed.
    pub movable: usize,
    /// Known owners, the owner of the most jobs first.
    pub owners: Vec<JobOwner<'a>>,
    /// Clusters that the jobs belong to.
    pub clusters: usize,
    /// Median duration of the holds, ms.
    pub held_for_ms: i64,
    /// Start of the earliest hold, epoch ms.
    pub held_since_ms: i64,
    /// State of the thing: of the states of its causes, the one with the latest failure; `None` if
    /// none has one.
    pub state: Option<&'a ThingState>,
    /// The answers, the one about the most jobs first.
    pub answers: Vec<ThingAnswer>,
    /// Machine or site where most of the jobs failed.
    #[serde(skip)]
    pub place: Option<CommonPlace>,
    /// The cause of the most jobs, in words.
    #[serde(skip)]
    pub largest_cause: String,
    /// Names of its causes in `groups`, the most urgent first.
    pub causes: Vec<String>,
    /// The advice on its jobs.
    #[serde(skip)]
    pub members: Vec<&'a JobAdvice>,
}

impl HeldThing<'_> {
    /// The answers in capitals, each with the number of its jobs if there are several.
    pub fn answer_cells(&self) -> Vec<String> {
        let is_only = self.answers.len() == 1;
        let cell = |answer: &ThingAnswer| {
            let jobs = output::with_commas(answer.jobs as u64);
            match answer.action {
                HoldAction::Probe if answer.settled_by.is_empty() => format!("TRIED {jobs}"),
                HoldAction::Probe => format!("TRY {} of {jobs}", self.tried_jobs(answer)),
                action if is_only => answer_name(action).to_owned(),
                action => format!("{} {jobs}", answer_name(action)),
            }
        };
        self.answers.iter().map(cell).collect()
    }

    /// Number of the jobs to try among these jobs. Others are among the other jobs of the same thing.
    fn tried_jobs(&self, answer: &ThingAnswer) -> usize {
        let jobs: BTreeSet<JobId> = self.members.iter().map(|one| one.job.id).collect();
        let tried = answer.settled_by.iter().filter(|job| jobs.contains(job));
        tried.count()
    }

    /// The highest probability of success that is stated for one of the jobs; less than 0 if there is none.
    pub fn best_odds(&self) -> f64 {
        let odds = self
            .members
            .iter()
            .filter_map(|one| one.forecast.probability);
        odds.fold(-1.0, f64::max)
    }
}

/// The action in capitals, as in the table of things.
pub fn answer_name(action: HoldAction) -> &'static str {
    match action {
        HoldAction::Release => "RELEASE",
        HoldAction::Probe => "TRY ONE",
        HoldAction::Later => "LATER",
        HoldAction::Fix => "FIX",
        HoldAction::Remove => "REMOVE",
        HoldAction::Leave => "LEAVE",
        HoldAction::None => "NO ADVICE",
    }
}

/// The common property of the jobs of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum HeldGrouping {
    /// The thing that failed, such as a server, a full disk or requests for too little memory
    Thing,
    /// The words of their reasons, and the answer
    Cause,
    /// Their owner: the list of those to write to
    Owner,
    /// Their cluster
    Cluster,
    /// Their hold code
    Code,
}

/// Groups the jobs of `causes`. The jobs that commands move most of come first.
pub fn held_things<'a>(causes: &[CauseGroup<'a>], by: HeldGrouping) -> Vec<HeldThing<'a>> {
    let mut by_key: BTreeMap<String, Vec<JobOfCause<'_, 'a>>> = BTreeMap::new();
    for cause in causes {
        for &advice in &cause.members {
            let job = JobOfCause { cause, advice };
            by_key.entry(job.key(by)).or_default().push(job);
        }
    }
    let mut things: Vec<HeldThing<'a>> = (by_key.into_iter())
        .map(|(key, jobs)| thing_of(&key, &jobs, by))
        .collect();
    things.sort_by_key(|thing| Reverse((thing.movable, thing.jobs)));
    things
}

/// A job with its cause.
#[derive(Debug, Clone, Copy)]
struct JobOfCause<'g, 'a> {
    cause: &'g CauseGroup<'a>,
    advice: &'a JobAdvice,
}

impl JobOfCause<'_, '_> {
    /// Returns what the job has in common with others. It is shown, but for causes and owners.
    fn key(&self, by: HeldGrouping) -> String {
        let JobOfCause { cause, advice } = self;
        match by {
            HeldGrouping::Thing => cause.thing.clone(),
            HeldGrouping::Cause => cause.cause.clone(),
            HeldGrouping::Owner => advice.job.owner.as_deref().unwrap_or_default().to_owned(),
            HeldGrouping::Cluster => format!("cluster {} {}", advice.job.id.cluster, advice.job.ap),
            HeldGrouping::Code => format!("{}/{}", advice.hold.code, advice.hold.subcode),
        }
    }
}

fn thing_of<'a>(key: &str, jobs: &[JobOfCause<'_, 'a>], by: HeldGrouping) -> HeldThing<'a> {
    let members: Vec<&'a JobAdvice> = jobs.iter().map(|job| job.advice).collect();
    let mut causes: Vec<(&CauseGroup<'a>, usize)> = Vec::new();
    for job in jobs {
        match causes.last_mut() {
            Some((cause, count)) if cause.cause == job.cause.cause => *count += 1,
            _ => causes.push((job.cause, 1)),
        }
    }
    let largest = causes.iter().max_by_key(|(_, count)| *count);
    let words = largest.map_or("", |(cause, _)| cause.words.as_str());
    let clusters: BTreeSet<(&str, i32)> = (members.iter())
        .map(|one| (one.job.ap.as_str(), one.job.id.cluster))
        .collect();
    let elsewhere: Vec<&JobAdvice> = (members.iter().copied())
        .filter(|one| may_avoid_machine(one))
        .collect();
    let named: Vec<HeldId> = elsewhere.iter().map(|one| one.held_id()).collect();
    let since = members.iter().map(|one| one.hold.since_ms);
    let states = causes.iter().filter_map(|(cause, _)| cause.state);
    HeldThing {
        thing: title_of(key, jobs, words, by),
        failed: (by == HeldGrouping::Thing).then(|| jobs[0].cause.failed.clone()),
        jobs: members.len(),
        movable: members.iter().filter(|one| is_movable(one)).count(),
        owners: owners_by_jobs(&members),
        clusters: clusters.len(),
        held_for_ms: median(members.iter().map(|one| one.hold.for_ms)),
        held_since_ms: since.min().unwrap_or(0),
        state: states.max_by_key(|state| state.last_failure_ms),
        answers: answers_of(&members),
        place: CommonPlace::find(&elsewhere, &named),
        largest_cause: words.to_owned(),
        causes: causes
            .iter()
            .map(|(cause, _)| cause.cause.clone())
            .collect(),
        members,
    }
}

/// Returns the name of a row: the key, and, where that is no thing, the thing of most of its `jobs`.
fn title_of(key: &str, jobs: &[JobOfCause<'_, '_>], words: &str, by: HeldGrouping) -> String {
    let mut things: BTreeMap<&str, usize> = BTreeMap::new();
    for job in jobs {
        *things.entry(&job.cause.thing).or_default() += 1;
    }
    let largest = things.iter().max_by_key(|(_, count)| **count);
    let largest = largest.map_or("", |(thing, _)| thing);
    let most = match things.len() - 1 {
        0 => largest.to_owned(),
        others => format!("{largest} +{others}"),
    };
    match by {
        HeldGrouping::Thing => key.to_owned(),
        HeldGrouping::Cause => words.to_owned(),
        HeldGrouping::Owner => most,
        HeldGrouping::Cluster => format!("cluster {}: {most}", jobs[0].advice.job.id.cluster),
        HeldGrouping::Code => format!("{key} {most}"),
    }
}

/// Returns true if a command moves the job: now, as soon as a probe has succeeded, or once what failed is fixed.
fn is_movable(advice: &JobAdvice) -> bool {
    match advice.verdict.action {
        HoldAction::Release | HoldAction::Remove => advice.verdict.command.is_some(),
        HoldAction::Probe => !advice.verdict.settled_by.is_empty(),
        HoldAction::Fix => advice.verdict.then.is_some(),
        HoldAction::Later | HoldAction::Leave | HoldAction::None => false,
    }
}

/// Returns the known owners of `members`, the owner of the most jobs first.
pub(super) fn owners_by_jobs<'a>(members: &[&'a JobAdvice]) -> Vec<JobOwner<'a>> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for owner in members.iter().filter_map(|one| one.job.owner.as_deref()) {
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
        let alike = || members.iter().filter(|one| one.verdict.action == action);
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
    upper_median(&values).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::cause_groups::cause_groups;
    use super::super::job_advice::JobAdvice;
    use super::*;

    /// Returns the advice on a job of `owner` that is held with `reason` for `held_for_ms`.
    fn held(cluster: i32, owner: &str, reason: &str, action: HoldAction) -> JobAdvice {
        JobAdvice::of_test_job().with(|one| {
            one.job.id = JobId { cluster, proc: 0 };
            one.job.owner = Some(owner.into());
            one.hold.reason = Some(reason.into());
            one.verdict.action = action;
            one.hold.code = 13;
            one.hold.subcode = 256;
            one.hold.for_ms = i64::from(cluster);
        })
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
        let things = held_things(&causes, HeldGrouping::Thing);
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
    fn jobs_are_grouped_by_owner_cluster_and_code() {
        let server = timed_out("https://fs1.example/a.dat");
        let person = "via condor_hold (by user ada)";
        let advice = [
            held(1, "ada", &server, HoldAction::Release),
            held(1, "bob", &server, HoldAction::Release),
            held(2, "ada", person, HoldAction::Release).with(|one| {
                one.hold.code = 1;
                one.hold.subcode = 0;
            }),
        ];
        let causes = cause_groups(&advice.iter().collect::<Vec<_>>());
        let rows = |by| -> Vec<(String, usize)> {
            let things = held_things(&causes, by).into_iter();
            things.map(|thing| (thing.thing, thing.jobs)).collect()
        };
        let row = |title: &str, jobs| (title.to_owned(), jobs);
        assert_eq!(
            rows(HeldGrouping::Owner),
            [
                row("server fs1.example +1", 2),
                row("server fs1.example", 1)
            ]
        );
        assert_eq!(
            rows(HeldGrouping::Cluster),
            [
                row("cluster 1: server fs1.example", 2),
                row("cluster 2: held by a person", 1)
            ]
        );
        assert_eq!(
            rows(HeldGrouping::Code),
            [
                row("13/256 server fs1.example", 2),
                row("1/0 held by a person", 1)
            ]
        );
        assert_eq!(rows(HeldGrouping::Cause)[0].0, "fs1.example: timed out");
    }

    #[test]
    fn things_whose_jobs_no_command_moves_come_last() {
        let person = "via condor_hold (by user ada)";
        let left =
            |cluster| held(cluster, "ada", person, HoldAction::Leave).with(|one| one.hold.code = 1);
        let server = timed_out("https://fs1.example/a.dat");
        let advice = [
            left(1),
            left(2),
            held(3, "ada", &server, HoldAction::Release),
        ];
        let causes = cause_groups(&advice.iter().collect::<Vec<_>>());
        let things = held_things(&causes, HeldGrouping::Thing);
        assert_eq!(things[0].thing, "server fs1.example");
        assert_eq!((things[1].jobs, things[1].movable), (2, 0));
    }
}
