//! The facts that decide the answer about each job that is held at one moment.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use anyhow::Result;
use htcondor_eventlog::ReasonKind;

use super::asked_causes::{
    AskedCause, AskedHold, HELD_FOR_TWO_PROBES, ProbeCause, asked_causes, hold_cause, probe_cause,
    probe_kind,
};
use super::codes::{HoldRule, hold_rule};
use crate::answers::{
    AnswerModel, CauseKind, FailedReleases, HeldOdds, HoldHistory, LearnedAge, LearnedFrom,
    MAX_COUNTED, MIN_TAUGHT_OUTCOMES, NamedFault, OriginState, PastHold, ReasonRecord, RecoveryKey,
    RuleKey, ThingState, is_corrected_by_owner,
};

/// Expected successes from which on a run of one job is worth its cost: of that job, or of all that are held for its
/// cause. From this probability on, one success of another job also shows that a fault has passed, and a failure a moment
/// ago does not prevent a run. Chosen on the same logs as [`PASSING_FROM`], where values up to 0.6 answer as well.
pub(super) const RUN_PAYS_FROM: f64 = 0.4;
/// Jobs that got past the cause since its last failure from which on it has passed, whatever the
/// odds.
pub(super) const RECOVERED_WITHOUT_ODDS: usize = 2;
/// Probability of a later success from which on a fault counts as passing, and the odds contradict a rule that expects
/// failure. The odds are low for most faults that pass, because they are learned from early releases, which often come
/// before the fault has passed. Chosen on the bundled log, a second log of a real pool and simulated pools (seeds 1 to
/// 3): from 0.35 to 0.5, the successes kept differ by two points.
pub(super) const PASSING_FROM: f64 = 0.4;
/// Number of typical hold lengths for which a release without a known outcome counts as a probe.
const PROBE_LASTS: f64 = 4.0;
/// Share of a typical hold length for which an answer is good. Then the fault may have changed.
pub(super) const GOOD_FOR: f64 = 0.25;

/// The facts that decide the answer about one held job.
#[derive(Debug, Clone, Copy)]
pub struct HeldEvidence {
    /// The hold itself.
    pub hold: HoldEvidence,
    /// The cause of the hold, and the other jobs that it concerns.
    pub cause: CauseEvidence,
    /// The place of the file that failed.
    pub origin: OriginEvidence,
    /// What was learned from earlier holds.
    pub learned: LearnedEvidence,
}

/// The hold itself, and its job.
#[derive(Debug, Clone, Copy)]
pub struct HoldEvidence {
    /// Index of the hold in the history.
    pub index: usize,
    /// What its reason states, or else its code.
    pub stated: ReasonKind,
    /// The record in which answers of a rule for the hold count.
    pub rule_key: RuleKey,
    /// The rule for the hold code.
    pub rule: Option<HoldRule>,
    /// True if the job has not written an output file that it should have.
    pub lacks_output: bool,
    /// True if this is a fault of the program: no job of the cluster ended well by itself, and output files were missing on
    /// several machines where other jobs end well.
    pub never_writes_output: bool,
    /// Holds of the job for the code and subcode, this one included.
    pub holds_for_code: usize,
}

/// The cause that a probe would be about, and the jobs that show whether it has passed.
#[derive(Debug, Clone, Copy, Default)]
pub struct CauseEvidence {
    /// Its kind and its key.
    pub key: ProbeCause,
    /// Jobs that are held now for the cause, this one included.
    pub held: usize,
    /// Highest odds now among these jobs. A probe would release the job that has them.
    pub best_odds: f64,
    /// True if nothing is known about the cause as it is now: it has not failed within the ages of holds
    /// that were learned from, and nothing was learned here about any of these jobs, because their fault
    /// is known from other access points alone, or because they have been held for longer, in a log
    /// with few outcomes.
    pub is_new: bool,
    /// True if this job is one of those that a probe of the cause releases.
    pub is_probe: bool,
    /// True if a job of the cause was released recently, and its outcome is not known yet.
    pub awaits_outcome: bool,
    /// True if a released job was held for the cause again, and none has got past it since.
    pub failed_again: bool,
    /// True if a job failed for the cause so recently that a probe would hardly find another state.
    pub failed_just_now: bool,
    /// Jobs that got past the cause since this job is held, and since the last failure: jobs that were
    /// held for it, or other jobs of the cluster that started the same program.
    pub recovered: usize,
    /// The latter alone; 0 if it was not the program that failed.
    pub started_in_cluster: usize,
    /// True if another job of the cluster succeeded since one failed like this. Nothing else shows that
    /// the job has no further fault.
    pub has_cluster_succeeded: bool,
    /// True if a person released by hand all jobs that got past the cause, and may have repaired each of
    /// them before: the owner of this job, or an unknown one.
    pub is_perhaps_repaired: bool,
}

