//! What advice rests on: the log, the model, and what is to be kept in mind about either.

use serde::Serialize;

use htcondor_eventlog::HELD;
use crate::events::EventStore;
use poolcast_base::output;
use crate::training::TrainedModel;

const DAY_MS: i64 = 86_400_000;

/// A model is old if it knows nothing of the last part of the log, by this share of its span.
const OLD_SHARE: i64 = 10;

/// How well the model told success from failure on holds that came after its training.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ModelSkill {
    /// ROC-AUC on the test side.
    pub roc_auc: f64,
    /// Its 95 % interval.
    pub interval: (f64, f64),
}

/// Where a model comes from.
#[derive(Debug, Clone, Default)]
pub struct ModelOrigin {
    /// How good it is, if it was evaluated.
    pub skill: Option<ModelSkill>,
    /// The access points that it learned from; none if that is not known.
    pub access_points: Vec<String>,
}

/// What advice rests on.
#[derive(Debug, Clone, Serialize)]
pub struct AdviceBasis {
    /// The access points of the log.
    pub access_points: Vec<String>,
    /// The first moment of the log, epoch ms.
    pub log_begin_ms: i64,
    /// The end of the log, epoch ms: what the advice knows.
    pub log_end_ms: i64,
    /// The moment of asking, epoch ms.
    pub asked_ms: i64,
    /// Holds in the log until then.
    pub holds: usize,
    /// The name of the model's architecture or pipeline.
    pub model: String,
    /// The digest of what the model was made from.
    pub model_key: String,
    /// The last training hold, epoch ms.
    pub trained_until_ms: i64,
    /// Holds in the log since then.
    pub holds_since: usize,
    /// How good the model is; absent if it was never evaluated.
    pub skill: Option<ModelSkill>,
    /// What is to be kept in mind, in sentences.
    pub caveats: Vec<String>,
}

impl AdviceBasis {
    /// What advice on `store`, asked at its end or at `at_ms`, rests on with `model`.
    pub fn new(
        store: &EventStore,
        model: &TrainedModel,
        origin: ModelOrigin,
        at_ms: Option<i64>,
    ) -> AdviceBasis {
        let summary = &store.summary;
        let asked_ms = at_ms.unwrap_or(summary.end_ms);
        let trained_until_ms = model.rates.to_ms;
        let (holds, holds_since) = count_holds(store, trained_until_ms, asked_ms);

        let mut caveats = Vec::new();
        caveats.extend(other_access_point(&origin.access_points, &summary.aps));
        let span_ms = summary.end_ms - summary.begin_ms;
        let unseen_ms = asked_ms - trained_until_ms;
        if unseen_ms > span_ms / OLD_SHARE && holds_since > 0 {
            caveats.push(format!(
                "the model knows nothing of the last {} and their {}: `poolcast run` learns from them",
                output::time_span(unseen_ms),
                output::counted(holds_since, "hold")
            ));
        }
        if !summary.gaps.is_empty() {
            caveats.push(
                "events are missing in the log: jobs held before a gap may be held no more"
                    .to_owned(),
            );
        }
        if origin.skill.is_some_and(|skill| skill.interval.0 <= 0.5) {
            caveats.push("the model was not shown to be better than chance".to_owned());
        }
        AdviceBasis {
            access_points: summary.aps.clone(),
            log_begin_ms: summary.begin_ms,
            log_end_ms: summary.end_ms,
            asked_ms,
            holds,
            model: model.name.clone(),
            model_key: model.key.clone(),
            trained_until_ms,
            holds_since,
            skill: origin.skill,
            caveats,
        }
    }

    /// That the log ended long before `now_ms`, if it did.
    pub fn log_age_caveat(&self, now_ms: i64) -> Option<String> {
        let ago_ms = now_ms - self.log_end_ms;
        (ago_ms > DAY_MS).then(|| {
            format!(
                "the log ended {} ago: jobs may have been released or held since",
                output::time_span(ago_ms)
            )
        })
    }
}

/// How many holds there are until `until_ms`, and how many of them after `since_ms`.
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

/// That a model of `learned` is asked about jobs of others, if it is.
fn other_access_point(learned: &[String], asked: &[String]) -> Option<String> {
    let is_other = |ap: &&String| !learned.contains(ap);
    let other = asked
        .iter()
        .find(is_other)
        .filter(|_| !learned.is_empty())?;
    Some(format!(
        "the model learned from {}, and not from {other}, whose holds may end otherwise",
        learned.join(", ")
    ))
}
