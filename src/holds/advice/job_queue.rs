//! Parses the output of `condor_q -json`, and corrects advice by the jobs that are held in the
//! queue.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::action::HoldAction;
use super::codes::{code_meaning, code_rule};
use super::job_advice::{AdviceGround, JobAdvice};
use super::log_words::one_line;
use super::queue_facts::QueueFacts;
use super::remedy::{Remedy, raised_memory};
use poolcast_base::error::hinted;

/// The job attributes that this program requests from `condor_q`.
pub const QUEUE_ATTRIBUTES: &str = "ClusterId,ProcId,JobStatus,GlobalJobId,Owner,QDate,EnteredCurrentStatus,HoldReasonCode,\
    HoldReasonSubCode,HoldReason,NumHolds,NumJobStarts,RequestMemory,MemoryUsage,PeriodicRelease";

/// HTCondor's `JobStatus` of a held job.
const HELD_STATUS: i64 = 5;

/// Maximum difference between the timestamps of one hold in the log and in the queue, s.
const CLOCK_SLACK_S: i64 = 5;

/// Upper limit for timestamps, epoch s; it is in the year 2445.
const MAX_TIME_S: i64 = 15_000_000_000;

/// A job's attributes, as the queue reports them. A value of an unexpected type counts as missing.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct QueuedAd {
    cluster_id: i32,
    proc_id: i32,
    #[serde(default)]
    job_status: Value,
    #[serde(default)]
    global_job_id: Value,
    #[serde(default)]
    owner: Value,
    #[serde(default)]
    q_date: Value,
    #[serde(default)]
    entered_current_status: Value,
    #[serde(default)]
    hold_reason_code: Value,
    #[serde(default)]
    hold_reason_sub_code: Value,
    #[serde(default)]
    hold_reason: Value,
    #[serde(default)]
    num_holds: Value,
    #[serde(default)]
    num_job_starts: Value,
    #[serde(default)]
    request_memory: Value,
    #[serde(default)]
    memory_usage: Value,
    #[serde(default)]
    periodic_release: Value,
}

/// A job that is held in the queue.
#[derive(Debug)]
struct QueuedJob {
    cluster: i32,
    proc: i32,
    ap: Option<String>,
    owner: Option<String>,
    hold_code: i32,
    hold_subcode: i32,
    reason: Option<String>,
    since_s: i64,
    submitted_s: i64,
    holds: u32,
    requested_mb: Option<u64>,
    facts: QueueFacts,
}

/// The held jobs in a queue.
#[derive(Debug)]
pub struct JobQueue {
    held: Vec<QueuedJob>,
    /// The index in `held` of each job, by cluster and proc.
    places: HashMap<(i32, i32), usize>,
}

/// The agreement between the log and the queue on the held jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QueueAgreement {
    /// Jobs that are held in the queue.
    pub held: usize,
    /// Jobs that are held in the queue, but whose hold is not in the log.
    pub not_in_log: usize,
    /// Jobs that are held in the log but not in the queue. They get no advice.
    pub not_in_queue: usize,
}

impl JobQueue {
    /// Parses `text`, the output of `condor_q -json`. An empty text means an empty queue.
    ///
    /// # Errors
    /// Fails if `text` is not a JSON list of jobs.
    pub fn parse(text: &[u8]) -> Result<JobQueue> {
        let ads: Vec<QueuedAd> = if text.trim_ascii().is_empty() {
            Vec::new()
        } else {
            serde_json::from_slice(text).with_context(|| {
                hinted(
                    "cannot parse the text as output of `condor_q -json`",
                    format!("condor_q -allusers -json -attributes {QUEUE_ATTRIBUTES}"),
                )
            })?
        };

        let mut queue = JobQueue {
            held: Vec::new(),
            places: HashMap::new(),
        };
        for ad in ads {
            if ad.job_status.as_i64() == Some(HELD_STATUS) {
                let job = QueuedJob::from_ad(&ad);
                let place = queue.held.len();
                queue.places.entry((job.cluster, job.proc)).or_insert(place);
                queue.held.push(job);
            }
        }
        Ok(queue)
    }

    /// The number of held jobs.
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// Returns true if the job is held in the queue.
    pub(super) fn has_held(&self, cluster: i32, proc: i32) -> bool {
        self.places.contains_key(&(cluster, proc))
    }

