//! The basis of advice: facts about the log and the model, and caveats about both.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::rehearsed_actions::RehearsedActions;
use htcondor_eventlog::HELD;
use poolcast_base::output;
use poolcast_events::{EventStore, HoldSource, StoreSummary};
use poolcast_holds::answers::LearnedAnswers;
use poolcast_holds::rehearsal::{Proportion, RehearsalTally};
use poolcast_holds::training::TrainedModel;
use poolcast_tensors::cutoffs_ms;

/// One day, in ms.
const DAY_MS: i64 = 86_400_000;

/// A model is old if it has not seen the last 1/`OLD_MODEL_DIVISOR` of the time range of the log.
const OLD_MODEL_DIVISOR: i64 = 10;

/// A caveat on holds from a history.
const HISTORY_CAVEAT: &str = "of jobs in the history, known are the last hold and the end, and the holds that ended runs where it has them";

/// The model's ability to separate successes from failures, measured on holds after its training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ModelSkill {
    /// ROC-AUC on the test split.
    pub roc_auc: f64,
    /// 95 % interval of the ROC-AUC.
    pub interval: (f64, f64),
}

impl ModelSkill {
    /// Returns true if the numbers are possible in an evaluation. A file may have any.
    pub(super) fn is_valid(&self) -> bool {
        let (lower, upper) = self.interval;
        let shares = [self.roc_auc, lower, upper];
        shares.iter().all(|share| (0.0..=1.0).contains(share)) && lower <= upper
    }
}

/// How right the answers about held jobs would have been on the log that they were learned from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RehearsedSkill {
    /// Answers that were right about whether the fault passes or stays.
    pub kind_right: Proportion,
    /// Firm answers that were right.
    pub firm_right: Proportion,
    /// Right answers, by action.
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

/// The facts about a trained model that a page shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// Name of the architecture or of the pipeline.
    pub name: String,
    /// Digest of the inputs that the model was made from.
    pub key: String,
    /// First hold that it learned from, epoch ms.
    pub from_ms: i64,
    /// Last hold that it learned from, epoch ms.
    pub to_ms: i64,
}

impl From<&TrainedModel> for ModelFacts {
    fn from(model: &TrainedModel) -> ModelFacts {
        ModelFacts {
            name: model.name.clone(),
            key: model.key.clone(),
            from_ms: model.rates.from_ms,
            to_ms: model.rates.to_ms,
        }
    }
}

/// The origin of a model: its evaluation and its training data.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ModelOrigin {
    /// The model's skill, if it was evaluated.
    pub skill: Option<ModelSkill>,
    /// The skill of the answers, if they were rehearsed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rehearsed: Option<RehearsedSkill>,
    /// The access points whose jobs the model learned from; empty if they are unknown.
    pub access_points: Vec<String>,
    /// What the models learned from.
    #[serde(default, skip_serializing_if = "HoldSource::is_log")]
    pub source: HoldSource,
    /// The trained model of the run whose answers were published; `None` for a run itself.
    pub facts: Option<ModelFacts>,
}

/// The models that judge held jobs.
#[derive(Debug, Clone, Copy)]
pub struct AdviceModels<'a> {
    /// The model of the run; `None` if no model was trained.
    pub trained: Option<&'a TrainedModel>,
    /// The model for questions in the middle of a hold; `None` if there is none.
    pub answers: Option<&'a LearnedAnswers>,
    /// The origin of both.
    pub origin: &'a ModelOrigin,
}