/// The directory or server of the file that failed.
#[derive(Debug, Clone, Copy, Default)]
pub struct OriginEvidence {
    /// Its state when the hold began.
    pub state: OriginState,
    /// First runs of jobs that read files of it since the last failure there.
    pub reads: usize,
    /// True if it has failed for two clusters since a job last got its files from there.
    pub has_failed_since: bool,
    /// True if a job got past the same named file since this job is held.
    pub file_passed_since: bool,
    /// True if the server lacks a file that the job names, and the one person whose jobs got past such holds may have
    /// corrected the names.
    pub is_corrected_by_owner: bool,
}

/// What was learned from earlier holds that are like this one.
#[derive(Debug, Clone, Copy)]
pub struct LearnedEvidence {
    /// The odds of a release, now and later, at most as high as the failures for the reason leave them.
    pub odds: HeldOdds,
    /// The outcomes of holds for the same reason.
    pub reason: ReasonRecord,
    /// True if outcomes of this owner, or of the named file, are known.
    pub is_taught: bool,
    /// True if outcomes of this owner, of the named file or of the cause are known. Without any, low
    /// odds are no evidence of a permanent fault.
    pub has_outcomes: bool,
    /// True if most jobs that got past holds whose reasons state the same were released by hand. A person may have
    /// repaired each of them.
    pub is_mostly_repaired: bool,
    /// True if the hold is older than all that was learned from. Its odds are then a guess.
    pub is_hold_too_old: bool,
}

impl HeldEvidence {
    /// Returns the key of the record of releases because other jobs got past the cause.
    pub(super) fn recovery_key(&self) -> RecoveryKey {
        RecoveryKey {
            code: self.hold.rule_key.code,
            has_cluster_succeeded: self.cause.has_cluster_succeeded,
        }
    }

    /// Returns true if the fault may be one of the job itself, by a rule or because the job has not written
    /// an output file, and all others that got past it may have been repaired one by one.
    pub fn may_need_repair(&self) -> bool {
        let is_by_rule = self.hold.rule.is_some_and(|rule| rule.expects_failure());
        self.cause.is_perhaps_repaired && (is_by_rule || self.hold.lacks_output)
    }

    /// Returns true if an input file did not arrive, and no job is known to have got this one since. Jobs that got
    /// other files show that its directory or server is back, and not that the file is there.
    pub(super) fn rests_on_other_files(&self) -> bool {
        self.hold.stated.is_input_transfer() && !self.origin.file_passed_since
    }

    /// Returns true if a plug-in failed to get an input file, and names no fault that passes, while other jobs got
    /// theirs from the same server, so that the fault is one of the file.
    pub fn failed_while_others_read(&self) -> bool {
        self.rests_on_other_files()
            && self.hold.stated.is_plugin_transfer()
            && self.origin.state == OriginState::Works
            && !self.hold.rule_key.named_fault.may_pass()
            && !self.has_recovered()
    }

    /// Returns true if what the log has shown about the reason agrees with the rule, if it expects failure:
    /// the odds, or a hold that has lasted for longer than faults that pass. A request that was too low is
    /// never sure to be so again, because what a job uses differs from run to run.
    pub(crate) fn agrees_with_rule(&self) -> bool {
        let is_of_request = self.hold.rule.is_some_and(|rule| rule.raises_request());
        let agrees = self.learned.odds.later < PASSING_FROM || self.outlasts_passing_faults();
        self.has_outcomes_here() && !is_of_request && agrees
    }

    /// Returns true if the hold has lasted for longer than those that were learned from. A plug-in may say for
    /// days that a server which fails has no such file, so that the age then says nothing.
    pub(super) fn outlasts_passing_faults(&self) -> bool {
        self.learned.is_hold_too_old && !self.hold.stated.is_plugin_transfer()
    }