    /// Corrects `advice` by the queue, which has the final say on which jobs are held. Drops advice
    /// on other jobs, and adds attributes that the log lacks. A job whose hold is not in the log
    /// gets advice by rule, for the prediction time `asked_ms`. `ap` is the access point of jobs
    /// for which the queue names none.
    pub fn correct(
        &self,
        advice: Vec<JobAdvice>,
        ap: &str,
        asked_ms: i64,
    ) -> (Vec<JobAdvice>, QueueAgreement) {
        let in_log = advice.len();
        let mut is_known = vec![false; self.held.len()];
        let mut all = Vec::with_capacity(self.held.len());
        let mut released = 0;
        for mut one in advice {
            let Some(&place) = self.places.get(&(one.cluster, one.proc)) else {
                continue;
            };
            released += 1;
            let job = &self.held[place];
            // A job may be in another hold than the one in the log: then the advice is outdated.
            if job.matches_hold_of(&one) {
                is_known[place] = true;
                job.add_to(&mut one);
                all.push(one);
            }
        }

        let not_in_log = is_known.iter().filter(|known| !**known).count();
        for (job, _) in self
            .held
            .iter()
            .zip(&is_known)
            .filter(|(_, known)| !**known)
        {
            all.push(job.advice(ap, asked_ms));
        }
        all.sort_by(|a, b| (&a.ap, a.cluster, a.proc).cmp(&(&b.ap, b.cluster, b.proc)));
        let agreement = QueueAgreement {
            held: self.held.len(),
            not_in_log,
            not_in_queue: in_log - released,
        };
        (all, agreement)
    }
}

impl QueuedJob {
    fn from_ad(ad: &QueuedAd) -> QueuedJob {
        let number = |value: &Value| value.as_i64().unwrap_or(0);
        let moment_s = |value: &Value| number(value).clamp(0, MAX_TIME_S);
        let code = |value: &Value| i32::try_from(number(value)).unwrap_or(0);
        let words = |value: &Value| value.as_str().map(one_line);
        let access_point = ad.global_job_id.as_str().and_then(|id| id.split_once('#'));
        QueuedJob {
            cluster: ad.cluster_id,
            proc: ad.proc_id,
            ap: access_point.map(|(ap, _)| ap.to_owned()),
            owner: words(&ad.owner),
            hold_code: code(&ad.hold_reason_code),
            hold_subcode: code(&ad.hold_reason_sub_code),
            reason: words(&ad.hold_reason),
            since_s: moment_s(&ad.entered_current_status),
            submitted_s: moment_s(&ad.q_date),
            holds: u32::try_from(number(&ad.num_holds)).unwrap_or(0).max(1),
            requested_mb: ad.request_memory.as_u64(),
            facts: QueueFacts {
                request_memory: expression(&ad.request_memory),
                memory_usage_mb: ad.memory_usage.as_u64(),
                job_starts: ad.num_job_starts.as_u64(),
                periodic_release: expression(&ad.periodic_release).filter(|rule| rule != "false"),
            },
        }
    }

    /// Returns true if `advice` is about the hold that the job is in now.
    fn matches_hold_of(&self, advice: &JobAdvice) -> bool {
        let since_s = advice.held_since_ms.div_euclid(1000);
        let is_same_time = self.since_s == 0 || (self.since_s - since_s).abs() <= CLOCK_SLACK_S;
        is_same_time
            && (self.hold_code, self.hold_subcode) == (advice.hold_code, advice.hold_subcode)
    }

    /// Adds the facts that the log lacks to `advice`.
    fn add_to(&self, advice: &mut JobAdvice) {
        if self.owner.is_some() {
            advice.owner.clone_from(&self.owner);
        }
        if self.reason.is_some() {
            advice.reason.clone_from(&self.reason);
        }
        let remedy = code_rule(self.hold_code, self.hold_subcode).map(|rule| rule.remedy);
        let is_expression = self.facts.request_memory.is_some() && self.requested_mb.is_none();
        if remedy == Some(Remedy::RaiseMemory) && advice.ground == AdviceGround::Rule {
            // The job's current request counts here, not the one at its submission.
            let used_mb = self.facts.memory_usage_mb.unwrap_or(0);
            let by_queue = self
                .requested_mb
                .and_then(|requested_mb| raised_memory(requested_mb, used_mb));
            let by_log = advice.raise.filter(|_| !is_expression);
            let raised = by_queue.into_iter().chain(by_log);
            advice.raise = raised.max_by_key(|raised| raised.number);
            advice.command = Remedy::RaiseMemory.command(&advice.job, advice.raise);
            if is_expression {
                advice.reasons.push(
                    "RequestMemory is an expression: check its value before you change it"
                        .to_owned(),
                );
            }
        }
        advice.queue = Some(self.facts.clone());
    }

