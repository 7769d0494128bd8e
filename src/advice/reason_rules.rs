//! Answers by what the hold reason states, where no outcome of this log answers, and names what the text of the
//! reason names. The store has no texts: without them, the answer is the same, without names.

use std::collections::HashSet;
use std::sync::Arc;

use super::job_advice::{AdviceGround, JobAdvice, SimilarHoldKind};
use super::job_command::{CommandTask, JobCommand, RaisedRequest, RequestAttribute};
use super::remedy::{raised_disk, raised_memory, remedy_command};
use htcondor_holdreasons::rules::{Action, Party, Rule, rule_for, rule_with};
use htcondor_holdreasons::{Explanation, Outcome, ReasonFacts, ReasonKind, Thing, explain};
use poolcast_base::output;
use poolcast_base::parallel::map_items;
use poolcast_base::shared_text::SharedText;
use poolcast_holds::decision::{AnswerFirmness, HoldAction, Remedy};

/// The statements in the reason of one job.
struct ReadReason {
    facts: ReasonFacts,
    rule: &'static Rule,
    explanation: Explanation,
}

/// Holds for one reason after which a job is not tried once more.
const MAX_TRIES: usize = 2;

/// Number of jobs whose reasons are read at once. What was read takes more memory than the answers.
const JOBS_AT_ONCE: usize = 1000;

/// Lets the facts in the reasons of `all` answer, where no outcome of this log does.
pub fn apply_reason_rules(all: &mut [JobAdvice]) {
    // One job of each cluster and cause is tried.
    let mut tried = HashSet::new();
    // Many jobs are held for one cause, and share what is said about it.
    let mut said: HashSet<Arc<[SharedText]>> = HashSet::new();
    for part in all.chunks_mut(JOBS_AT_ONCE) {
        let read = map_items(part, read_facts);
        for (one, read) in part.iter_mut().zip(read) {
            let Some(read) = read else {
                continue;
            };
            let is_first = read.action(one) == HoldAction::Probe && tried.insert(read.cause(one));
            read.answer(one, is_first);
            if let Some(reasons) = said.get(&one.verdict.reasons) {
                one.verdict.reasons = Arc::clone(reasons);
            } else {
                said.insert(Arc::clone(&one.verdict.reasons));
            }
        }
    }
}

/// Access point, cluster, code and subcode, thing and outcome of a hold.
type TriedCause = (SharedText, i32, (i32, i32), Thing, Outcome);

/// Reads the reason of a job; `None` if it has no rule, or if what this log shows answers.
fn read_facts(advice: &JobAdvice) -> Option<ReadReason> {
    // The text is read once more only where it answers: for its names and numbers.
    let rule = rule_for(advice.hold.stated)?;
    let is_sure = is_known_elsewhere_alone(advice)
        || stays_whatever_others_did(advice.hold.stated, rule)
        || rule.action == Action::TryOne && was_held_again(advice);
    let answers = is_sure && may_answer(advice);
    answers.then(|| {
        let facts = advice.reason_facts();
        ReadReason {
            rule: rule_with(advice.hold.stated, &facts.message).unwrap_or(rule),
            explanation: explain(&facts),
            facts,
        }
    })
}

/// Returns true if neither a look nor an outcome of this log answers about the job.
fn may_answer(advice: &JobAdvice) -> bool {
    let forecast = &advice.forecast;
    let has_passed = (forecast.state.as_ref())
        .is_some_and(|state| state.successes_since > 0 || state.reads_since > 0);
    let is_alike = (forecast.like_cases.as_ref())
        .is_some_and(|alike| alike.kind == SimilarHoldKind::Reason && alike.successes > 0);
    match advice.verdict.ground {
        AdviceGround::Rule => true,
        AdviceGround::Nothing => {
            let has_odds = forecast.probability.is_some() && !forecast.is_known_from_elsewhere;
            let is_unknown = !has_odds && !forecast.has_outcomes_here;
            let knows_no_better = is_unknown || was_held_again(advice) && !is_alike;
            !advice.hold.is_unknown && !has_passed && knows_no_better
        }
        AdviceGround::Model => {
            let waits = advice.verdict.action == HoldAction::Later;
            (is_known_elsewhere_alone(advice) || waits) && !has_passed && !is_alike
        }
        AdviceGround::Look => false,
    }
}