    /// Returns true if a released job with the cause was held again, and none has got past it since, so that the
    /// fault of this one stays, too: a machine did not start the installed program again, or an output file was
    /// missing again, and the hold has lasted for longer than faults that pass.
    pub fn stays_after_failed_release(&self) -> bool {
        let is_output = self.hold.lacks_output && self.outlasts_passing_faults();
        let is_machine = self.hold.rule_key.named_fault == NamedFault::Machine;
        self.cause.failed_again && (is_output || is_machine)
    }

    /// Returns the probability of success now: the odds, or the share of the jobs that got past the cause.
    pub fn probability_now(&self) -> f64 {
        let recovered = self.recovered_probability();
        recovered.map_or(self.learned.odds.now, |recovered| {
            recovered.max(self.learned.odds.now)
        })
    }

    /// Returns the posterior mean of the chance of success with Jeffreys' prior, if all jobs of the cause since its
    /// last failure got past it; `None` if they show nothing, as where each may have been repaired before.
    fn recovered_probability(&self) -> Option<f64> {
        let successes = self.cause.recovered as f64;
        (self.has_recovered() && !self.may_need_repair())
            .then(|| (successes + 0.5) / (successes + 1.0))
    }

    /// Returns true if this log shows outcomes of holds for the reason.
    pub fn has_outcomes_here(&self) -> bool {
        self.learned.reason.is_known() && self.is_learned_here()
    }

    /// Returns true if the odds follow from outcomes of such holds in this log.
    pub(super) fn is_learned_here(&self) -> bool {
        self.learned.odds.learned_from == LearnedFrom::ThisLog
    }

    /// Returns true if no outcome of such holds is known, here or elsewhere, so that the odds are of other kinds
    /// of holds.
    pub fn is_of_unknown_kind(&self) -> bool {
        self.learned.odds.learned_from == LearnedFrom::Nothing
    }

    /// Returns the probability of success now that a page states; `None` if it is unknown. The odds of an older
    /// hold than all that were learned from, and of a kind that nothing was learned about, do not count.
    pub fn stated_probability(&self) -> Option<f64> {
        if self.learned.is_hold_too_old || self.is_of_unknown_kind() {
            self.recovered_probability()
        } else {
            Some(self.probability_now())
        }
    }

    /// Returns the probability of a later success that a page states; `None` if it is unknown.
    pub fn stated_later(&self) -> Option<f64> {
        let is_known = !self.learned.is_hold_too_old && !self.is_of_unknown_kind();
        is_known.then_some(self.learned.odds.later)
    }

    /// Returns true if the probability of success now follows from outcomes at other access points alone,
    /// and not from jobs that got past the cause here.
    pub fn is_known_from_elsewhere(&self) -> bool {
        self.learned.odds.learned_from == LearnedFrom::OtherLogs && !self.has_recovered()
    }

    /// Returns true if the outcomes of other jobs show that the fault has passed: two of two got past
    /// it, or one where the odds agree and the cause is small, as one job is then its probe. They show nothing about
    /// a missing output if each may have been repaired before.
    pub(super) fn has_recovered(&self) -> bool {
        let is_small = (2..HELD_FOR_TWO_PROBES).contains(&self.cause.held);
        let enough = if is_small && self.learned.odds.higher_now() >= RUN_PAYS_FROM {
            1
        } else {
            RECOVERED_WITHOUT_ODDS
        };
        let is_repair = self.cause.is_perhaps_repaired && self.hold.lacks_output;
        self.cause.recovered >= enough && !is_repair
    }
}

/// The evidence on all jobs that are held at one moment.
pub(crate) struct AllEvidence {
    /// The evidence on each hold, `[n]`.
    pub holds: Vec<HeldEvidence>,
    /// The states of the things that failed, where an outcome is known.
    pub(super) states: HashMap<ProbeCause, Arc<ThingState>>,
    pub(super) learned_age: LearnedAge,
}

