//! Groups advice by cause: jobs that are held for the same reason and get the same answer. Each
//! group gets one command for all of its jobs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use htcondor_holdreasons::rules::{Party, rule_for};
use htcondor_holdreasons::{Outcome, Thing};
use serde::Serialize;

use super::cause_words::{cause_words, with_shared_numbers, without_numbers};
use super::common_place::CommonPlace;
use super::failed_thing::FailedThing;
use super::held_ids::{HeldCommand, HeldId};
use super::job_advice::{AdviceGround, JobAdvice};
use super::job_command::{JobId, RaisedRequest};
use super::look::job_look::{JobLook, LookState};
use super::memory_plan::MemoryPlan;
use super::probe_result::ProbeResult;
use super::thing_words::{settling_words, thing_name};
use poolcast_base::shared_text::NumberedText;
use poolcast_holds::answers::ThingState;
use poolcast_holds::decision::{AnswerFirmness, HoldAction, answer_rank};

/// Jobs that are held for one cause and get one answer.
#[derive(Debug, Clone, Serialize)]
pub struct CauseGroup<'a> {
    /// Short name for `--cause`. It stays the same as long as the cause and the answer do.
    pub cause: String,
    /// The access point of the jobs.
    pub ap: &'a str,
    /// The action for all of the jobs: for a probe, release the jobs in `command`, then ask again.
    pub action: HoldAction,
    /// Certainty of the action; absent where rules decide, for a probe, and without advice.
    pub firmness: Option<AnswerFirmness>,
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// Short description of the cause, from the hold reasons, or else from the hold code. `#` stands for
    /// numbers that differ between the jobs.
    pub words: String,
    /// The name of the thing that failed, which other causes may share.
    pub thing: String,
    /// The thing or mistake behind the cause.
    #[serde(skip)]
    pub failed: FailedThing,
    /// The ids of the jobs.
    pub jobs: Vec<JobId>,
    /// The advice on the jobs.
    #[serde(skip)]
    pub members: Vec<&'a JobAdvice>,
    /// The jobs whose release settles the answer for all: these or others of the thing. Empty unless the answer
    /// is to try one, and while the outcome of a released job is awaited.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub settled_by: Vec<JobId>,
    /// Clusters that the jobs belong to.
    pub clusters: usize,
    /// Known owners of the jobs.
    pub owners: BTreeSet<&'a str>,
    /// Lowest and highest probability of success; absent if none of the jobs has one.
    pub odds: Option<(f64, f64)>,
    /// Results of the last probes of the cause, by job.
    pub probes: Vec<ProbeResult>,
    /// The first look at the file of one of the jobs that shows its state; absent without one.
    pub look: Option<&'a JobLook>,
    /// Number of files of the jobs for which looks have shown the same state.
    pub looked_files: usize,
    /// True if looks decide on the jobs, and odds do not.
    #[serde(skip)]
    pub is_by_look: bool,
    /// Memory plans of the batches of the jobs, the plan of most jobs first; empty unless they are
    /// held for memory and enough is known.
    pub memory_plans: Vec<&'a MemoryPlan>,
    /// State of the thing that the latest hold is for, among the holds with a known state; absent
    /// without one.
    pub state: Option<&'a ThingState>,
    /// The name of what that is the state of.
    #[serde(skip)]
    pub state_of: Option<String>,
    /// True if the answer would be a release or a probe if more outcomes of the owners were known.
    #[serde(skip)]
    pub lacks_outcomes: bool,
    /// True if the odds follow from outcomes at other access points.
    #[serde(skip)]
    pub is_known_from_elsewhere: bool,
    /// Statement of the reason of the jobs and what mends it, with the job whose reason it is if others
    /// name other things; absent if their reasons do not decide.
    #[serde(skip)]
    pub stated: Option<String>,
    /// True if the previous group is of the same kind, at another access point.
    #[serde(skip)]
    pub is_like_last: bool,
    /// Start of the earliest hold in the group, epoch ms.
    pub held_since_ms: i64,
    /// Start of the latest hold in the group, epoch ms.
    pub held_last_ms: i64,
    /// Request to set for all jobs: the highest that any of them needs. Each other job of the group
    /// needs more than half of it.
    pub raise: Option<RaisedRequest>,
    /// Command to type now, for all jobs.
    pub command: Option<HeldCommand>,
    /// Command to type once the fault is fixed or has passed.
    pub then: Option<HeldCommand>,
    /// Machine or site where most of the jobs failed, unless a repair of theirs mends them.
    #[serde(skip)]
    pub place: Option<CommonPlace>,
    /// The jobs' nodes of a DAG, by name.
    #[serde(skip)]
    pub dag_nodes: BTreeSet<&'a str>,
    /// Command that removes the jobs, if they may have to be submitted again.
    #[serde(skip)]
    pub removal: Option<HeldCommand>,
}

