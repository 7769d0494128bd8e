//! Judges each held job: by what was learned, or else by rules for what hold reasons state.

use std::collections::HashMap;
use std::sync::Arc;

use anyhow::Result;

use super::advice_basis::AdviceModel;
use super::decide::{
    AnswerNotes, MIN_SIMILAR_HOLDS, PassedSince, SimilarOutcomes, decide_by_answer,
    rule_evidence_words, shared, similar_holds_words,
};
use super::held_ids::HeldId;
use super::held_jobs::{HeldJob, held_jobs};
use super::job_advice::{
    AdviceGround, AdviceVerdict, AdvisedHold, AdvisedJob, JobAdvice, NOTHING_WAS_LEARNED,
    SimilarHoldKind, SimilarHolds, SuccessForecast,
};
use super::job_command::JobId;
use super::job_queue::JobQueue;
use super::remedy::{action_commands, raised_request, used_memory_mb};
use htcondor_eventlog::{EXECUTE, TERMINATED};
use poolcast_base::error::EXIT_DONE;
use poolcast_events::{EventStore, StoredJob};
use poolcast_holds::answers::{FRAME_S, ThingState, stated_kind};
use poolcast_holds::config::AdviceConfig;
use poolcast_holds::decision::{
    AskedAnswers, HeldEvidence, HoldAction, HoldRule, code_meaning, rule_without_odds,
};
use poolcast_tensors::{
    HoldRecordKind, HoldRecords, OutcomeCounts, OutcomeRecord, PoolHistory, QueriedHold,
};

/// Why there is no advice if events are missing after the hold, so that the job may not be held any more.
const MISSING_EVENTS: &str =
    "events are missing after its hold, so the log does not show whether it is still held";

/// Why there is no advice if neither a rule nor a model knows a reason.
const NOTHING_LEARNED: &str = "no rule is known for this reason, and nothing was learned from this log: too few outcomes are known";

/// Judges the jobs of `store` that are held at its end, by the `model` if there is one, or else by rule. Where events
/// are missing from the log, `queue` decides which jobs are still held. The model must have no objection to `store`.
///
/// # Errors
/// Fails if the model cannot compute the odds.
pub fn advise(
    store: &EventStore,
    model: Option<AdviceModel<'_>>,
    settings: &AdviceConfig,
    queue: Option<&JobQueue>,
) -> Result<Vec<JobAdvice>> {
    let held = held_jobs(store);
    let asked_ms = store.summary.end_ms;
    let asked: Vec<QueriedHold> = held.iter().map(|held| held.asked).collect();
    let answers = model
        .map(|model| AskedAnswers::new(store, model.answers, &asked, asked_ms))
        .transpose()?;
    let judge = HoldJudge {
        store,
        settings,
        history: PoolHistory::new(store, FRAME_S),
        answers,
        queue,
        held_by_reason: count_held_by_reason(&held),
        successes: successes_of_clusters(store, &held),
        asked_ms,
    };
    Ok(held.iter().map(|held| judge.advise_on(held)).collect())
}

/// Access point, cluster, and the code and subcode of a hold.
type ClusterHoldReason = (u32, i32, (i32, i32));

fn cluster_and_reason(held: &HeldJob<'_>) -> ClusterHoldReason {
    (held.job.ap, held.job.cluster, held.reason())
}

/// Returns the job for commands. No store has the names of owners.
fn held_id(held: &HeldJob<'_>) -> HeldId {
    let since_ms = held.job.history.time_ms[held.asked.cycle.hold];
    HeldId {
        cluster: held.job.cluster,
        proc: held.job.proc,
        since_s: since_ms.div_euclid(1000),
        owner: None,
        schedd: None,
    }
}

