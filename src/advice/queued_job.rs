//! A job that is held in the queue, and the advice on it.

use std::collections::HashMap;
use std::sync::Arc;

use htcondor_holdreasons::{ReasonKind, read_reason};
use serde_json::Value;

use super::held_ids::HeldId;
use super::job_advice::{
    AdviceGround, AdviceVerdict, AdvisedHold, AdvisedJob, JobAdvice, NOTHING_WAS_LEARNED,
    SuccessForecast,
};
use super::job_command::JobId;
use super::queue_facts::{JobFiles, QueueFacts, SENT_IMAGE, absolute_path};
use super::remedy::{raised_memory, remedy_command};
use poolcast_base::escape::one_line;
use poolcast_base::shared_text::{NumberedText, SharedText, SharedTexts, SharedValues};
use poolcast_holds::decision::{Remedy, code_meaning, rule_without_odds};
use poolcast_holds::job_ads::ListedAd;

/// Maximum difference between the timestamps of one hold in the log and in the queue, s.
const CLOCK_SLACK_S: i64 = 5;

/// Upper limit for timestamps, epoch s; it is in the year 2445.
const MAX_TIME_S: i64 = 15_000_000_000;

/// A job that is held in the queue.
#[derive(Debug, Clone)]
pub(super) struct QueuedJob {
    pub(super) cluster: i32,
    pub(super) proc: i32,
    pub(super) ap: Option<SharedText>,
    owner: Option<SharedText>,
    hold_code: i32,
    hold_subcode: i32,
    /// What the hold reason states.
    stated: ReasonKind,
    reason: Option<NumberedText>,
    dag_node: Option<SharedText>,
    since_s: i64,
    submitted_s: i64,
    holds: u32,
    pub(super) facts: Arc<QueueFacts>,
}

impl QueuedJob {
    /// Reads the attributes of a held job. A value of an unexpected type counts as missing.
    ///
    /// # Errors
    /// Fails if the job has no valid id; the error is the reason in words.
    pub(super) fn from_ad(
        ad: &ListedAd,
        common: &mut CommonValues,
    ) -> Result<QueuedJob, &'static str> {
        let value = |name| ad.get(name).unwrap_or(&Value::Null);
        let number = |name| value(name).as_i64().unwrap_or(0);
        let moment_s = |name| number(name).clamp(0, MAX_TIME_S);
        let code = |name| i32::try_from(number(name)).unwrap_or(0);
        let words = |name| value(name).as_str().map(one_line);
        let mut text = |name| words(name).map(|text| common.texts.share(&text));
        let (program, submit_file) = (text("Cmd"), text("JobSubmitFile"));
        let dag_node = text("DAGNodeName");
        let id = |name| value(name).as_i64().and_then(|id| i32::try_from(id).ok());
        let (Some(cluster @ 0..), Some(proc @ 0..)) = (id("ClusterId"), id("ProcId")) else {
            return Err("its ClusterId and ProcId are not a job id");
        };