impl CauseGroup<'_> {
    /// Says why there is no command for the jobs; `None` if nothing is known.
    pub fn why_no_command(&self) -> Option<String> {
        match (self.action, &self.settled_by[..]) {
            (HoldAction::Probe, []) => Some("wait for the outcome of a released job".to_owned()),
            (HoldAction::Probe, settling) => Some(settling_words(settling)),
            _ => {
                let first = self.members.first()?;
                first.verdict.reasons.first().map(ToString::to_string)
            }
        }
    }

    /// Rewrites `command`, one of the group's, so that it gets the job ids from `call`, which
    /// repeats the advice; `None` if it has no constraint to replace.
    pub fn command_with_ids_of(&self, call: &str, command: &HeldCommand) -> Option<String> {
        command.with_ids_of(&format!("{call} --cause {} --ids", self.cause))
    }
}

/// The key by which jobs are grouped. Its order breaks ties between groups of equal rank and size.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
struct CauseKey {
    rank: u8,
    ap: String,
    hold_code: i32,
    hold_subcode: i32,
    /// The cause in words, with each number replaced by `#`.
    words: String,
    failed: FailedThing,
    /// Binary logarithm of the raised request, rounded up; 0 without a request.
    raise_class: u32,
    /// State of the job's file, if a look at it decides. Jobs whose files differ get two commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    look: Option<LookState>,
}

/// Groups the advice in `chosen`, sorted by urgency and then by descending number of jobs. The groups of one kind
/// at several access points follow each other.
pub fn cause_groups<'a>(chosen: &[&'a JobAdvice]) -> Vec<CauseGroup<'a>> {
    // A reason is read once for each job: its words make the key, and are shared with the other jobs.
    let mut by_cause: BTreeMap<CauseKey, (String, Vec<&'a JobAdvice>)> = BTreeMap::new();
    for advice in chosen {
        let cause = StatedCause::read(advice);
        let (shared, jobs) = by_cause.entry(cause_key(advice, &cause)).or_default();
        *shared = if jobs.is_empty() {
            cause.words
        } else {
            with_shared_numbers(shared, &cause.words)
        };
        jobs.push(advice);
    }

    let mut by_kind: BTreeMap<CauseKey, Vec<CauseGroup<'a>>> = BTreeMap::new();
    for (key, (words, mut jobs)) in by_cause {
        jobs.sort_by_key(|advice| advice.job.id);
        let group = group_of(&key, words, &jobs);
        let ap = String::new();
        by_kind
            .entry(CauseKey { ap, ..key })
            .or_default()
            .push(group);
    }

    let mut kinds: Vec<Vec<CauseGroup<'a>>> = by_kind.into_values().collect();
    for groups in &mut kinds {
        groups.sort_by_key(|group| Reverse(group.jobs.len()));
        for other in &mut groups[1..] {
            other.is_like_last = true;
        }
    }
    kinds.sort_by_key(|groups| {
        let rank = answer_rank(groups[0].action, groups[0].firmness);
        let jobs: usize = groups.iter().map(|group| group.jobs.len()).sum();
        (rank, Reverse(jobs))
    });
    kinds.into_iter().flatten().collect()
}

/// Returns the name of the group that `advice` belongs to.
pub fn cause_name(advice: &JobAdvice) -> String {
    name_of(&cause_key(advice, &StatedCause::read(advice)))
}