/// Returns true if no outcome of this log is behind the odds that answer.
fn is_known_elsewhere_alone(advice: &JobAdvice) -> bool {
    let is_by_odds = advice.verdict.ground == AdviceGround::Model;
    !is_by_odds || advice.forecast.is_known_from_elsewhere
}

/// Returns true if the job itself was released, and held again with the same code. That makes no answer weaker.
fn was_held_again(advice: &JobAdvice) -> bool {
    advice.hold.holds_for_this_reason > 1
}

/// Returns true if the job has to be repaired, although other jobs show that a fault passes: it is its own
/// limit, rule, program or credential, and no server or directory that may come back for all.
fn stays_whatever_others_did(stated: ReasonKind, rule: &Rule) -> bool {
    let may_come_back = matches!(
        stated.thing,
        Thing::Object | Thing::File | Thing::Image | Thing::WorkingDirectory | Thing::UserLog
    );
    rule.action == Action::Fix && !may_come_back
}

/// Returns true if the answer of the rule for the code stays, although the facts say `action`: outcomes of this
/// log support it, or the job was released before and held for the same reason again.
fn keeps_answer(advice: &JobAdvice, action: HoldAction) -> bool {
    let is_weaker = matches!(action, HoldAction::Later | HoldAction::Probe);
    let is_to_fix = advice.verdict.action == HoldAction::Fix && was_held_again(advice);
    advice.forecast.has_outcomes_here || is_weaker && is_to_fix
}

/// Returns true if the job took longer than its site allows. The codes 46 and 47 are of limits that the job has set.
fn is_limit_of_site(facts: &ReasonFacts, hold_code: i32) -> bool {
    facts.kind.thing == Thing::Time && !matches!(hold_code, 46 | 47)
}

impl ReadReason {
    /// Returns the cause with one job to try.
    fn cause(&self, advice: &JobAdvice) -> TriedCause {
        let codes = (advice.hold.code, advice.hold.subcode);
        let ReasonKind { thing, outcome, .. } = self.facts.kind;
        let job = &advice.job;
        (job.ap.clone(), job.id.cluster, codes, thing, outcome)
    }

    /// Returns the action of the rule, unless other jobs show that the image is not at fault everywhere, or earlier
    /// releases that trying the job is of no use.
    fn action(&self, advice: &JobAdvice) -> HoldAction {
        if self.was_tried(advice) {
            return HoldAction::Fix;
        }
        if self.rule.action == Action::Fix && self.starts_elsewhere(advice) {
            return HoldAction::Probe;
        }
        self.rule.action.into()
    }

    /// Returns true if two releases have tried what may be the fault of the user, and each failed.
    fn was_tried(&self, advice: &JobAdvice) -> bool {
        let may_be_of_user = matches!(self.rule.fault, Party::User | Party::UserOrMachine);
        let is_tried = advice.hold.holds_for_this_reason > MAX_TRIES;
        self.rule.action == Action::TryOne && may_be_of_user && is_tried
    }

    /// Returns true if jobs of the cluster have run in the image that could not be used.
    fn starts_elsewhere(&self, advice: &JobAdvice) -> bool {
        self.facts.kind.thing == Thing::Image && advice.hold.succeeded_since > 0
    }