impl AdviceModels<'_> {
    /// The facts about the trained model of the run, also if only its answers were published.
    fn facts(&self) -> Option<ModelFacts> {
        let trained = self.trained.map(ModelFacts::from);
        trained.or_else(|| self.origin.facts.clone())
    }

    /// Returns true if the answers decide about the jobs that are held at `asked_ms`: they learned from nothing
    /// later. The trained model then says nothing about these jobs.
    pub(super) fn is_answered(&self, asked_ms: i64) -> bool {
        let answers = self.answers;
        answers.is_some_and(|answers| answers.known_ms <= asked_ms)
    }

    /// The time that the models have learned from, epoch ms: a trained model from its holds, and the
    /// answers from the log until its end, unless that is after `asked_ms`. Returns `None` without a
    /// trained model.
    fn learned_time(&self, asked_ms: i64) -> Option<Range<i64>> {
        let facts = self.facts()?;
        let known_ms = self.answers.map(|answers| answers.known_ms);
        let known_ms = known_ms.filter(|&known_ms| known_ms <= asked_ms);
        Some(facts.from_ms..facts.to_ms.max(known_ms.unwrap_or(i64::MIN)))
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
    /// Prediction time, epoch ms.
    pub asked_ms: i64,
    /// Holds in the log up to the prediction time.
    pub holds: usize,
    /// Name of the architecture or pipeline of the trained model that answers; `None` if none does.
    pub model: Option<String>,
    /// Digest of the inputs that this model was made from.
    pub model_key: Option<String>,
    /// The published model that answers; `None` if the model comes from a run.
    pub published_model: Option<PublishedOrigin>,
    /// A published model that does not answer, because it judges jobs by their events and no log of the
    /// jobs was read.
    #[serde(skip)]
    pub unused_model: Option<PublishedOrigin>,
    /// Time until which has learned what answers, epoch ms; `None` if nothing was learned.
    pub trained_until_ms: Option<i64>,
    /// True if outcomes at other access points add to the outcomes of the log.
    #[serde(skip)]
    pub uses_prior: bool,
    /// Holds since then, up to the prediction time.
    pub holds_since: usize,
    /// Skill of the trained model that answers; `None` if none does, or if it was never evaluated.
    pub skill: Option<ModelSkill>,
    /// Skill of the answers; `None` if they were not rehearsed.
    pub rehearsed: Option<RehearsedSkill>,
    /// What the holds come from.
    pub source: HoldSource,
    /// True if some of them are from a log of HTCondor.
    #[serde(skip)]
    pub has_log: bool,
    /// Caveats about the log and the model, in sentences.
    pub caveats: Vec<String>,
}

