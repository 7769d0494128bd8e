//! What `condor_q -json` says of jobs → which are held now, and what the log does not say of them.

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

/// The attributes that are read of a job.
pub const QUEUE_ATTRIBUTES: &str = "ClusterId,ProcId,JobStatus,GlobalJobId,Owner,QDate,EnteredCurrentStatus,HoldReasonCode,\
    HoldReasonSubCode,HoldReason,NumHolds,NumJobStarts,RequestMemory,MemoryUsage,PeriodicRelease";

/// HTCondor's number for a job that is held.
const HELD_STATUS: i64 = 5;

/// A hold in the log and in the queue are one if their stamps differ by no more, s.
const CLOCK_SLACK_S: i64 = 5;

/// No moment is later, epoch s: the year 2446.
const LATEST_S: i64 = 15_000_000_000;

/// A job as the queue has it. What is of another type than expected is as good as missing.
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

/// The jobs that a queue has.
#[derive(Debug)]
pub struct JobQueue {
    held: Vec<QueuedJob>,
    /// The place in `held` of each job.
    places: HashMap<(i32, i32), usize>,
}

/// How the log and the queue agree on who is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct QueueAgreement {
    /// Jobs that are held in the queue.
    pub held: usize,
    /// Those of them whose hold is not in the log.
    pub not_in_log: usize,
    /// Jobs that are held in the log and not in the queue: they are left out.
    pub not_in_queue: usize,
}

impl JobQueue {
    /// The jobs in `text`, as `condor_q -json` prints them: nothing at all where there is none.
    ///
    /// # Errors
    /// Fails for what is no such list.
    pub fn parse(text: &[u8]) -> Result<JobQueue> {
        let ads: Vec<QueuedAd> = if text.trim_ascii().is_empty() {
            Vec::new()
        } else {
            serde_json::from_slice(text).with_context(|| {
                hinted(
                    "this is not what `condor_q -json` prints",
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
                let job = QueuedJob::of_ad(&ad);
                let place = queue.held.len();
                queue.places.entry((job.cluster, job.proc)).or_insert(place);
                queue.held.push(job);
            }
        }
        Ok(queue)
    }

    /// How many jobs are held.
    pub fn held_count(&self) -> usize {
        self.held.len()
    }

    /// Whether it has the job as held.
    pub(super) fn has_held(&self, cluster: i32, proc: i32) -> bool {
        self.places.contains_key(&(cluster, proc))
    }

    /// Lets the queue decide which jobs are held: leaves out `advice` on others, adds what the log
    /// does not tell, and advice by rule on jobs whose hold is not in the log, which is asked
    /// about at `asked_ms`. `ap` is the access point where the queue does not name it.
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
            if job.is_hold_of(&one) {
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
    fn of_ad(ad: &QueuedAd) -> QueuedJob {
        let number = |value: &Value| value.as_i64().unwrap_or(0);
        let moment_s = |value: &Value| number(value).clamp(0, LATEST_S);
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

    /// Whether `advice` is on the hold that it is in now.
    fn is_hold_of(&self, advice: &JobAdvice) -> bool {
        let since_s = advice.held_since_ms.div_euclid(1000);
        let is_one_time = self.since_s == 0 || (self.since_s - since_s).abs() <= CLOCK_SLACK_S;
        is_one_time
            && (self.hold_code, self.hold_subcode) == (advice.hold_code, advice.hold_subcode)
    }

    /// Adds what the log does not say.
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
            // What the job asks for now counts, and not what it was submitted with.
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
                    "RequestMemory is an expression: see what it comes to before you change it"
                        .to_owned(),
                );
            }
        }
        advice.queue = Some(self.facts.clone());
    }

    /// Advice where the log does not tell of the hold: by rule, if the code has one.
    fn advice(&self, ap: &str, asked_ms: i64) -> JobAdvice {
        let job = format!("{}.{}", self.cluster, self.proc);
        let release = format!("condor_release {job}");
        let rule = code_rule(self.hold_code, self.hold_subcode);
        let unknown = "its hold is not in the log, so that the model cannot be asked";
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

/// A value as it is written in an ad, on one line; `None` where there is none.
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
    fn hostile_queues_are_refused_or_say_nothing() {
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