/// Returns true if `advice` belongs to one of the groups in `names`, or belonged to it before its file
/// was repaired: a command that asks for the jobs of a group is typed once they are fixed.
pub fn has_cause_name(advice: &JobAdvice, names: &[String]) -> bool {
    let key = cause_key(advice, &StatedCause::read(advice));
    let is_named = |key: &CauseKey| names.contains(&name_of(key));
    let is_in_order = advice.verdict.look.as_ref().is_some_and(|look| {
        // A file repaired within the slack of the clocks is found unchanged.
        matches!(
            look.state,
            LookState::Changed | LookState::Unchanged | LookState::HasRoom
        )
    });
    let before = || {
        let cause = StatedCause::with_answer(advice, HoldAction::Fix);
        keys_before_repair(&cause_key(advice, &cause))
    };
    is_named(&key) || is_in_order && before().iter().any(is_named)
}

/// Returns the keys that the group of `key` may have had before the file of its jobs was repaired.
fn keys_before_repair(key: &CauseKey) -> Vec<CauseKey> {
    let mut keys = Vec::new();
    for state in [
        LookState::Missing,
        LookState::NoDirectory,
        LookState::NotAllowed,
        LookState::Full,
    ] {
        for firmness in [AnswerFirmness::Firm, AnswerFirmness::Probable] {
            keys.push(CauseKey {
                rank: answer_rank(HoldAction::Fix, Some(firmness)),
                look: Some(state),
                ..key.clone()
            });
        }
    }
    keys
}

fn name_of(key: &CauseKey) -> String {
    let text = serde_json::to_string(key).unwrap_or_default();
    let hash = twox_hash::XxHash3_64::oneshot(text.as_bytes());
    format!("{:06x}", hash >> 40)
}

/// The cause of one hold.
struct StatedCause {
    words: String,
    failed: FailedThing,
}

impl StatedCause {
    /// Reads the cause of the hold from its reason if there is one, or else from its code.
    fn read(advice: &JobAdvice) -> StatedCause {
        StatedCause::with_answer(advice, advice.verdict.action)
    }

    /// Reads the cause like [`StatedCause::read`], as it is if `action` is the answer.
    fn with_answer(advice: &JobAdvice, action: HoldAction) -> StatedCause {
        let facts = advice.reason_facts();
        let is_by_code =
            is_cause_given_by_code(advice) || advice.hold.reason.as_ref().is_none_or(is_empty);
        StatedCause {
            words: if is_by_code {
                code_words(advice)
            } else {
                cause_words(&facts)
            },
            failed: FailedThing::new(advice, &facts, action),
        }
    }
}

fn is_empty(reason: &NumberedText) -> bool {
    reason.to_string().is_empty()
}

/// Describes the cause of a hold, by its reason if there is one, or else by its code.
pub fn shown_cause(advice: &JobAdvice) -> String {
    StatedCause::read(advice).words
}

/// Describes the cause in few words, without its reason.
fn code_words(advice: &JobAdvice) -> String {
    let words = match (advice.hold.stated.thing, advice.hold.stated.outcome) {
        (Thing::Cpus, Outcome::Exceeded) => "more CPUs than requested",
        (Thing::Memory, Outcome::Exceeded) => "more memory than requested",
        (Thing::Disk, Outcome::Exceeded) => "more disk than requested",
        _ if advice.hold.code == 1 => "held by a person",
        _ => &advice.hold.meaning,
    };
    words.to_owned()
}

/// Returns true if the code alone identifies the cause. A different person who holds a job, or a
/// different amount of memory used, does not make another cause.
fn is_cause_given_by_code(advice: &JobAdvice) -> bool {
    let is_resource = matches!(
        advice.hold.stated.thing,
        Thing::Memory | Thing::Disk | Thing::Cpus
    );
    let is_raise = is_resource && advice.hold.stated.outcome == Outcome::Exceeded;
    // The subcodes of an execution point's policy are of its own making.
    is_raise && advice.hold.code == 34 || matches!(advice.hold.code, 1 | 15 | 16 | 46 | 47)
}