impl AdviceBasis {
    /// Collects the basis of advice that `models` give on `store` at its end.
    pub fn new(store: &EventStore, models: &AdviceModels<'_>) -> AdviceBasis {
        let AdviceModels {
            answers, origin, ..
        } = *models;
        let summary = &store.summary;
        let asked_ms = summary.end_ms;
        let is_answered = models.is_answered(asked_ms);
        let facts = models.facts().filter(|_| !is_answered);
        let skill = origin.skill.filter(|_| !is_answered);
        let trained_until_ms = facts
            .as_ref()
            .map(|facts| facts.to_ms)
            .or(answers.map(|answers| answers.known_ms));
        let (holds, holds_since) =
            count_holds(store, trained_until_ms.unwrap_or(i64::MIN), asked_ms);

        let has_records = summary.record_count() > 0;
        let mut caveats = Vec::new();
        if !has_records {
            caveats.push("no record of the log is complete yet".to_owned());
        }
        caveats.extend(unknown_access_point_caveat(
            &origin.access_points,
            &summary.aps,
        ));
        let age = age_caveat(store, models, asked_ms, holds_since);
        caveats.extend(age.filter(|_| !is_answered));
        let source = summary.source();
        let of_history = (source == HoldSource::History).then_some(HISTORY_CAVEAT);
        caveats.extend(origin.source.words().or(of_history).map(str::to_owned));
        caveats.extend(missing_holds_caveat(summary));
        if !summary.gaps.is_empty() {
            caveats.push(
                "events are missing in the log: jobs held before a gap may no longer be held"
                    .to_owned(),
            );
        }
        if skill.is_some_and(|skill| skill.interval.0 <= 0.5) {
            caveats.push("the model was not shown to be better than chance".to_owned());
        }
        AdviceBasis {
            access_points: summary.aps.clone(),
            log_begin_ms: has_records.then_some(summary.begin_ms),
            log_end_ms: has_records.then_some(summary.end_ms),
            asked_ms,
            holds,
            model: facts.as_ref().map(|facts| facts.name.clone()),
            model_key: facts.map(|facts| facts.key),
            published_model: None,
            unused_model: None,
            trained_until_ms,
            uses_prior: answers.is_some_and(|answers| answers.model.uses_prior()),
            holds_since,
            skill,
            rehearsed: origin.rehearsed.filter(|_| is_answered),
            source,
            has_log: summary.has_log(),
            caveats,
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
            model: None,
            model_key: None,
            published_model: None,
            unused_model: None,
            trained_until_ms: None,
            uses_prior: false,
            holds_since: 0,
            skill: None,
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

/// Returns a caveat if the log has an access point in `asked` from which the model did not learn.
/// `learned` lists the access points of the training data; no caveat follows if it is empty.
fn unknown_access_point_caveat(learned: &[String], asked: &[String]) -> Option<String> {
    let is_other = |ap: &&String| !learned.contains(ap);
    let other = asked
        .iter()
        .find(is_other)
        .filter(|_| !learned.is_empty())?;
    Some(format!(
        "the model learned from {}, not from {other}, where holds may have other outcomes: jobs there get advice by rules and by the outcomes of similar holds only",
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

/// Returns a caveat on models that have not learned from the latest part of the log.
fn age_caveat(
    store: &EventStore,
    models: &AdviceModels<'_>,
    asked_ms: i64,
    holds_since: usize,
) -> Option<String> {
    let span_ms = store.summary.end_ms - store.summary.begin_ms;
    // Users of a published model cannot learn again.
    let unseen_ms = asked_ms - models.trained?.rates.to_ms;
    (unseen_ms > span_ms / OLD_MODEL_DIVISOR && holds_since > 0).then(|| {
        format!(
            "the model has not learned from the last {} and their {}: `poolcast run` learns from them",
            output::time_span(unseen_ms),
            output::counted(holds_since, "hold")
        )
    })
}

/// Returns the reason why `models` must not judge jobs of the access point `ap`; `None` if they may.
pub(super) fn why_models_do_not_apply(
    models: &AdviceModels<'_>,
    ap: &String,
) -> Option<&'static str> {
    if models.trained.is_none() && models.answers.is_none() {
        return Some("nothing was learned from this access point yet");
    }
    let learned_from = &models.origin.access_points;
    let is_other = !learned_from.is_empty() && !learned_from.contains(ap);
    is_other.then_some("the model learned from another access point")
}

/// Returns a caveat if `models` are out of date at `asked_ms`, so that they must not judge the jobs of `store`;
/// `None` if they may. They are out of date if the log has gone on for longer than the time that they learned
/// from is long, or if that is as far in the future. A model does not age while nothing happens.
pub fn out_of_date_caveat(
    store: &EventStore,
    models: &AdviceModels<'_>,
    asked_ms: i64,
) -> Option<String> {
    let learned = models.learned_time(asked_ms)?;
    let last_event_ms = cutoffs_ms(store, &store.jobs()).into_iter().max();
    let last_ms = asked_ms.min(last_event_ms.unwrap_or(asked_ms));

    let since_ms = last_ms.saturating_sub(learned.end);
    let ahead_ms = learned.start.saturating_sub(asked_ms);
    let span_ms = learned.end.saturating_sub(learned.start);
    (since_ms.max(ahead_ms) > span_ms).then(|| {
        format!(
            "the model learned from the {} until {}, and is out of date, so it does not judge these jobs: `poolcast run` learns again",
            output::time_span(span_ms),
            output::utc_time(learned.end)
        )
    })
}
