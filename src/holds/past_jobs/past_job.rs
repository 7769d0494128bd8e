//! A job of the history, and its events in order.

use serde_json::Value;

use super::past_event::{PastEvent, PastEventBody};
use super::stated_end::{EndKind, StatedEnd};
use super::stated_run::{StatedRun, past_time_s};
use crate::job_ads::ListedAd;

/// A job of the history.
#[derive(Debug, Clone, Default)]
pub(super) struct PastJob {
    /// The attributes of the job that event 028 gets, such as `Owner`.
    description: Vec<(&'static str, Value)>,
    /// Time of the ad that they are from, epoch seconds: the end of its run, or [`i64::MAX`] for the
    /// end of the job.
    described_s: Option<i64>,
    /// The runs that have ads in the history, in any order.
    runs: Vec<StatedRun>,
    end: Option<StatedEnd>,
    /// Memory that the job used, in MiB.
    memory_mb: Option<i64>,
}

/// The events of a job, and what they are worth.
#[derive(Debug, Default)]
pub(super) struct PastTimeline {
    pub(super) events: Vec<PastEvent>,
    /// True if the time of the last hold is an estimate.
    pub(super) has_estimate: bool,
    /// Number of holds.
    pub(super) holds: usize,
    /// Number of further holds that the job had. Each of them led to another hold.
    pub(super) missing_holds: usize,
}

/// Maximum length of a text in the description of a job.
const MAX_TEXT_CHARS: usize = 1024;

/// The attributes of a job that event 028 gets.
pub(super) const DESCRIBING_ATTRIBUTES: [&str; 9] = [
    "Owner",
    "JobBatchName",
    "DAGNodeName",
    "RequestCpus",
    "RequestGPUs",
    "RequestMemory",
    "RequestDisk",
    "TransferInput",
    "Iwd",
];

impl PastJob {
    /// Adds an ad of this job: of a run, or of the ended job.
    pub(super) fn add(&mut self, ad: &ListedAd, submit_s: i64) {
        if ad.contains_key("EpochWriteDate") {
            self.runs.extend(StatedRun::of_ad(ad));
        } else if let Some(end) = StatedEnd::of_ad(ad, submit_s) {
            self.end = Some(end);
        }
        let described_s = past_time_s(ad, "EpochWriteDate").unwrap_or(i64::MAX);
        if self
            .described_s
            .is_none_or(|before_s| described_s < before_s)
        {
            self.described_s = Some(described_s);
            self.description = DESCRIBING_ATTRIBUTES
                .into_iter()
                .filter_map(|name| Some((name, describing_value(ad.get(name)?)?)))
                .collect();
        }
        let resident_kib = ad.get("ResidentSetSize").and_then(Value::as_i64);
        let memory_mb = ad.get("MemoryUsage").and_then(Value::as_i64);
        let resident_mb = resident_kib.map(|kib| kib.max(0).cast_unsigned().div_ceil(1024) as i64);
        self.memory_mb = memory_mb.or(resident_mb).or(self.memory_mb);
    }

    /// Returns the known attributes of the job at its submission. If the first ad is later than a
    /// hold, the requests in it may have been raised meanwhile, and are unknown.
    pub(super) fn description(&self) -> impl Iterator<Item = &(&'static str, Value)> {
        let was_held = (self.end.as_ref()).is_some_and(|end| end.last_hold.is_some());
        let may_be_changed = was_held && self.described_s == Some(i64::MAX);
        (self.description.iter())
            .filter(move |(name, _)| !may_be_changed || !name.starts_with("Request"))
    }

    /// Returns true if only the queue knows of the job: if it has not ended, and has no ad of a run, or
    /// if it is held.
    pub(super) fn is_of_queue(&self) -> bool {
        match &self.end {
            Some(end) => end.ending == EndKind::StillHeld,
            None => self.runs.is_empty(),
        }
    }

    /// Returns the events of the job.
    pub(super) fn timeline(&self, submit_s: i64) -> PastTimeline {
        let mut runs = self.ordered_runs();
        let has_estimate = (self.end.as_ref()).is_some_and(|end| end.complete(&mut runs));
        let mut timeline = PastTimeline {
            has_estimate,
            ..PastTimeline::default()
        };
        timeline.push(submit_s, PastEventBody::Submitted);

        let mut is_held = false;
        for run in runs {
            if let Some(start_s) = run.start_s {
                if std::mem::take(&mut is_held) {
                    timeline.push(start_s, PastEventBody::Released);
                }
                timeline.push(start_s, PastEventBody::Started { slot: run.slot });
            }
            if let Some(hold) = run.hold {
                if std::mem::replace(&mut is_held, true) {
                    timeline.push(run.end_s, PastEventBody::Released);
                }
                timeline.push(run.end_s, PastEventBody::Held(hold));
                timeline.holds += 1;
            }
        }
        if let Some(end) = &self.end {
            if is_held && end.was_released() {
                timeline.push(end.end_s, PastEventBody::Released);
            }
            if end.ending != EndKind::StillHeld {
                timeline.push(end.end_s, self.ended(&end.ending));
            }
            timeline.missing_holds = end.stated_holds().saturating_sub(timeline.holds);
        }
        timeline
    }

    fn ended(&self, ending: &EndKind) -> PastEventBody {
        PastEventBody::Ended {
            ending: ending.clone(),
            memory_mb: self.memory_mb,
        }
    }

    /// Returns the runs with ads in order, each once. HTCondor writes some ads twice, and only one of
    /// them has the hold.
    fn ordered_runs(&self) -> Vec<StatedRun> {
        let mut runs = self.runs.clone();
        runs.sort_by_key(|run| (run.start_s, run.hold.is_none(), run.end_s));
        runs.dedup_by_key(|run| run.start_s);
        runs
    }
}

/// Returns the value of a describing attribute: a short text or a number. Expressions do not count.
fn describing_value(value: &Value) -> Option<Value> {
    match value {
        Value::String(text) if text.starts_with("/Expr(") => None,
        Value::String(text) => Some(Value::from(first_names(text))),
        Value::Number(_) => value.as_f64().map(|number| Value::from(number as i64)),
        _ => None,
    }
}

/// Returns the beginning of `text` that fits the limit. A list ends with a whole name.
fn first_names(text: &str) -> &str {
    let Some((end, _)) = text.char_indices().nth(MAX_TEXT_CHARS) else {
        return text;
    };
    let first = &text[..end];
    first.rsplit_once(',').map_or(first, |(names, _)| names)
}

impl PastTimeline {
    /// Adds an event at `time_s`, or at the time of the event before it if that is later.
    fn push(&mut self, time_s: i64, body: PastEventBody) {
        let before_s = self.events.last().map(|event| event.time_s);
        self.events.push(PastEvent {
            time_s: before_s.map_or(time_s, |before_s| before_s.max(time_s)),
            body,
        });
    }
}
