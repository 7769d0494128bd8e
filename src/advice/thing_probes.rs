//! Names the jobs to try for each thing: one or two for all of its causes, whose outcome settles the others.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use super::failed_thing::FailedThing;
use super::job_advice::JobAdvice;
use super::job_command::JobId;
use super::probe_result::ProbeState;
use poolcast_base::parallel::map_items;
use poolcast_base::shared_text::SharedText;
use poolcast_holds::decision::{HoldAction, ProbeCause, probe_count};

/// The kind of all probes of things, beside the kinds of causes.
const PROBE_OF_THING: u8 = u8::MAX;

/// The jobs that one probe settles.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct SettledJobs {
    ap: SharedText,
    failed: FailedThing,
    /// Of a mistake, each owner has a probe; absent for other things.
    owner: Option<SharedText>,
    /// Where owners make mistakes and are unknown, each cluster may be of another one.
    cluster: Option<i32>,
}

impl SettledJobs {
    fn of(advice: &JobAdvice) -> Option<SettledJobs> {
        if advice.verdict.action != HoldAction::Probe {
            return None;
        }
        let failed = FailedThing::new(advice, &advice.reason_facts(), advice.verdict.action);
        let is_of_owner = failed.is_of_each_owner();
        let owner = advice.job.owner.clone().filter(|_| is_of_owner);
        Some(SettledJobs {
            ap: advice.job.ap.clone(),
            cluster: (is_of_owner && owner.is_none()).then_some(advice.job.id.cluster),
            failed,
            owner,
        })
    }

    fn key(&self) -> ProbeCause {
        let mut hasher = twox_hash::XxHash3_64::default();
        self.hash(&mut hasher);
        (PROBE_OF_THING, hasher.finish())
    }
}

/// Leaves a command to one or two of the jobs with the answer to try one, for each thing that failed, and says for
/// the others which jobs these are. While the outcome of one is awaited, no other has a command.
pub fn name_probes_of_things(all: &mut [JobAdvice]) {
    let read = map_items(all, SettledJobs::of);
    let mut settled: BTreeMap<SettledJobs, Vec<usize>> = BTreeMap::new();
    for (at, jobs) in read.into_iter().enumerate() {
        if let Some(jobs) = jobs {
            settled.entry(jobs).or_default().push(at);
        }
    }
    for (jobs, members) in settled {
        let tries = tries_among(all, &members);
        let settled_by: Arc<[JobId]> = tries.iter().copied().collect();
        for at in members {
            let advice = &mut all[at];
            advice.verdict.command = advice
                .verdict
                .command
                .take()
                .filter(|_| tries.contains(&advice.job.id));
            advice.verdict.settled_by = Arc::clone(&settled_by);
            advice.verdict.probe_cause = Some(jobs.key());
        }
    }
}

/// Returns the jobs to release among the jobs at `members`: those with the best odds, of two causes if possible.
fn tries_among(all: &[JobAdvice], members: &[usize]) -> Vec<JobId> {
    let jobs = || members.iter().map(|&at| &all[at]);
    let is_awaited = jobs()
        .flat_map(|one| one.forecast.probes.iter())
        .any(|probe| probe.state == ProbeState::Open);
    if is_awaited {
        return Vec::new();
    }
    let mut candidates: Vec<&JobAdvice> =
        jobs().filter(|one| one.verdict.command.is_some()).collect();
    let odds = |one: &JobAdvice| one.forecast.probability.unwrap_or(-1.0);
    candidates.sort_by(|a, b| odds(b).total_cmp(&odds(a)).then(a.job.id.cmp(&b.job.id)));
    let Some(first) = candidates.first() else {
        return Vec::new();
    };
    let is_other = |one: &&&JobAdvice| {
        (one.verdict.probe_cause, one.job.id.cluster)
            != (first.verdict.probe_cause, first.job.id.cluster)
    };
    let second = candidates.iter().find(is_other).or(candidates.get(1));
    let mut tries = vec![first.job.id];
    tries.extend(
        second
            .map(|one| one.job.id)
            .filter(|_| probe_count(members.len()) > 1),
    );
    tries.sort_unstable();
    tries
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the advice on a job of `cluster` and `owner` that timed out at `url`, to be tried.
    fn to_try(cluster: i32, owner: &str, reason: &str, probability: f64) -> JobAdvice {
        let mut advice = JobAdvice::of_test_job().with(|one| {
            one.verdict.action = HoldAction::Probe;
            one.job.id = JobId { cluster, proc: 0 };
            one.hold.code = 13;
            one.hold.subcode = 256;
            one.hold.reason = Some(reason.into());
            one.forecast.probability = Some(probability);
            one.verdict.probe_cause = Some((0, cluster as u64));
        });
        advice.set_owner(Some(owner.into()));
        advice
    }

    fn timed_out(url: &str) -> String {
        format!(
            "Transfer input files failure at execution point slot1@e using protocol osdf. Details: Transfer.TimedOut ( URL file = {url} )"
        )
    }

    fn with_commands(all: &[JobAdvice]) -> Vec<i32> {
        let named = all.iter().filter(|one| one.verdict.command.is_some());
        named.map(|one| one.job.id.cluster).collect()
    }

    #[test]
    fn one_probe_settles_all_causes_of_a_server() {
        let url = |n: i32| timed_out(&format!("osdf:///igwn/owner{n}/a.dat"));
        let mut all: Vec<JobAdvice> = (1..6)
            .map(|n| to_try(n, &format!("owner{n}"), &url(n), f64::from(n) / 10.0))
            .collect();
        name_probes_of_things(&mut all);
        assert_eq!(with_commands(&all), [5], "the best odds");
        assert!(
            all.iter()
                .all(|one| one.verdict.settled_by[..] == [all[4].job.id])
        );
        let cause = all[0].probe_key();
        assert!(all.iter().all(|one| one.probe_key() == cause));

        let mut many: Vec<JobAdvice> = (1..7)
            .map(|n| to_try(n, "ada", &url(n), f64::from(n) / 10.0))
            .collect();
        name_probes_of_things(&mut many);
        assert_eq!(with_commands(&many), [5, 6]);
    }

    #[test]
    fn owners_with_mistakes_of_their_own_have_probes_of_their_own() {
        let policy = "The job attribute OnExitHold expression '(ExitCode != 0)' evaluated to TRUE";
        let mut all: Vec<JobAdvice> = [(1, "ada"), (2, "ada"), (3, "bob")]
            .map(|(cluster, owner)| {
                to_try(cluster, owner, policy, 0.5).with(|one| {
                    one.hold.code = 3;
                    one.hold.subcode = 2;
                })
            })
            .into();
        name_probes_of_things(&mut all);
        assert_eq!(with_commands(&all), [1, 3]);
    }

    #[test]
    fn no_job_is_named_while_an_outcome_is_awaited() {
        let reason = timed_out("osdf:///igwn/ada/a.dat");
        let mut all: Vec<JobAdvice> = (1..4).map(|n| to_try(n, "ada", &reason, 0.5)).collect();
        all[2].forecast.probes = [super::super::probe_result::ProbeResult {
            job: all[2].job.id,
            released_ms: 0,
            state: ProbeState::Open,
        }]
        .into();
        name_probes_of_things(&mut all);
        assert_eq!(with_commands(&all), [0; 0]);
        assert!(all.iter().all(|one| one.verdict.settled_by.is_empty()));
    }
}