        let global_id = value("GlobalJobId").as_str();
        let access_point = global_id.and_then(|id| id.split_once('#'));
        let (hold_code, hold_subcode) = (code("HoldReasonCode"), code("HoldReasonSubCode"));
        let reason = value("HoldReason").as_str().unwrap_or("");
        Ok(QueuedJob {
            cluster,
            proc,
            ap: access_point.map(|(ap, _)| common.texts.share(ap)),
            owner: words("Owner").map(|owner| common.texts.share(&owner)),
            hold_code,
            hold_subcode,
            stated: read_reason(reason, Some((hold_code, hold_subcode))).kind,
            reason: words("HoldReason").map(|reason| common.texts.share_numbered(&reason)),
            dag_node,
            since_s: moment_s("EnteredCurrentStatus"),
            submitted_s: moment_s("QDate"),
            holds: u32::try_from(number("NumHolds")).unwrap_or(0).max(1),
            facts: common.facts.share(QueueFacts {
                request_memory: expression(value("RequestMemory"))
                    .map(|request| common.texts.share(&request)),
                memory_usage_mb: measured(value("MemoryUsage")),
                resident_set_kib: measured(value("ResidentSetSize")),
                job_starts: value("NumJobStarts").as_u64(),
                periodic_release: expression(value("PeriodicRelease"))
                    .filter(|rule| rule != "false")
                    .map(|rule| common.texts.share(&rule)),
                program,
                submit_file,
                files: job_files(ad, hold_code, &mut common.texts),
            }),
        })
    }

    fn held_id(&self) -> HeldId {
        HeldId {
            cluster: self.cluster,
            proc: self.proc,
            since_s: self.since_s,
            owner: self.owner.clone(),
            schedd: None,
        }
    }

    /// Returns true if `advice` is about the hold that the job is in now.
    pub(super) fn matches_hold_of(&self, advice: &JobAdvice) -> bool {
        let since_s = advice.held_since_s();
        let is_same_time = self.since_s == 0 || (self.since_s - since_s).abs() <= CLOCK_SLACK_S;
        is_same_time
            && (self.hold_code, self.hold_subcode) == (advice.hold.code, advice.hold.subcode)
    }

    /// Adds the facts that the log lacks to `advice`, which is about the present hold.
    pub(super) fn add_to(&self, advice: &mut JobAdvice) {
        if self.owner.is_some() {
            advice.set_owner(self.owner.clone());
        }
        // A queue that was asked for few attributes says less than the log.
        if self.dag_node.is_some() {
            advice.job.dag_node.clone_from(&self.dag_node);
        }
        if self.reason.is_some() {
            advice.hold.reason.clone_from(&self.reason);
            advice.hold.stated = self.stated;
        }
        let remedy = rule_without_odds(advice.hold.stated).map(|rule| rule.remedy);
        let request = self.facts.request_memory.as_ref();
        let requested_mb = request.and_then(|request| request.parse().ok());
        let is_expression = request.is_some() && requested_mb.is_none();
        if remedy == Some(Remedy::RaiseMemory) && advice.verdict.ground == AdviceGround::Rule {
            // The job's current request counts here, not the one at its submission.
            let used_mb = self.facts.used_memory_mb().max(advice.job.used_memory_mb);
            let by_queue =
                requested_mb.and_then(|requested_mb| raised_memory(requested_mb, used_mb));
            let by_log = advice.verdict.raise.filter(|_| !is_expression);
            // The log knows no usage after its end, but the queue does.
            let by_usage = by_log.and_then(|_| raised_memory(used_mb, used_mb));
            let raised = [by_queue, by_log, by_usage].into_iter().flatten();
            advice.verdict.raise = raised.max_by_key(|raised| raised.number);
            advice.verdict.command =
                remedy_command(Remedy::RaiseMemory, &advice.held_id(), advice.verdict.raise);
            if is_expression {
                let check = "RequestMemory is an expression: check its value before you change it";
                let reasons = advice.verdict.reasons.iter().cloned().chain([check.into()]);
                advice.verdict.reasons = reasons.collect();
            }
        }
        advice.job.queue = Some(Arc::clone(&self.facts));
    }

    /// Advises on a hold that is not in the log: by rule if its code or its reason has a rule. `ap` is the access
    /// point of a job for which the queue names none.
    pub(super) fn advice(
        &self,
        ap: &SharedText,
        asked_ms: i64,
        texts: &mut CodeTexts,
    ) -> JobAdvice {
        let (meaning, reasons) = texts.of_hold((self.hold_code, self.hold_subcode), self.stated);
        let ap = self.ap.as_ref().unwrap_or(ap);
        let id = JobId {
            cluster: self.cluster,
            proc: self.proc,
        };
        let mut advice = JobAdvice {
            job: AdvisedJob {
                owner: self.owner.clone(),
                dag_node: self.dag_node.clone(),
                ..AdvisedJob::new(id, ap.clone(), 1000 * self.submitted_s)
            },
            hold: AdvisedHold {
                code: self.hold_code,
                subcode: self.hold_subcode,
                meaning,
                stated: self.stated,
                since_ms: 1000 * self.since_s,
                for_ms: asked_ms - 1000 * self.since_s,
                holds: self.holds,
                holds_for_this_reason: 1,
                ..AdvisedHold::default()
            },
            verdict: match rule_without_odds(self.stated) {
                Some(rule) => AdviceVerdict::by_rule(&rule, &self.held_id(), None, reasons),
                None => AdviceVerdict::none(NOTHING_WAS_LEARNED, reasons),
            },
            forecast: SuccessForecast::default(),
        };
        self.add_to(&mut advice);
        advice
    }
}

/// Values that many jobs of a queue have in common.
#[derive(Debug)]
pub(super) struct CommonValues {
    texts: SharedTexts,
    facts: SharedValues<QueueFacts>,
}

impl CommonValues {
    pub(super) fn new() -> CommonValues {
        CommonValues {
            texts: SharedTexts::default(),
            facts: SharedValues::default(),
        }
    }
}

/// The meaning of a hold code, and the reasons for the advice by its rule.
type CodeText = (SharedText, Arc<[SharedText]>);

/// The texts of each hold code and subcode, and of what reasons state.
#[derive(Debug, Default)]
pub(super) struct CodeTexts(HashMap<((i32, i32), ReasonKind), CodeText>);

impl CodeTexts {
    fn of_hold(&mut self, codes: (i32, i32), stated: ReasonKind) -> CodeText {
        let texts = self.0.entry((codes, stated)).or_insert_with(|| {
            let unknown = "its hold is not in the log, so the model cannot predict its outcome";
            let why = rule_without_odds(stated).map(|rule| SharedText::from(rule.why().as_str()));
            let meaning = code_meaning(codes.0, codes.1).into();
            (meaning, why.into_iter().chain([unknown.into()]).collect())
        });
        texts.clone()
    }
}

/// Reads the files that a hold with `hold_code` may be about.
fn job_files(ad: &ListedAd, hold_code: i32, texts: &mut SharedTexts) -> JobFiles {
    let text = |name: &str| ad.get(name).and_then(Value::as_str);
    let is_sent = |name: &str| ad.get(name).and_then(Value::as_bool) != Some(false);
    let directory = text("Iwd");
    let mut file = |name: &str, is_wanted: bool| {
        let path = text(name).filter(|path| is_wanted && !path.contains("://"))?;
        absolute_path(path, directory).map(|path| texts.share(&path))
    };
    match hold_code {
        6 => JobFiles {
            executable: file("Cmd", is_sent("TransferExecutable")),
            ..JobFiles::default()
        },
        35 | 45 => JobFiles {
            image: file(SENT_IMAGE, true),
            ..JobFiles::default()
        },
        12..=14 => JobFiles {
            initial_directory: directory.map(|directory| texts.share(directory)),
            disk_usage_kib: ad.get("DiskUsage").and_then(Value::as_u64),
            ..JobFiles::default()
        },
        _ => JobFiles::default(),
    }
}

/// Returns a measured number, rounded up; `None` if `value` is not a number, but for example an
/// expression.
fn measured(value: &Value) -> Option<u64> {
    let rounded = || value.as_f64().filter(|number| *number >= 0.0);
    value.as_u64().or_else(|| Some(rounded()?.ceil() as u64))
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
