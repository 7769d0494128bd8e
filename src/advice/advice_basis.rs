//! The basis of advice: facts about the log and the model, and caveats about both.

use serde::{Deserialize, Serialize};

use super::rehearsed_actions::RehearsedActions;
use htcondor_eventlog::HELD;
use poolcast_base::moment::DAY_MS;
use poolcast_base::output;
use poolcast_events::{EventStore, HoldSource, StoreSummary};
use poolcast_holds::answers::LearnedAnswers;
use poolcast_holds::rehearsal::{Proportion, RehearsalTally};
use poolcast_tensors::cutoffs_ms;

/// A caveat on holds from a history.
const HISTORY_CAVEAT: &str = "of jobs in the history, known are the last hold and the end, and the holds that ended runs where it has them";

/// How right the answers about held jobs would have been on the log that they were learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RehearsedSkill {
    /// Answers that were right about whether the fault passes or stays.
    pub kind_right: Proportion,
    /// Firm answers that were right.
    pub firm_right: Proportion,
    /// Right answers, by action; 0 of 0 after a rehearsal by an earlier version.
    #[serde(default)]
    pub by_action: RehearsedActions,
}

impl RehearsedSkill {
    /// Returns true if the numbers are possible in a rehearsal. A file may have any.
    pub(super) fn is_valid(&self) -> bool {
        let counts = [self.kind_right, self.firm_right];
        counts.iter().all(|share| share.count <= share.of) && self.by_action.is_valid()
    }
}

impl From<&RehearsalTally> for RehearsedSkill {
    fn from(tally: &RehearsalTally) -> RehearsedSkill {
        RehearsedSkill {
            kind_right: tally.advice.kind_right,
            firm_right: tally.firm_right,
            by_action: tally.into(),
        }
    }
}

/// The origin of a model: its training data, and its rehearsal.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ModelOrigin {
    /// The skill of the answers, if they were rehearsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsed: Option<RehearsedSkill>,
    /// The access points whose jobs the model learned from; empty if they are unknown.
    pub access_points: Vec<String>,
    /// Time of the first event that the model learned from, epoch ms; `None` if it is unknown.
    pub from_ms: Option<i64>,
    /// What the model learned from.
    #[serde(default, skip_serializing_if = "HoldSource::is_log")]
    pub source: HoldSource,
}

/// The model that judges held jobs.
#[derive(Debug, Clone, Copy)]
pub struct AdviceModel<'a> {
    /// The model for questions in the middle of a hold.
    pub answers: &'a LearnedAnswers,
    /// Its origin.
    pub origin: &'a ModelOrigin,
}

/// The reason why a model must not judge the jobs of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelObjection {
    /// The model has learned from later events than the log has.
    LearnedLater,
    /// The model is out of date, or learned from another access point, in words.
    Caveat(String),
}

impl AdviceModel<'_> {
    /// Returns the reason why the model must not judge the jobs of `store` at its end; `None` if it may.
    pub fn objection(&self, store: &EventStore) -> Option<ModelObjection> {
        if self.answers.known_ms > store.summary.end_ms {
            return Some(ModelObjection::LearnedLater);
        }
        let elsewhere = other_access_point_words(&self.origin.access_points, &store.summary.aps);
        let caveat = elsewhere.or_else(|| self.out_of_date_words(store))?;
        Some(ModelObjection::Caveat(caveat))
    }

    /// Describes the age of a model that is out of date; `None` if it is not. It is out of date if the log has gone
    /// on for longer than the time that it learned from is long. A model does not age while nothing happens.
    fn out_of_date_words(&self, store: &EventStore) -> Option<String> {
        let learned_ms = self.answers.known_ms;
        let span_ms = learned_ms.saturating_sub(self.origin.from_ms?);
        let last_event_ms = cutoffs_ms(store, &store.jobs()).into_iter().max()?;
        let last_ms = store.summary.end_ms.min(last_event_ms);
        let since_ms = last_ms.saturating_sub(learned_ms);
        (since_ms > span_ms).then(|| {
            format!(
                "the model learned from the {} until {}, and is out of date, so it does not judge these jobs: `poolcast learn` learns again",
                output::time_span(span_ms),
                output::utc_time(learned_ms)
            )
        })
    }
}

/// The origin of a published model that answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PublishedOrigin {
    /// Its directory.
    pub path: String,
    /// True if this site publishes it, false if the user named it.
    pub is_of_site: bool,
    /// End of the time that it learned from, epoch ms.
    pub learned_ms: i64,
}

/// The facts and caveats that advice is based on.
#[derive(Debug, Clone, Serialize)]
pub struct AdviceBasis {
    /// The access points of the log.
    pub access_points: Vec<String>,
    /// Time of the first event in the log, epoch ms; `None` if no log was read, or no complete record.
    pub log_begin_ms: Option<i64>,
    /// Time of the last event in the log, epoch ms. The advice knows nothing later, except from the
    /// queue.
    pub log_end_ms: Option<i64>,
    /// Prediction time, epoch ms: `--at`, or the time of the call if `condor_q` was asked or there
    /// is no log, or else the end of the log.
    pub asked_ms: i64,
    /// Holds in the log up to the prediction time.
    pub holds: usize,
    /// The published model that answers (docs/access-point.md); `None` if a run does, or nothing.
    pub published_model: Option<PublishedOrigin>,
    /// A published model that does not answer, because it judges jobs by their events and no log of the
    /// jobs was read.
    #[serde(skip)]
    pub unused_model: Option<PublishedOrigin>,
    /// Time until which outcomes were learned, epoch ms; `None` if nothing was learned.
    pub trained_until_ms: Option<i64>,
    /// The pipelines and networks that answer, the base first (docs/features.md); empty if nothing
    /// was learned.
    pub members: Vec<String>,
    /// True if outcomes at other access points add to the outcomes of the log.
    #[serde(skip)]
    pub uses_prior: bool,
    /// Holds after `trained_until_ms`, up to the prediction time.
    pub holds_since: usize,
    /// Skill that the answers would have had on their log; `None` if they were not rehearsed.
    pub rehearsed: Option<RehearsedSkill>,
    /// Source of the holds: a history, if some of them are from one.
    pub source: HoldSource,
    /// True if some of them are from a log of HTCondor.
    #[serde(skip)]
    pub has_log: bool,
    /// Caveats about the log and the model, in sentences.
    pub caveats: Vec<String>,
}