    /// Sets the answer in `advice`. Of the jobs to try, only the first of its cause has a command.
    fn answer(&self, advice: &mut JobAdvice, is_first: bool) {
        let action = self.action(advice);
        let is_by_rule = advice.verdict.ground == AdviceGround::Rule;
        let is_same = is_by_rule && advice.verdict.action == action;
        if is_by_rule && !is_same && keeps_answer(advice, action) {
            return;
        }
        let held = advice.held_id();
        let release = JobCommand::new(CommandTask::Release, &held);
        advice.verdict.reasons = self.reasons(advice);
        advice.verdict.raise = self.raised(advice);
        (advice.verdict.command, advice.verdict.then) = match action {
            // The answers have chosen the job to try.
            HoldAction::Probe if advice.verdict.action == HoldAction::Probe => {
                (advice.verdict.command.take(), None)
            }
            HoldAction::Probe => (release.filter(|_| is_first), None),
            HoldAction::Fix => {
                let remedy = advice.verdict.raise.map_or(Remedy::Look, remedy_of);
                // The job is not mended in the queue if its work takes longer than its site allows, or if it
                // was started too often.
                let is_mended = !is_limit_of_site(&self.facts, advice.hold.code)
                    && self.facts.kind.thing != Thing::Starts;
                let is_request = self.facts.kind.outcome == Outcome::Exceeded;
                advice.verdict.may_need_new_submission =
                    !is_mended || !is_request && self.may_be_submitted_wrong(advice);
                let command = remedy_command(remedy, &held, advice.verdict.raise);
                (command, release.filter(|_| is_mended))
            }
            _ if self.facts.kind.thing == Thing::Spool => (None, None),
            _ => (None, release),
        };
        let was_tried = self.was_tried(advice);
        let verdict = &mut advice.verdict;
        if action != HoldAction::Probe {
            verdict.probe_cause = None;
        }
        verdict.action = action;
        verdict.ground = AdviceGround::Rule;
        verdict.because = "reason_states_it";
        if !is_same {
            (verdict.firmness, verdict.evidence) = (None, None);
        }
        if was_tried {
            verdict.firmness = Some(AnswerFirmness::Possible);
        }
        if action == HoldAction::Later {
            // Nobody has seen such a fault pass here.
            verdict.firmness = verdict.firmness.or(Some(AnswerFirmness::Possible));
        }
        verdict.is_reason_read = true;
        advice.forget_odds();
        advice.forecast.good_until_ms = None;
    }

    /// States what the reason means and what mends it, and then what else was known.
    fn reasons(&self, advice: &JobAdvice) -> Arc<[SharedText]> {
        let Explanation {
            meaning,
            mend,
            attributes,
            ..
        } = &self.explanation;
        let mend = mend.as_deref().unwrap_or_default();
        let mut reasons = vec![SharedText::from(format!("{meaning}; {mend}").as_str())];
        if self.starts_elsewhere(advice) {
            let others = output::counted(advice.hold.succeeded_since, "other job");
            let since = format!(
                "{meaning}; {others} of its cluster started since, and succeeded: another machine may do"
            );
            reasons = vec![since.as_str().into()];
        }
        let is_wrong = self.may_be_submitted_wrong(advice);
        if let Some(attribute) = attributes.first().filter(|_| is_wrong) {
            let queued = format!(
                "a queued job keeps its values: if {attribute} is wrong, change it by condor_qedit before the release, or remove the job and submit it again"
            );
            reasons.push(queued.as_str().into());
        }
        if advice.verdict.ground == AdviceGround::Rule {
            // The first reason is the rule's, unless results of probes are before it.
            let of_rule = usize::from(advice.forecast.probes.is_empty());
            reasons.extend(advice.verdict.reasons.iter().skip(of_rule).cloned());
        }
        reasons.into()
    }

    /// Returns true if a value of the job's submission may be at fault, which no command here corrects.
    fn may_be_submitted_wrong(&self, advice: &JobAdvice) -> bool {
        let is_of_other_kind = matches!(
            self.facts.kind.thing,
            Thing::Credential | Thing::ProgramEnd | Thing::Starts
        );
        let has_attribute = !self.explanation.attributes.is_empty() && !is_of_other_kind;
        self.action(advice) == HoldAction::Fix && has_attribute && self.raised(advice).is_none()
    }

    /// Returns the request that the job should have: above the limit and the use that the reason names,
    /// and that are known otherwise.
    fn raised(&self, advice: &JobAdvice) -> Option<RaisedRequest> {
        if self.facts.kind.outcome != Outcome::Exceeded {
            return None;
        }
        let stated = |amount: Option<htcondor_holdreasons::Amount>| {
            amount.and_then(htcondor_holdreasons::Amount::mib)
        };
        let (limit, used) = (stated(self.facts.limit), stated(self.facts.used));
        let raise = advice.verdict.raise;
        let known = |attribute| raise.filter(|raise| raise.attribute == attribute);
        let of_queue = advice
            .job
            .queue
            .as_ref()
            .and_then(|queue| queue.request_memory.as_ref());
        let requested = of_queue.map(|request| request.parse::<u64>().ok());
        let (raised, known) = match self.facts.kind.thing {
            // An expression may refer to itself.
            Thing::Memory if requested == Some(None) => return None,
            Thing::Memory => {
                let requested_mb = requested
                    .flatten()
                    .unwrap_or(advice.job.requested_memory_mb);
                let used_mb = used.unwrap_or(0).max(advice.job.used_memory_mb);
                let raised = raised_memory(
                    limit.unwrap_or(0).max(requested_mb),
                    used_mb.max(limit.unwrap_or(0)),
                );
                (raised, known(RequestAttribute::RequestMemory))
            }
            Thing::Disk => {
                let raised = raised_disk(limit.unwrap_or(0), used.unwrap_or(0));
                (raised, known(RequestAttribute::RequestDisk))
            }
            Thing::Cpus => (None, known(RequestAttribute::RequestCpus)),
            _ => return None,
        };
        raised
            .into_iter()
            .chain(known)
            .max_by_key(|raise| raise.number)
    }
}