/// Returns the evidence on each of `holds`, which last at `asked_ms`, `[n]`.
///
/// # Errors
/// Fails if the model cannot compute the odds.
pub(crate) fn held_evidence(
    history: &HoldHistory<'_>,
    model: &AnswerModel,
    holds: &[usize],
    asked_ms: i64,
) -> Result<AllEvidence> {
    let odds = model.odds(history, holds, asked_ms)?;
    let learned_age = LearnedAge::new(model, history, asked_ms);
    let asked: Vec<AskedHold> = holds
        .iter()
        .zip(odds)
        .map(|(&index, odds)| AskedHold::new(history, index, odds, asked_ms))
        .collect();
    let causes = asked_causes(history, &asked, asked_ms);

    let inputs = EvidenceInputs {
        history,
        asked_ms,
        good_for_ms: (GOOD_FOR * history.unit_ms(asked_ms)) as i64,
        learned_age,
        awaited: awaited_causes(history, holds, asked_ms),
    };
    let evidence = asked.iter().map(|asked| {
        let key = probe_cause(asked.kind, &history.holds[asked.hold]);
        inputs.evidence(asked, key, &causes[&key])
    });
    let holds = evidence.collect();
    let state_of = |(key, cause): (ProbeCause, AskedCause)| Some((key, Arc::new(cause.state?)));
    Ok(AllEvidence {
        holds,
        states: causes.into_iter().filter_map(state_of).collect(),
        learned_age,
    })
}

impl AskedHold {
    /// Collects what is known at `asked_ms` about the cause of hold `index`, whose odds are `odds`.
    fn new(history: &HoldHistory<'_>, index: usize, odds: HeldOdds, asked_ms: i64) -> AskedHold {
        let hold = &history.holds[index];
        let reason = ReasonRecord::known(history, hold, asked_ms);
        let succeeded = history.succeeded_in_cluster(index, asked_ms);
        let (origin_state, reads_since) = history.origin_state(hold, asked_ms);
        let named_fault = shown_fault(hold, origin_state);
        AskedHold {
            hold: index,
            kind: asked_kind(history, index, (succeeded, named_fault), asked_ms),
            odds: odds.at_most(reason.success_upper()),
            reason,
            succeeded,
            named_fault,
            origin_state,
            reads_since,
        }
    }
}

/// Returns the fault of `hold`, whose directory or server had the state `origin_state` when it began. A file that the
/// server said it lacks is missing if others got theirs at that time, though the server had failed before.
fn shown_fault(hold: &PastHold, origin_state: OriginState) -> NamedFault {
    if hold.is_perhaps_missing && origin_state == OriginState::Works {
        NamedFault::Missing
    } else {
        hold.named_fault
    }
}

/// The facts at one moment from which the evidence on each hold is made.
struct EvidenceInputs<'a> {
    history: &'a HoldHistory<'a>,
    asked_ms: i64,
    /// Time for which an answer is good, in ms.
    good_for_ms: i64,
    learned_age: LearnedAge,
    /// Causes with a job that was released recently, and whose outcome is not known yet.
    awaited: HashSet<ProbeCause>,
}

impl EvidenceInputs<'_> {
    /// Returns the evidence on an asked hold, for the cause with the key `key`.
    fn evidence(&self, asked: &AskedHold, key: ProbeCause, cause: &AskedCause) -> HeldEvidence {
        let (history, asked_ms) = (self.history, self.asked_ms);
        let hold = &history.holds[asked.hold];
        let is_taught = is_taught(history, hold, asked_ms);
        let started_in_cluster = started_in_cluster(hold, asked.succeeded);
        let rule = hold_rule(asked.named_fault.corrects(hold.stated));
        HeldEvidence {
            hold: HoldEvidence {
                index: asked.hold,
                stated: hold.stated,
                rule_key: RuleKey {
                    code: (hold.code, hold.subcode),
                    named_fault: asked.named_fault,
                    failed: failed_releases(hold, rule.as_ref(), cause),
                },
                rule,
                lacks_output: hold.lacks_output(),
                never_writes_output: history.never_writes_output(asked.hold, asked_ms),
                holds_for_code: hold.earlier_for_code as usize + 1,
            },
            cause: CauseEvidence {
                key,
                held: cause.held.len(),
                best_odds: cause.best_odds,
                is_new: cause.is_new(asked_ms - self.learned_age.max_ms),
                is_probe: cause.probes.contains(&asked.hold),
                awaits_outcome: self.awaited.contains(&hold_cause(hold)),
                failed_again: cause.failed_again,
                failed_just_now: cause.last_failure_ms > Some(asked_ms - self.good_for_ms),
                recovered: cause.recovered().max(started_in_cluster),
                started_in_cluster,
                has_cluster_succeeded: asked.succeeded > 0,
                is_perhaps_repaired: started_in_cluster == 0 && is_perhaps_repaired(cause, hold),
            },
            origin: OriginEvidence {
                state: asked.origin_state,
                reads: asked.reads_since.max(cause.reads_since()),
                has_failed_since: has_origin_failed_since(history, hold, asked_ms),
                file_passed_since: has_passed_since(history, hold, asked_ms),
                is_corrected_by_owner: asked.named_fault == NamedFault::Missing
                    && is_corrected_by_owner(history, hold, asked_ms),
            },
            learned: LearnedEvidence {
                odds: asked.odds,
                reason: asked.reason,
                is_taught,
                has_outcomes: is_taught || cause.outcomes >= MIN_TAUGHT_OUTCOMES,
                is_mostly_repaired: is_mostly_repaired(history, hold, asked_ms),
                is_hold_too_old: self.learned_age.is_exceeded_by(asked_ms - hold.hold_ms),
            },
        }
    }
}