/// Returns the key of `advice`, which has this `cause`.
fn cause_key(advice: &JobAdvice, cause: &StatedCause) -> CauseKey {
    let raise_class = advice
        .verdict
        .raise
        .map_or(0, |raise| raise.number.next_power_of_two().trailing_zeros());
    CauseKey {
        rank: answer_rank(advice.verdict.action, advice.verdict.firmness),
        ap: advice.job.ap.as_str().to_owned(),
        hold_code: advice.hold.code,
        hold_subcode: advice.hold.subcode,
        words: without_numbers(&cause.words),
        failed: cause.failed.clone(),
        raise_class,
        look: deciding_look(advice).map(|look| look.state),
    }
}

/// Returns the look that decides on a job.
fn deciding_look(advice: &JobAdvice) -> Option<&JobLook> {
    let is_by_look = advice.verdict.ground == AdviceGround::Look;
    advice.verdict.look.as_deref().filter(|_| is_by_look)
}

fn group_of<'a>(key: &CauseKey, words: String, jobs: &[&'a JobAdvice]) -> CauseGroup<'a> {
    let first = jobs[0];
    let clusters: BTreeSet<i32> = jobs.iter().map(|advice| advice.job.id.cluster).collect();
    let since = jobs.iter().map(|advice| advice.hold.since_ms);
    let raises = jobs.iter().filter_map(|advice| advice.verdict.raise);
    let raise = raises.max_by_key(|raise| raise.number);

    let named = jobs.iter().filter(|advice| is_named(advice));
    let named: Vec<HeldId> = named.map(|advice| advice.held_id()).collect();
    let (command, then) = commands(first, raise, &named);

    let with_state = jobs.iter().filter(|advice| advice.forecast.state.is_some());
    let last_known = with_state.max_by_key(|advice| advice.hold.since_ms);
    let state = last_known.and_then(|advice| advice.forecast.state.as_deref());
    let (look, looked_files) = looks_of(jobs);
    let owners = jobs.iter().filter_map(|advice| advice.job.owner.as_deref());
    CauseGroup {
        cause: name_of(key),
        ap: &first.job.ap,
        action: first.verdict.action,
        firmness: first.verdict.firmness,
        hold_code: first.hold.code,
        hold_subcode: first.hold.subcode,
        words,
        thing: key.failed.to_string(),
        failed: key.failed.clone(),
        jobs: jobs.iter().map(|advice| advice.job.id).collect(),
        members: jobs.to_vec(),
        settled_by: settling_jobs(jobs.iter().copied()),
        clusters: clusters.len(),
        owners: owners.collect(),
        odds: odds_range(jobs),
        probes: probe_results(jobs),
        look,
        looked_files,
        is_by_look: key.look.is_some(),
        memory_plans: memory_plans_of(jobs),
        state,
        state_of: last_known
            .zip(state)
            .map(|(advice, state)| thing_name(advice, state.kind)),
        lacks_outcomes: jobs.iter().all(|advice| advice.verdict.lacks_outcomes),
        is_known_from_elsewhere: jobs
            .iter()
            .all(|advice| advice.forecast.is_known_from_elsewhere),
        stated: stated_words(jobs),
        is_like_last: false,
        held_since_ms: since.clone().min().unwrap_or(0),
        held_last_ms: since.max().unwrap_or(0),
        raise,
        command,
        then,
        dag_nodes: (jobs.iter())
            .filter_map(|advice| advice.job.dag_node.as_deref())
            .collect(),
        place: may_avoid_machine(first)
            .then(|| CommonPlace::find(jobs, &named))
            .flatten(),
        removal: removal(first, &named),
    }
}

/// The command that removes jobs which a new submission may have to replace, with the answer of `first`.
fn removal(first: &JobAdvice, jobs: &[HeldId]) -> Option<HeldCommand> {
    let verdict = &first.verdict;
    let may_be_replaced = verdict.may_need_new_submission && verdict.action == HoldAction::Fix;
    let command = may_be_replaced.then(|| HeldCommand::new("condor_rm", jobs, ""));
    command.flatten()
}