impl AdviceBasis {
    /// Collects the basis of advice on `store` at its end, with the `model` that answers, if there is one.
    pub fn new(store: &EventStore, model: Option<AdviceModel<'_>>) -> AdviceBasis {
        let summary = &store.summary;
        let asked_ms = summary.end_ms;
        let trained_until_ms = model.map(|model| model.answers.known_ms);
        let (holds, holds_since) =
            count_holds(store, trained_until_ms.unwrap_or(i64::MIN), asked_ms);
        let has_records = summary.record_count() > 0;
        AdviceBasis {
            access_points: summary.aps.clone(),
            log_begin_ms: has_records.then_some(summary.begin_ms),
            log_end_ms: has_records.then_some(summary.end_ms),
            asked_ms,
            holds,
            published_model: None,
            unused_model: None,
            trained_until_ms,
            members: model.map_or_else(Vec::new, |model| model.answers.model.members()),
            uses_prior: model.is_some_and(|model| model.answers.model.uses_prior()),
            holds_since,
            rehearsed: model.and_then(|model| model.origin.rehearsed),
            source: summary.source(),
            has_log: summary.has_log(),
            caveats: caveats(summary, model),
        }
    }

    /// The basis of advice that only the queue gives, at `asked_ms`.
    pub fn without_log(asked_ms: i64) -> AdviceBasis {
        AdviceBasis {
            access_points: Vec::new(),
            log_begin_ms: None,
            log_end_ms: None,
            asked_ms,
            holds: 0,
            published_model: None,
            unused_model: None,
            trained_until_ms: None,
            members: Vec::new(),
            uses_prior: false,
            holds_since: 0,
            rehearsed: None,
            source: HoldSource::Log,
            has_log: false,
            caveats: Vec::new(),
        }
    }

    /// The prediction time, epoch ms; `None` if it is the end of the log.
    pub fn at_ms(&self) -> Option<i64> {
        (self.log_end_ms != Some(self.asked_ms)).then_some(self.asked_ms)
    }

    /// Names what the holds come from.
    pub fn source_name(&self) -> &'static str {
        match (self.source, self.has_log) {
            (HoldSource::Log, _) => "log",
            (HoldSource::History, true) => "log and history",
            (HoldSource::History, false) => "history",
        }
    }

    /// Returns a caveat if the log ended more than a day before `now_ms`.
    pub fn log_age_caveat(&self, now_ms: i64) -> Option<String> {
        let ago_ms = now_ms - self.log_end_ms?;
        (ago_ms > DAY_MS).then(|| {
            format!(
                "the log ended {} ago: jobs may have been released or held since",
                output::time_span(ago_ms)
            )
        })
    }
}

/// Counts the holds up to `until_ms`, and those among them that are later than `since_ms`.
fn count_holds(store: &EventStore, since_ms: i64, until_ms: i64) -> (usize, usize) {
    let (mut all, mut later) = (0, 0);
    for job in store.jobs().iter() {
        let history = job.history;
        for (&number, &time_ms) in history.number.iter().zip(history.time_ms) {
            if number == HELD && time_ms <= until_ms {
                all += 1;
                later += usize::from(time_ms > since_ms);
            }
        }
    }
    (all, later)
}

/// Collects the caveats on the log behind `summary` and on the `model` that answers.
fn caveats(summary: &StoreSummary, model: Option<AdviceModel<'_>>) -> Vec<String> {
    let is_empty = summary.record_count() == 0;
    let of_log = is_empty.then(|| "no record of the log is complete yet".to_owned());
    let of_model = model.and_then(|model| model.origin.source.words());
    let of_history = (summary.source() == HoldSource::History).then_some(HISTORY_CAVEAT);
    let of_gaps = (!summary.gaps.is_empty())
        .then_some("events are missing in the log: jobs held before a gap may no longer be held");

    of_log
        .into_iter()
        .chain(of_model.or(of_history).map(str::to_owned))
        .chain(missing_holds_caveat(summary))
        .chain(of_gaps.map(str::to_owned))
        .collect()
}

/// Describes an access point in `asked` from which a model did not learn that `learned` from others; `None` if
/// there is none. An empty `learned` says that these are unknown.
fn other_access_point_words(learned: &[String], asked: &[String]) -> Option<String> {
    let is_other = |ap: &&String| !learned.contains(ap);
    let other = asked
        .iter()
        .find(is_other)
        .filter(|_| !learned.is_empty())?;
    Some(format!(
        "the model learned from {}, not from {other}, where holds may have other outcomes, so it does not judge these jobs",
        learned.join(", ")
    ))
}

/// Returns a caveat if `summary` describes a history that lacks holds.
fn missing_holds_caveat(summary: &StoreSummary) -> Option<String> {
    let missing = summary.missing_holds().filter(|missing| *missing > 0)?;
    Some(format!(
        "the history lacks {}, each of which led to another hold: releases look better here than they were",
        output::counted(missing as usize, "earlier hold")
    ))
}