/// Returns what earlier releases have shown about the fault of `hold`, which is for `cause` and has the `rule`. The
/// jobs of a cluster use about as much as each other, so that one failure shows that the request is too low for the
/// others, too.
fn failed_releases(hold: &PastHold, rule: Option<&HoldRule>, cause: &AskedCause) -> FailedReleases {
    let is_of_request = rule.is_some_and(HoldRule::raises_request);
    if hold.is_repeated() {
        FailedReleases::OfJob
    } else if is_of_request && cause.failed_again {
        FailedReleases::OfCluster
    } else {
        FailedReleases::Unknown
    }
}

/// Returns true if one person released by hand all jobs that got past the `cause` of `hold`: its owner, or
/// an unknown one.
fn is_perhaps_repaired(cause: &AskedCause, hold: &PastHold) -> bool {
    let owner = cause.state.and_then(|state| state.by_hand_of);
    owner.is_some_and(|owner| owner == 0 || owner == hold.owner)
}

/// Returns true if most jobs that got past holds with the same statement as `hold` were released by hand.
fn is_mostly_repaired(history: &HoldHistory<'_>, hold: &PastHold, asked_ms: i64) -> bool {
    let known = history.known_cause(CauseKind::Stated, &hold.causes, asked_ms);
    let latest = &known.passes[known.passes.len().saturating_sub(MAX_COUNTED)..];
    let by_hand = latest.iter().filter(|pass| pass.is_by_hand).count();
    2 * by_hand > latest.len()
}

/// Returns how many of the `succeeded` jobs of the cluster show that the program of `hold` starts: all,
/// if it is held for that, and else none.
fn started_in_cluster(hold: &PastHold, succeeded: usize) -> usize {
    if hold.stated.is_program_start() {
        succeeded
    } else {
        0
    }
}

/// Returns the kind of cause that an answer about hold `index` is for, with `named_fault`, of whose cluster
/// `succeeded` other jobs succeeded. Where these started the program, it needs no probe of the same program in other
/// clusters. Where others got its input file, it needs none of other files of the origin, unless that has failed
/// again.
fn asked_kind(
    history: &HoldHistory<'_>,
    index: usize,
    (succeeded, named_fault): (usize, NamedFault),
    asked_ms: i64,
) -> CauseKind {
    let hold = &history.holds[index];
    if started_in_cluster(hold, succeeded) >= RECOVERED_WITHOUT_ODDS {
        return CauseKind::ClusterReason;
    }
    let kind = probe_kind(hold, named_fault);
    if kind != CauseKind::Origin || !hold.stated.is_input_transfer() {
        return kind;
    }
    let state = ThingState::known(history, CauseKind::File, hold, asked_ms);
    let has_file = state.is_some_and(|state| state.successes_since >= RECOVERED_WITHOUT_ODDS);
    if has_file && !has_origin_failed_since(history, hold, asked_ms) {
        CauseKind::File
    } else {
        kind
    }
}