/// Returns true if jobs with the answer of `advice` may succeed on another machine without a repair.
pub(super) fn may_avoid_machine(advice: &JobAdvice) -> bool {
    let needs_repair = matches!(
        advice.verdict.action,
        HoldAction::Fix | HoldAction::Remove | HoldAction::Leave
    );
    let is_of_machine = rule_for(advice.hold.stated)
        .is_none_or(|rule| matches!(rule.fault, Party::Machine | Party::UserOrMachine));
    !needs_repair && is_of_machine
}

/// Returns what the reason of the first of `jobs` states, if it decides.
fn stated_words(jobs: &[&JobAdvice]) -> Option<String> {
    // A look may have answered since the reason was read.
    let first = jobs.first()?;
    let decides = first.verdict.is_reason_read && first.verdict.ground == AdviceGround::Rule;
    if !decides {
        return None;
    }
    let stated = first.verdict.reasons.first()?;
    let is_of_all = jobs
        .iter()
        .all(|advice| advice.verdict.reasons.first() == Some(stated));
    Some(if is_of_all {
        stated.to_string()
    } else {
        format!("{}: {stated}", first.job.id)
    })
}

/// Returns the lowest and the highest of the probabilities that are stated for `jobs`.
fn odds_range(jobs: &[&JobAdvice]) -> Option<(f64, f64)> {
    let odds = jobs.iter().filter_map(|advice| advice.forecast.probability);
    let lowest = odds.clone().min_by(f64::total_cmp);
    lowest.zip(odds.max_by(f64::total_cmp))
}

/// Returns the first look that shows the state of the file of one of `jobs`, and the number of their
/// files in that state. Looks that decide on the jobs of a group have all shown the same.
fn looks_of<'a>(jobs: &[&'a JobAdvice]) -> (Option<&'a JobLook>, usize) {
    let verdicts = jobs.iter().map(|advice| &advice.verdict);
    let looks = verdicts.filter_map(|verdict| verdict.look.as_deref());
    let mut telling = looks.filter(|look| look.state != LookState::Unknown);
    let first = telling.next();
    let alike = first.into_iter().chain(telling);
    let alike = alike.filter(|look| first.is_some_and(|first| first.state == look.state));
    let files: BTreeSet<&str> = alike.map(|look| look.path.as_str()).collect();
    (first, files.len())
}

/// Returns the memory plans of `jobs`, the plan of most jobs first.
fn memory_plans_of<'a>(jobs: &[&'a JobAdvice]) -> Vec<&'a MemoryPlan> {
    let mut plans: Vec<(&MemoryPlan, usize)> = Vec::new();
    for plan in jobs
        .iter()
        .filter_map(|advice| advice.verdict.memory_plan.as_deref())
    {
        match plans
            .iter_mut()
            .find(|(other, _)| std::ptr::eq(*other, plan))
        {
            Some((_, count)) => *count += 1,
            None => plans.push((plan, 1)),
        }
    }
    plans.sort_by_key(|(_, count)| Reverse(*count));
    plans.into_iter().map(|(plan, _)| plan).collect()
}

/// Returns the results of probes that `jobs` have in their advice, the last one of each probe.
fn probe_results(jobs: &[&JobAdvice]) -> Vec<ProbeResult> {
    let mut by_job: BTreeMap<JobId, ProbeResult> = BTreeMap::new();
    for &probe in jobs.iter().flat_map(|advice| &*advice.forecast.probes) {
        let last = by_job.entry(probe.job).or_insert(probe);
        *last = probe.max(*last);
    }
    by_job.into_values().collect()
}

/// Returns the jobs whose release settles the answers for `jobs`.
pub(super) fn settling_jobs<'a>(jobs: impl Iterator<Item = &'a JobAdvice>) -> Vec<JobId> {
    let settling = jobs.flat_map(|advice| advice.verdict.settled_by.iter().copied());
    settling.collect::<BTreeSet<JobId>>().into_iter().collect()
}

/// Returns true if commands name the job. Of the jobs of a probed cause, they name the probes alone.
fn is_named(advice: &JobAdvice) -> bool {
    advice.verdict.action != HoldAction::Probe || advice.verdict.command.is_some()
}