    /// Advises on a hold that is not in the log: by rule if its code has a rule.
    fn advice(&self, ap: &str, asked_ms: i64) -> JobAdvice {
        let job = format!("{}.{}", self.cluster, self.proc);
        let release = format!("condor_release {job}");
        let rule = code_rule(self.hold_code, self.hold_subcode);
        let unknown = "its hold is not in the log, so the model cannot predict its outcome";
        let mut advice = JobAdvice {
            ap: self.ap.clone().unwrap_or_else(|| ap.to_owned()),
            cluster: self.cluster,
            proc: self.proc,
            owner: None,
            action: rule.map_or(HoldAction::None, |rule| rule.action),
            ground: rule.map_or(AdviceGround::Nothing, |_| AdviceGround::Rule),
            firmness: None,
            evidence: None,
            reasons: rule.iter().map(|rule| rule.why.to_owned()).collect(),
            command: rule.and_then(|rule| rule.remedy.command(&job, None)),
            raise: None,
            then: rule
                .filter(|rule| rule.is_released_by_hand)
                .map(|_| release),
            hold_code: self.hold_code,
            hold_subcode: self.hold_subcode,
            meaning: code_meaning(self.hold_code, self.hold_subcode),
            reason: None,
            hold_text_hash: 0,
            submitted_ms: 1000 * self.submitted_s,
            held_since_ms: 1000 * self.since_s,
            held_for_ms: asked_ms - 1000 * self.since_s,
            holds: self.holds,
            holds_for_this_reason: 1,
            siblings_held: 0,
            probability: None,
            like_cases: None,
            queue: None,
            job,
        };
        advice.reasons.push(unknown.to_owned());
        self.add_to(&mut advice);
        advice
    }
}

/// Formats a value as the job's ClassAd has it, on one line; `None` if it is missing.
fn expression(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => {
            let inner = text
                .strip_prefix("/Expr(")
                .and_then(|rest| rest.strip_suffix(")/"));
            Some(one_line(inner.unwrap_or(text)))
        }
        other => Some(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(text: &str) -> JobQueue {
        JobQueue::parse(text.as_bytes()).expect("a queue")
    }

    #[test]
    fn jobs_whose_hold_is_not_in_the_log_are_advised_on_by_rule() {
        let queue = queue(
            r#"[{"ClusterId": 7, "ProcId": 1, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102, "Owner": "ada",
                 "EnteredCurrentStatus": 100, "RequestMemory": 1000, "MemoryUsage": 2000, "NumJobStarts": 3, "GlobalJobId": "ap#7.1#9"},
                {"ClusterId": 7, "ProcId": 2, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102, "RequestMemory": "/Expr(2 * $(reboot))/"},
                {"ClusterId": 7, "ProcId": 3, "JobStatus": 5, "HoldReasonCode": 12},
                {"ClusterId": 8, "ProcId": 0, "JobStatus": 2}]"#,
        );
        let (advice, agreement) = queue.correct(Vec::new(), "log", 200_000);
        let said: Vec<_> = advice
            .iter()
            .map(|one| (&one.job[..], one.action, one.command.as_deref()))
            .collect();
        assert_eq!(
            said,
            [
                (
                    "7.1",
                    HoldAction::Fix,
                    Some("condor_qedit 7.1 RequestMemory 3072")
                ),
                ("7.2", HoldAction::Fix, Some("condor_q -hold 7.2")),
                ("7.3", HoldAction::None, None),
            ]
        );
        assert_eq!(
            (agreement.held, agreement.not_in_log, agreement.not_in_queue),
            (3, 3, 0)
        );
        let shown = advice[1]
            .queue
            .as_ref()
            .and_then(|facts| facts.request_memory.as_deref());
        assert_eq!(shown, Some("2 * $(reboot)"));
    }

    #[test]
    fn hostile_queues_are_rejected_or_harmless() {
        assert!(queue("").held.is_empty());
        assert!(queue("[]").held.is_empty());
        for text in [
            "{}",
            "[1]",
            "[{}]",
            "[{\"ClusterId\": 1e99, \"ProcId\": 0}]",
            &"[".repeat(100_000),
        ] {
            assert!(
                JobQueue::parse(text.as_bytes()).is_err(),
                "{}",
                &text[..text.len().min(40)]
            );
        }
        let odd = queue(
            r#"[{"ClusterId": 1, "ProcId": -1, "JobStatus": 5, "EnteredCurrentStatus": -9223372036854775808, "HoldReasonCode": "x",
                 "RequestMemory": 18446744073709551615, "MemoryUsage": 18446744073709551615, "HoldReason": 5, "Owner": ["a"]},
                {"ClusterId": 1, "ProcId": 0, "JobStatus": 5, "HoldReasonCode": 34, "HoldReasonSubCode": 102,
                 "RequestMemory": 18446744073709551615, "EnteredCurrentStatus": 9223372036854775807}]"#,
        );
        let (advice, _) = odd.correct(Vec::new(), "log", 0);
        assert_eq!(advice.len(), 2);
        assert_eq!(
            super::super::cause_groups(&advice, &advice.iter().collect::<Vec<_>>()).len(),
            2
        );
    }
}