fn remedy_of(raise: RaisedRequest) -> Remedy {
    match raise.attribute {
        RequestAttribute::RequestMemory => Remedy::RaiseMemory,
        RequestAttribute::RequestDisk => Remedy::RaiseDisk,
        RequestAttribute::RequestCpus => Remedy::RaiseCpus,
        // No reason states too few GPUs.
        RequestAttribute::RequestGPUs => Remedy::Look,
    }
}

#[cfg(test)]
mod tests {
    use htcondor_holdreasons::read_reason;

    use super::*;

    /// Advice on a job that is held for `reason`, known from elsewhere alone.
    fn advice(code: i32, subcode: i32, reason: &str) -> JobAdvice {
        JobAdvice::of_test_job().with(|one| {
            one.verdict.action = HoldAction::Later;
            one.hold.code = code;
            one.hold.subcode = subcode;
            one.hold.reason = Some(reason.into());
            one.hold.stated = read_reason(reason, Some((code, subcode))).kind;
            one.forecast.is_known_from_elsewhere = true;
            one.forecast.like_cases = None;
            one.job.queue = None;
        })
    }

    fn answered(advice: JobAdvice) -> JobAdvice {
        let mut all = [advice];
        apply_reason_rules(&mut all);
        let [one] = all;
        one
    }

    #[test]
    fn facts_answer_in_place_of_odds_from_elsewhere() {
        let one = answered(advice(
            34,
            0,
            "Error from slot1@e.example: Job has gone over cgroup memory limit of 3000 megabytes. Last measured usage: 5000 megabytes.",
        ));
        let raise = one
            .verdict
            .raise
            .map(|raise| (raise.attribute, raise.number));
        assert_eq!(
            (one.verdict.action, raise),
            (
                HoldAction::Fix,
                Some((RequestAttribute::RequestMemory, 7552))
            )
        );
        assert_eq!(
            (one.forecast.probability, one.verdict.ground),
            (None, AdviceGround::Rule)
        );
        assert!(
            one.verdict.reasons[0].contains("limit 3000 MB, use 5000 MB"),
            "{:?}",
            one.verdict.reasons
        );
    }

    #[test]
    fn outcomes_of_this_log_are_not_overruled() {
        let missing = "Transfer input files failure at access point a while sending files to execution point s. Details: reading from file /data/x: (errno 2) No such file or directory";
        let known_here = advice(13, 2, missing).with(|one| {
            one.forecast.is_known_from_elsewhere = false;
            one.forecast.has_outcomes_here = true;
        });
        assert_eq!(answered(known_here).verdict.action, HoldAction::Later);
        let unknown = advice(13, 2, missing).with(|one| {
            one.verdict.ground = AdviceGround::Nothing;
            one.hold.is_unknown = true;
        });
        assert_eq!(answered(unknown).verdict.action, HoldAction::Later);
        let memory = advice(26, 0, "Job put on hold due to memory usage 7340032.").with(|one| {
            one.forecast.is_known_from_elsewhere = false;
            one.forecast.has_outcomes_here = true;
        });
        assert_eq!(
            answered(memory).verdict.action,
            HoldAction::Fix,
            "no wait mends it"
        );
        let one = answered(advice(13, 2, missing));
        assert_eq!(one.verdict.action, HoldAction::Fix);
        assert!(
            one.verdict.reasons[0].contains("/data/x")
                && one.verdict.reasons[1].contains("TransferInput")
        );
    }