/// Returns the commands for now and for later, on `jobs`, which are sorted. `first` is any job of the
/// group, and `raise` the request that its jobs should have.
fn commands(
    first: &JobAdvice,
    raise: Option<RaisedRequest>,
    jobs: &[HeldId],
) -> (Option<HeldCommand>, Option<HeldCommand>) {
    let release = || HeldCommand::new("condor_release", jobs, "");
    let is_released = first.verdict.then.is_some();
    match first.verdict.action {
        HoldAction::Release | HoldAction::Probe => (release(), None),
        HoldAction::Remove => (HeldCommand::new("condor_rm", jobs, ""), None),
        HoldAction::Fix => {
            let command = match raise {
                Some(raise) => HeldCommand::new("condor_qedit", jobs, &raise.arguments()),
                None => HeldCommand::look(jobs),
            };
            (command, release().filter(|_| is_released))
        }
        HoldAction::Later | HoldAction::Leave if is_released => (None, release()),
        HoldAction::Later | HoldAction::Leave | HoldAction::None => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::job_queue::JobQueue;
    use super::super::test_queue::{QueuedTestJob, affected};
    use super::*;
    use poolcast_base::shared_text::SharedText;
    use poolcast_holds::answers::ThingKind;
    use proptest::prelude::*;
    use serde_json::json;

    /// Returns the advice on two jobs that are held for one cause, the second one later.
    fn two_held_jobs() -> Vec<JobAdvice> {
        let queue = r#"[
            {"ClusterId": 7, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 13, "HoldReasonSubCode": 2, "EnteredCurrentStatus": 100},
            {"ClusterId": 7, "ProcId": 1, "JobStatus": 5, "HoldReasonCode": 13, "HoldReasonSubCode": 2, "EnteredCurrentStatus": 200}]"#;
        let queue = JobQueue::read(queue.as_bytes()).expect("a queue");
        queue.correct(Vec::new(), "ap", 300_000).0
    }

    fn groups_of(advice: &[JobAdvice]) -> Vec<CauseGroup<'_>> {
        let chosen: Vec<&JobAdvice> = advice.iter().collect();
        cause_groups(&chosen)
    }

    #[test]
    fn state_of_a_group_is_that_of_its_latest_hold_with_a_state() {
        let mut advice = two_held_jobs();
        for one in &mut advice {
            one.hold.reason = Some("reading from file /in/a.dat: (errno 2)".into());
        }
        let name = |advice: &[JobAdvice]| groups_of(advice)[0].state_of.clone();
        assert_eq!(name(&advice), None);
        assert!(groups_of(&advice)[0].state.is_none());

        let state = |successes_since| {
            Some(Arc::new(ThingState {
                kind: ThingKind::File,
                last_failure_ms: 200_000,
                successes_since,
                owners_since: 0,
                by_hand_of: None,
                success_lower: None,
                reads_since: 0,
            }))
        };
        advice[0].forecast.state = state(1);
        assert_eq!(name(&advice).as_deref(), Some("/in/a.dat"));
        advice[1].forecast.state = state(2);
        let groups = groups_of(&advice);
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].state.map(|state| state.successes_since), Some(2));
    }

    #[test]
    fn reason_of_jobs_that_a_look_decides_is_not_stated() {
        let mut advice = two_held_jobs();
        for one in &mut advice {
            one.verdict.is_reason_read = true;
            one.verdict.reasons = [SharedText::from("/in/a.dat does not exist")].into();
            one.verdict.ground = AdviceGround::Rule;
        }
        let stated = groups_of(&advice)[0].stated.clone();
        assert_eq!(stated.as_deref(), Some("/in/a.dat does not exist"));
        for one in &mut advice {
            one.verdict.ground = AdviceGround::Look;
        }
        assert_eq!(groups_of(&advice)[0].stated, None);
    }

    #[test]
    fn group_of_several_missing_files_names_none_of_them() {
        let mut advice = two_held_jobs();
        let mut words_of = |files: [&str; 2]| {
            for (one, file) in advice.iter_mut().zip(files) {
                let error = "(errno 2) No such file or directory";
                one.hold.reason =
                    Some(format!("reading from file {file}: {error}").as_str().into());
            }
            let groups = groups_of(&advice);
            assert_eq!(groups.len(), 1);
            groups[0].words.clone()
        };
        let one_file = words_of(["/in/7/part1.dat", "/in/7/part1.dat"]);
        assert_eq!(one_file, "/in/7/part1.dat is missing");
        let two_files = words_of(["/in/7/part1.dat", "/in/7/part18.dat"]);
        assert_eq!(two_files, "/in/7/part#.dat is missing");
    }

    #[test]
    fn group_is_known_from_elsewhere_if_all_its_jobs_are() {
        let mut advice = two_held_jobs();
        advice[0].forecast.is_known_from_elsewhere = true;
        assert!(!groups_of(&advice)[0].is_known_from_elsewhere);
        advice[1].forecast.is_known_from_elsewhere = true;
        assert!(groups_of(&advice)[0].is_known_from_elsewhere);
    }

    #[test]
    fn group_lacks_outcomes_if_all_its_jobs_do() {
        let mut advice = two_held_jobs();
        advice[0].verdict.lacks_outcomes = true;
        assert!(!groups_of(&advice)[0].lacks_outcomes);
        advice[1].verdict.lacks_outcomes = true;
        assert!(groups_of(&advice)[0].lacks_outcomes);
    }

    /// Returns advice on the jobs of the queue that are known, with the hold codes of each.
    fn advice_on(known: &[(QueuedTestJob, (i32, i32))]) -> Vec<JobAdvice> {
        let ad = |(job, (code, subcode)): &(QueuedTestJob, (i32, i32))| {
            json!({"ClusterId": job.cluster, "ProcId": job.proc, "JobStatus": job.status, "Owner": job.owner,
                "EnteredCurrentStatus": job.since_s, "HoldReasonCode": code, "HoldReasonSubCode": subcode,
                "RequestMemory": 64, "MemoryUsage": 90 + job.proc})
        };
        let ads: Vec<_> = known.iter().map(ad).collect();
        let queue = JobQueue::read(json!(ads).to_string().as_bytes()).expect("a queue");
        queue.correct(Vec::new(), "ap", 300_000).0
    }

    proptest! {
        /// A page knows some jobs of a queue, and shows some of these.
        #[test]
        fn commands_of_a_page_affect_its_jobs_alone(
            jobs in prop::collection::btree_map(
                (0..7, 0..7),
                (
                    prop::sample::select(vec!["ada", "bob", "eve"]),
                    prop::sample::select(vec![1, 2, 5, 5, 5]),
                    1i64..20,
                    prop::sample::select(vec![(13, 2), (34, 102), (3, 0)]),
                    0..3u8,
                ),
                1..60,
            ),
        ) {
            let queue: Vec<(QueuedTestJob, (i32, i32))> = jobs
                .iter()
                .map(|(&(cluster, proc), &(owner, status, since_s, codes, _))| {
                    (QueuedTestJob { cluster, proc, owner, status, since_s }, codes)
                })
                .collect();
            let whole: Vec<QueuedTestJob> = queue.iter().map(|(job, _)| *job).collect();
            let is_known = |level: u8| {
                let with_level = queue.iter().zip(jobs.values().map(move |value| value.4));
                with_level.filter(move |(_, known)| *known >= level).map(|(job, _)| *job)
            };
            let advice = advice_on(&is_known(1).collect::<Vec<_>>());
            let shown: BTreeSet<(i32, i32)> = is_known(2).map(|(job, _)| job.number()).collect();
            let chosen: Vec<&JobAdvice> = advice
                .iter()
                .filter(|one| shown.contains(&(one.job.id.cluster, one.job.id.proc)))
                .collect();
            for group in cause_groups(&chosen) {
                let expected: Vec<(i32, i32)> = group.jobs.iter().map(|job| (job.cluster, job.proc)).collect();
                let changing = group.command.iter().filter(|_| group.raise.is_some()).chain(&group.then);
                for command in changing {
                    let text = command.to_string();
                    prop_assert_eq!(&affected(&text, &whole), &expected, "{}", text);
                    prop_assert!(text.contains("Owner"), "{}", text);
                }
            }
        }
    }
}