/// Counts the held jobs by cluster and reason.
fn count_held_by_reason(held: &[HeldJob<'_>]) -> HashMap<ClusterHoldReason, usize> {
    let mut alike = HashMap::new();
    for held in held {
        *alike.entry(cluster_and_reason(held)).or_default() += 1;
    }
    alike
}

/// Returns the starts of the last runs of jobs that succeeded, by cluster, for the clusters of `held`.
fn successes_of_clusters(
    store: &EventStore,
    held: &[HeldJob<'_>],
) -> HashMap<(u32, i32), Vec<i64>> {
    let of_cluster = |job: &StoredJob<'_>| (job.ap, job.cluster);
    let mut starts: HashMap<(u32, i32), Vec<i64>> =
        (held.iter().map(|held| (of_cluster(&held.job), Vec::new()))).collect();
    for job in store.jobs().iter() {
        let history = job.history;
        let last = |number| history.number.iter().rposition(|&found| found == number);
        if let Some(starts) = starts.get_mut(&of_cluster(&job))
            && let Some((start, end)) = last(EXECUTE).zip(last(TERMINATED))
            && (history.normal[end], history.value[end]) == (1, 0)
        {
            starts.push(history.time_ms[start]);
        }
    }
    starts
}

/// Judges single jobs, with the data that all of them share.
struct HoldJudge<'a> {
    store: &'a EventStore,
    settings: &'a AdviceConfig,
    queue: Option<&'a JobQueue>,
    history: PoolHistory,
    /// Answers for questions in the middle of a hold.
    answers: Option<AskedAnswers>,
    /// Number of held jobs, by cluster and reason.
    held_by_reason: HashMap<ClusterHoldReason, usize>,
    /// Starts of the last runs of jobs that succeeded, epoch ms, by cluster.
    successes: HashMap<(u32, i32), Vec<i64>>,
    /// Prediction time, epoch ms.
    asked_ms: i64,
}

impl HoldJudge<'_> {
    /// Judges one job, and adds the facts about it.
    fn advise_on(&self, held: &HeldJob<'_>) -> JobAdvice {
        let similar = self.similar_holds(held);
        let verdict = self.judge(held, similar);
        JobAdvice {
            job: self.advised_job(held),
            hold: self.advised_hold(held),
            forecast: self.forecast(held, verdict.ground, similar),
            verdict,
        }
    }

    fn advised_job(&self, held: &HeldJob<'_>) -> AdvisedJob {
        let StoredJob { cluster, proc, .. } = held.job;
        let ap = self.store.summary.aps[held.job.ap as usize].as_str();
        AdvisedJob {
            used_memory_mb: used_memory_mb(&held.job),
            requested_memory_mb: held.job.request.memory_mb.into(),
            ..AdvisedJob::new(JobId { cluster, proc }, ap.into(), held.job.submit_ms)
        }
    }

    fn advised_hold(&self, held: &HeldJob<'_>) -> AdvisedHold {
        let (code, subcode) = held.reason();
        let history = held.job.history;
        AdvisedHold {
            code,
            subcode,
            meaning: code_meaning(code, subcode).into(),
            reason: None,
            stated: stated_kind(&held.job, held.asked.cycle.hold),
            text_hash: history.text_hash[held.asked.cycle.hold],
            since_ms: history.time_ms[held.asked.cycle.hold],
            for_ms: self.held_for_ms(held),
            holds: held.asked.cycle.earlier_holds + 1,
            holds_for_this_reason: held.holds_for_this_reason(),
            siblings_held: self.held_by_reason[&cluster_and_reason(held)] - 1,
            succeeded_since: self.succeeded_since(held),
            is_unknown: self.is_unknown(held),
        }
    }

    /// Returns what was learned about the success of the job, for which a verdict has the source `ground`.
    fn forecast(
        &self,
        held: &HeldJob<'_>,
        ground: AdviceGround,
        similar: SimilarOutcomes,
    ) -> SuccessForecast {
        let is_by_probability = ground != AdviceGround::Rule;
        let known = self.evidence(held);
        let answers = self.answers.as_ref().filter(|_| is_by_probability);
        let evidence = known.filter(|_| is_by_probability);
        let probability = evidence.and_then(HeldEvidence::stated_probability);
        SuccessForecast {
            probability,
            later_probability: evidence.and_then(HeldEvidence::stated_later),
            good_until_ms: answers.map(|answers| answers.good_until_ms),
            probes: Arc::default(),
            state: self.state(held).cloned(),
            is_known_from_elsewhere: probability.is_some()
                && evidence.is_some_and(HeldEvidence::is_known_from_elsewhere),
            has_outcomes_here: similar.contradict_rule()
                || known.is_some_and(HeldEvidence::has_outcomes_here),
            like_cases: similar.all.filter(|_| is_by_probability).map(Box::new),
        }
    }

    /// Returns the evidence on the hold; `None` if there is no answer model.
    fn evidence(&self, held: &HeldJob<'_>) -> Option<&HeldEvidence> {
        self.answers.as_ref()?.evidence(&held.asked)
    }

    /// Collects the outcomes of holds like one.
    fn similar_holds(&self, held: &HeldJob<'_>) -> SimilarOutcomes {
        let job = self.store.jobs().get(held.asked.job as usize);
        let records = self.history.facts(&job, &held.asked).records;
        SimilarOutcomes {
            all: similar_holds(&records),
            of_reason: holds_for_reason(&records),
            passed_since: passed_since(held, &records),
        }
    }

    /// Judges by the answer about the hold. Without one, a rule for what its reason states decides, if holds for the
    /// same reason do not contradict it.
    fn judge(&self, held: &HeldJob<'_>, similar: SimilarOutcomes) -> AdviceVerdict {
        if self.is_unknown(held) {
            return AdviceVerdict::none("events_are_missing", [MISSING_EVENTS.into()].into());
        }
        if let Some(verdict) = self.judge_by_answer(held, similar) {
            return verdict;
        }
        let stated = stated_kind(&held.job, held.asked.cycle.hold);
        match rule_without_odds(stated) {
            Some(rule) if !(rule.can_be_outweighed() && similar.contradict_rule()) => {
                rule_verdict(&rule, held, rule_reasons(&rule, similar.of_reason))
            }
            _ => AdviceVerdict::none(NOTHING_WAS_LEARNED, [NOTHING_LEARNED.into()].into()),
        }
    }

    /// Returns true if events are missing, so that only the queue could confirm that the job is still
    /// held, and it does not.
    fn is_unknown(&self, held: &HeldJob<'_>) -> bool {
        let is_in_queue = |queue: &JobQueue| queue.has_held(held.job.cluster, held.job.proc);
        !held.is_known && !self.queue.is_some_and(is_in_queue)
    }

    /// Judges by the answer about the hold; `None` if there is no answer model.
    fn judge_by_answer(
        &self,
        held: &HeldJob<'_>,
        similar: SimilarOutcomes,
    ) -> Option<AdviceVerdict> {
        let answers = self.answers.as_ref()?;
        let evidence = answers.evidence(&held.asked)?;
        let answer = answers.answer(evidence, self.settings);
        if let Some(rule) = evidence.hold.rule.filter(|_| answer.is_by_rule) {
            let mut reasons = rule_reasons(&rule, similar.of_reason);
            reasons.extend(rule_evidence_words(&rule, evidence));
            reasons.extend(answers.why_certain(&answer, evidence, self.held_for_ms(held)));
            return Some(AdviceVerdict {
                firmness: answer.firmness,
                ..rule_verdict(&rule, held, reasons)
            });
        }
        let notes = AnswerNotes {
            reached: answers.limit(&answer, evidence),
            state: answers.state(evidence).map(|state| **state),
            why_no_odds: answers.why_no_odds(evidence, self.held_for_ms(held)),
            lacks_outcomes: answers.lacks_outcomes(&answer, evidence, self.settings),
            recovered: answers.recovered(&answer),
        };
        // With known costs, these decide and not what is known of the owner.
        let lacks_outcomes = notes.lacks_outcomes && self.settings.cost.is_none();
        let verdict = decide_by_answer(self.settings, answer, evidence, notes, similar);
        let is_probe = verdict.action == HoldAction::Probe;
        let (command, then) = action_commands(verdict.action, &held_id(held));
        // Only the probes of a cause are released now, and only if no other job of it runs.
        let is_released = evidence.cause.is_probe && !evidence.cause.awaits_outcome;
        Some(AdviceVerdict {
            command: command.filter(|_| !is_probe || is_released),
            then,
            probe_cause: is_probe.then_some(evidence.cause.key),
            lacks_outcomes,
            ..verdict
        })
    }

    /// Returns the state of the thing that the job is held for.
    fn state(&self, held: &HeldJob<'_>) -> Option<&Arc<ThingState>> {
        self.answers.as_ref()?.state(self.evidence(held)?)
    }

    /// Counts the jobs of its cluster that started since the hold, and succeeded.
    fn succeeded_since(&self, held: &HeldJob<'_>) -> usize {
        let held_ms = held.job.history.time_ms[held.asked.cycle.hold];
        let starts = self.successes.get(&(held.job.ap, held.job.cluster));
        starts.map_or(0, |starts| {
            starts.iter().filter(|&&ms| ms >= held_ms).count()
        })
    }

    fn held_for_ms(&self, held: &HeldJob<'_>) -> i64 {
        self.asked_ms - held.job.history.time_ms[held.asked.cycle.hold]
    }
}