    #[test]
    fn the_text_beats_the_code_of_the_site() {
        let kept = advice(
                13,
                256,
                "Transfer input files failure at execution point s using protocol osdf. Details: Connection refused ( URL file = osdf:///a/b )|",
            ).with(|one| { one.verdict.ground = AdviceGround::Rule;
one.verdict.action = HoldAction::Fix;
one.forecast.has_outcomes_here = true; });
        assert_eq!(
            answered(kept).verdict.action,
            HoldAction::Fix,
            "outcomes support the rule"
        );

        let of_code = advice(
            21,
            102,
            "Error from slot1@e.example: disk usage exceeded request_disk",
        )
        .with(|one| {
            one.verdict.ground = AdviceGround::Rule;
            one.verdict.action = HoldAction::Fix;
            one.verdict.raise = Some(RaisedRequest {
                attribute: RequestAttribute::RequestMemory,
                number: 4096,
            });
        });
        let one = answered(of_code);
        assert_eq!(
            (one.verdict.action, one.verdict.raise),
            (HoldAction::Fix, None)
        );
        assert!(
            one.verdict.reasons[0].contains("RequestDisk"),
            "{:?}",
            one.verdict.reasons
        );
    }

    #[test]
    fn another_hold_for_the_same_reason_makes_no_answer_weaker() {
        let missing = "Transfer output files failure at execution point slot1@e.example while sending files to access point a. Details: reading from file /var/lib/condor/execute/dir_7/result.csv: (errno 2) No such file or directory";
        let again = |ground, action, holds_for_this_reason| {
            answered(advice(12, 2, missing).with(|one| {
                one.verdict.ground = ground;
                one.verdict.action = action;
                one.hold.holds_for_this_reason = holds_for_this_reason;
                one.forecast.is_known_from_elsewhere = false;
                one.forecast.has_outcomes_here = true;
            }))
        };
        let second = again(AdviceGround::Model, HoldAction::Later, 2);
        assert_eq!(
            (second.verdict.action, second.verdict.command.is_some()),
            (HoldAction::Probe, true)
        );
        let third = again(AdviceGround::Nothing, HoldAction::None, 3);
        assert_eq!(
            (third.verdict.action, third.verdict.firmness),
            (HoldAction::Fix, Some(AnswerFirmness::Possible))
        );
        let of_others = again(AdviceGround::Model, HoldAction::Later, 1);
        assert_eq!(
            of_others.verdict.action,
            HoldAction::Later,
            "outcomes of this log answer"
        );
    }

    #[test]
    fn a_limit_of_time_raises_no_request() {
        let one = answered(
            advice(21, 0, "Job failed to complete in 72 hrs").with(|one| {
                one.verdict.action = HoldAction::Fix;
                one.verdict.ground = AdviceGround::Rule;
                one.forecast.is_known_from_elsewhere = false;
                one.forecast.has_outcomes_here = true;
            }),
        );
        assert_eq!(
            (one.verdict.action, one.verdict.raise),
            (HoldAction::Fix, None)
        );
        let command = one.verdict.command.as_ref().expect("a look").to_string();
        assert_eq!(command, "condor_q -hold 12.0");
    }

    #[test]
    fn one_job_of_a_cluster_is_tried_for_a_fault_of_a_machine() {
        let cpus = "Error from slot1@e.example: Error response from daemon: Requested CPUs are not available - requested 8-9, available: 0-7.";
        let mut all = [advice(35, 0, cpus), advice(35, 0, cpus)];
        apply_reason_rules(&mut all);
        assert_eq!(
            all.each_ref()
                .map(|one| (one.verdict.action, one.verdict.command.is_some())),
            [(HoldAction::Probe, true), (HoldAction::Probe, false)]
        );
    }

    #[test]
    fn secrets_of_addresses_are_not_repeated() {
        let one = answered(advice(
            13,
            256,
            "Transfer input files failure at execution point s using protocol https. Details: The requested URL returned error: 404 Not Found ( URL file = https://u:pass@h.example/a?sig=secret )|",
        ));
        let said: String = one
            .verdict
            .reasons
            .iter()
            .map(ToString::to_string)
            .collect();
        assert!(
            said.contains("h.example/a") && !said.contains("secret") && !said.contains("pass"),
            "{said}"
        );
    }
}