/// Returns the causes of `holds` with a job that was released within the last few typical hold lengths, and
/// whose outcome is not known yet. It is then the probe. Each cause is examined once, because all its jobs may be held.
fn awaited_causes(
    history: &HoldHistory<'_>,
    holds: &[usize],
    asked_ms: i64,
) -> HashSet<ProbeCause> {
    let within_ms = (PROBE_LASTS * history.unit_ms(asked_ms)) as i64;
    let (mut seen, mut awaited) = (HashSet::new(), HashSet::new());
    for &index in holds {
        let hold = &history.holds[index];
        let cause = hold_cause(hold);
        if !seen.insert(cause) {
            continue;
        }
        let kind = probe_kind(hold, hold.named_fault);
        if history.awaits_outcome(kind, &hold.causes, asked_ms, within_ms) {
            awaited.insert(cause);
        }
    }
    awaited
}

/// Returns true if it is known at `asked_ms` that two clusters failed to get different files from the directory or
/// server that `hold` names after the last job got its files from there.
fn has_origin_failed_since(history: &HoldHistory<'_>, hold: &PastHold, asked_ms: i64) -> bool {
    let known = history.known_cause(CauseKind::Origin, &hold.causes, asked_ms);
    let latest = known.passes.iter().rev().take(MAX_COUNTED);
    let latest = latest.chain(known.reads.iter().rev().take(MAX_COUNTED));
    let passed_ms = latest.map(|pass| pass.released_ms).max();
    passed_ms.is_some_and(|passed_ms| history.has_origin_failed(hold, passed_ms + 1, asked_ms))
}

/// Returns true if a job that was held for the same named file got past it since `hold` began.
fn has_passed_since(history: &HoldHistory<'_>, hold: &PastHold, asked_ms: i64) -> bool {
    let kind = if hold.names_own_program() {
        CauseKind::ClusterReason
    } else if hold.causes.names_file() {
        CauseKind::File
    } else if hold.stated.is_of_file() {
        CauseKind::Reason
    } else {
        return false;
    };
    let known = history.known_cause(kind, &hold.causes, asked_ms);
    let latest = known.passes.iter().rev().take(MAX_COUNTED);
    latest
        .map(|pass| pass.released_ms)
        .any(|released_ms| released_ms > hold.hold_ms)
}

/// Returns true if enough outcomes of the owner with this code, or of the named file, are decided.
fn is_taught(history: &HoldHistory<'_>, hold: &PastHold, asked_ms: i64) -> bool {
    let decided = |kind| {
        history
            .known_cause(kind, &hold.causes, asked_ms)
            .outcomes
            .len()
    };
    // A log without owners cannot tell whose outcomes they are.
    let own = if hold.owner == 0 {
        CauseKind::Code
    } else {
        CauseKind::OwnerCode
    };
    decided(own).max(decided(CauseKind::File)) >= MIN_TAUGHT_OUTCOMES
}

#[cfg(test)]
mod tests {
    use super::super::codes::code_rule;
    use super::*;
    use htcondor_eventlog::InputFile;
    use htcondor_holdreasons::{kind_of_code, read_reason};
    use test_stores::TestLog;

    #[test]
    fn failure_of_another_job_counts_for_a_request_alone() {
        let mut log = TestLog::default();
        log.add_held(7, 90);
        let store = log.store();
        let history = HoldHistory::new(&store);
        let failed = |rule: Option<HoldRule>, failed_again| {
            let cause = AskedCause {
                failed_again,
                ..AskedCause::default()
            };
            failed_releases(&history.holds[0], rule.as_ref(), &cause)
        };
        let (request, missing_file) = (code_rule(34, 102), code_rule(13, 2));
        assert_eq!(failed(request, true), FailedReleases::OfCluster);
        assert_eq!(failed(request, false), FailedReleases::Unknown);
        assert_eq!(failed(missing_file, true), FailedReleases::Unknown);
        assert_eq!(failed(None, true), FailedReleases::Unknown);
    }

    /// Returns the kind of cause that an answer about the last hold of `log` is for, with `change` made to it.
    fn kind_of_last(log: &TestLog, change: impl Fn(&mut PastHold)) -> CauseKind {
        let store = log.store();
        let mut history = HoldHistory::new(&store);
        let last = history.holds.len() - 1;
        change(&mut history.holds[last]);
        let fault = history.holds[last].named_fault;
        asked_kind(&history, last, (0, fault), 1_000_000)
    }

