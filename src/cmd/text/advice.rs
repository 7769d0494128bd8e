//! What advice says to people, and to programs.

use serde::Serialize;

use crate::advice::{self, JobAdvice};
use crate::events::EventStore;
use crate::training::TrainedModel;

/// The version of the JSON document.
const SCHEMA_VERSION: u32 = 1;

/// Advice as one JSON document.
#[derive(Debug, Serialize)]
pub(in crate::cmd) struct AdviceDocument<'a> {
    schema_version: u32,
    /// The digest of what the model was made from.
    model: &'a str,
    /// The last training hold, epoch ms.
    trained_until_ms: i64,
    /// The end of the log: what the advice knows.
    log_end_ms: i64,
    /// The moment of asking, epoch ms.
    asked_ms: i64,
    advice: &'a [JobAdvice],
}

/// The JSON document of `advice`, asked at the end of the log or at `at_ms`.
pub(in crate::cmd) fn document<'a>(
    store: &EventStore,
    model: &'a TrainedModel,
    advice: &'a [JobAdvice],
    at_ms: Option<i64>,
) -> AdviceDocument<'a> {
    AdviceDocument {
        schema_version: SCHEMA_VERSION,
        model: &model.key,
        trained_until_ms: model.rates.to_ms,
        log_end_ms: store.summary.end_ms,
        asked_ms: at_ms.unwrap_or(store.summary.end_ms),
        advice,
    }
}

/// The advice on each job, asked at the end of the log or at `at_ms`.
pub(in crate::cmd) fn summary(advice: &[JobAdvice], at_ms: Option<i64>) -> String {
    if advice.is_empty() {
        return format!("no job is held {}\n", advice::asking_words(at_ms));
    }
    advice
        .iter()
        .map(|advice| advice::advice_text(advice, at_ms))
        .collect::<Vec<String>>()
        .join("\n")
}