fn rule_verdict(rule: &HoldRule, held: &HeldJob<'_>, reasons: Vec<String>) -> AdviceVerdict {
    let raise = raised_request(rule.remedy, &held.job);
    AdviceVerdict::by_rule(rule, &held_id(held), raise, shared(reasons))
}

/// States why `rule` decides, with the outcomes of holds for the same reason.
fn rule_reasons(rule: &HoldRule, of_reason: SimilarHolds) -> Vec<String> {
    let is_supported = rule.expects_failure() && of_reason.holds > 0;
    let outcomes = is_supported.then(|| similar_holds_words(of_reason));
    [rule.why()].into_iter().chain(outcomes).collect()
}

/// Returns what `held` shares with a job that was released since it is held, and got past the fault
/// that the reason names.
fn passed_since(held: &HeldJob<'_>, records: &HoldRecords) -> Option<PassedSince> {
    let stated = stated_kind(&held.job, held.asked.cycle.hold);
    let held_for_ms = held.asked.asked_ms - held.job.history.time_ms[held.asked.cycle.hold];
    let is_since = |ago_ms: Option<i64>| ago_ms.is_some_and(|ago_ms| ago_ms < held_for_ms);
    if stated.is_of_file() && is_since(records.since_passed_for_reason_ms) {
        return Some(PassedSince::Reason);
    }
    let is_from_host = stated.is_of_start_file() && is_since(records.since_passed_from_host_ms);
    is_from_host.then_some(PassedSince::Host)
}