    #[test]
    fn mended_program_of_another_job_helps_no_other_cluster() {
        let mut log = TestLog::default();
        log.add_failed_read(InputFile { file: 1, origin: 7 }, 100, "ada");
        let kind = |named_fault| {
            kind_of_last(&log, |hold| {
                hold.stated = kind_of_code(6, 2);
                hold.named_fault = named_fault;
            })
        };
        assert_eq!(kind(NamedFault::Unknown), CauseKind::ClusterReason);
        assert_eq!(kind(NamedFault::Machine), CauseKind::File);
    }

    #[test]
    fn cause_of_a_probe_follows_from_the_words_and_not_from_the_code() {
        let kind = |reason: &str, codes| {
            let mut log = TestLog::default();
            log.add_failed_read(InputFile { file: 1, origin: 7 }, 100, "ada");
            log.add_reader(InputFile { file: 1, origin: 7 }, 120);
            log.add_reader(InputFile { file: 1, origin: 7 }, 130);
            log.state(.., read_reason(reason, Some(codes)).kind);
            kind_of_last(&log, |_| {})
        };
        let input = "Error from slot1@e: STARTER at 192.0.2.7 failed to receive file(s) from <192.0.2.9:1>; SHADOW at 192.0.2.9 failed to send file(s) to <192.0.2.7:1>: error reading from /x/a: (errno 2) No such file or directory";
        assert_eq!(kind(input, (12, 256)), CauseKind::File);
        let upload = "Transfer output files failure at execution point slot1@e using protocol https. Details: The requested URL returned error: 503 ( URL file = https://a.example/x )|";
        assert_eq!(kind(upload, (13, 1)), CauseKind::Origin);
        let fetched = "Error from slot1@e: STARTER at 192.0.2.7 failed to receive file /x/dir_1/a: FILETRANSFER:1:non-zero exit(28) from /usr/libexec/condor/curl_plugin";
        assert_eq!(kind(fetched, (12, 0)), CauseKind::File, "others got it");
    }

    #[test]
    fn successes_of_the_cluster_show_that_a_program_starts_whatever_the_code() {
        let mut log = TestLog::default();
        log.add_held(7, 90);
        let store = log.store();
        let started = |reason: &str, codes| {
            let mut hold = HoldHistory::new(&store).holds[0].clone();
            hold.stated = read_reason(reason, Some(codes)).kind;
            started_in_cluster(&hold, 3)
        };
        let program = "Error from slot1@e: Failed to execute '/home/ada/run.sh': (errno=2: 'No such file or directory')";
        assert_eq!(started(program, (13, 2)), 3);
        let stream = "Error from slot1@e: Failed to open '/home/ada/out' as standard output: No such file or directory (errno 2)";
        assert_eq!(started(stream, (6, 2)), 0);
    }

    #[test]
    fn file_that_a_server_lacks_while_it_sends_others_is_missing() {
        let mut log = TestLog::default();
        log.add_failed_read(InputFile { file: 1, origin: 7 }, 205, "ada");
        let store = log.store();
        let mut hold = HoldHistory::new(&store).holds[0].clone();
        hold.named_fault = NamedFault::Server;
        let fault = |hold: &PastHold, state| shown_fault(hold, state);
        assert_eq!(fault(&hold, OriginState::Works), NamedFault::Server);
        hold.is_perhaps_missing = true;
        assert_eq!(fault(&hold, OriginState::Works), NamedFault::Missing);
        assert_eq!(fault(&hold, OriginState::Fails), NamedFault::Server);
        let of_file = |fault| probe_kind(&hold, fault) == CauseKind::File;
        assert!(of_file(NamedFault::Missing) && !of_file(NamedFault::Server));
    }

    #[test]
    fn server_that_fails_again_is_the_cause_and_not_the_file() {
        let file = |file| InputFile { file, origin: 7 };
        let held = |begin_s| {
            let mut log = TestLog::default();
            log.add_failed_read(file(1), 100, "ada");
            for at in [150, 160] {
                log.add_reader(file(1), at);
            }
            log.add_failed_read(file(2), begin_s, "bob");
            log.add_failed_read(file(3), begin_s, "bob");
            log.add_failed_read(file(1), 120, "cy");
            log
        };
        let unchanged = |_: &mut PastHold| {};
        assert_eq!(kind_of_last(&held(110), unchanged), CauseKind::File);
        let failed_since = kind_of_last(&held(200), unchanged);
        assert_eq!(failed_since, CauseKind::Origin);
    }
}