/// Returns the outcomes of holds for the same reason. If too few are known, uses all holds with the
/// same code and subcode instead.
fn similar_holds(records: &HoldRecords) -> Option<SimilarHolds> {
    let of_reason = holds_for_reason(records);
    let of_code =
        SimilarHolds::from_record(SimilarHoldKind::Code, records.holds(HoldRecordKind::Code));
    let is_enough = of_reason.holds >= MIN_SIMILAR_HOLDS || of_reason.holds == of_code.holds;
    let similar = if is_enough { of_reason } else { of_code };
    (similar.holds > 0).then_some(similar)
}

/// Returns the outcomes of holds for the same reason.
fn holds_for_reason(records: &HoldRecords) -> SimilarHolds {
    let record = records.holds(HoldRecordKind::Reason);
    SimilarHolds::from_record(SimilarHoldKind::Reason, record)
}

impl SimilarHolds {
    fn from_record(kind: SimilarHoldKind, record: &OutcomeRecord) -> SimilarHolds {
        let OutcomeCounts { successes, .. } = record.outcomes;
        let holds = record.outcomes.decided();
        SimilarHolds {
            kind,
            holds: holds as usize,
            successes: successes as usize,
            rate: f64::from(successes) / f64::from(holds.max(1)),
            last_10_successes: record.last_10.successes as usize,
        }
    }
}

/// Returns the exit code for `advice`: the code of its action if all actions agree, or else the
/// code of no advice. Returns 0 if `advice` is empty, because no job is held.
pub fn exit_code(advice: &[&JobAdvice]) -> u8 {
    let Some(first) = advice.first() else {
        return EXIT_DONE;
    };
    let agreed = advice
        .iter()
        .all(|advice| advice.verdict.action == first.verdict.action);
    if agreed {
        first.verdict.action.exit_code()
    } else {
        HoldAction::None.exit_code()
    }
}
