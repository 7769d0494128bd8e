//! What a log itself teaches where the model is out of date. The answers are kept for the next
//! calls, because learning takes longer than all else that a call does.

use std::path::{Path, PathBuf};

use anyhow::Result;

use poolcast_base::manifest;
use poolcast_events::EventStore;
use poolcast_holds::answers::{ANSWERS_FORMAT, LearnedAnswers};
use poolcast_holds::config::AdviceConfig;

/// Directory of the answers that are kept.
const KEPT_DIRECTORY: &str = "answers-of-log";

/// Answers are kept until the log has gone on for 1/`KEPT_DIVISOR` of the time that they learned from.
const KEPT_DIVISOR: i64 = 10;

/// Returns what `store`, which was read from `logs`, teaches by `known_ms`, like
/// [`LearnedAnswers::without_run`]. Answers that an earlier call has kept in `dir` are returned
/// instead while the log has gone on for no longer than a tenth of the time that they learned from.
///
/// # Errors
/// Fails if the model cannot be fitted. Answers that cannot be kept are learned by the next call again.
pub fn answers_of_log(
    dir: &Path,
    logs: &[PathBuf],
    store: &EventStore,
    known_ms: i64,
    advice: &AdviceConfig,
    seed: u64,
) -> Result<Option<LearnedAnswers>> {
    let place = dir.join(KEPT_DIRECTORY);
    let key = log_key(logs, store, advice, seed);
    let is_of_log = || key.is_some() && manifest::finished_key(&place, ANSWERS_FORMAT) == key;
    if is_of_log()
        && let Ok(Some(kept)) = LearnedAnswers::open(&place)
        && is_recent(&kept, store.summary.begin_ms, known_ms)
    {
        return Ok(Some(kept));
    }

    let learned = LearnedAnswers::without_run(store, known_ms, advice, seed)?;
    if let (Some(learned), Some(key)) = (&learned, &key) {
        // This fails in the run of another user.
        let _ = fs_err::create_dir_all(dir)
            .map_err(anyhow::Error::from)
            .and_then(|()| learned.write(&place, key));
    }
    Ok(learned)
}

/// Returns the digest of what the answers of `store` depend on, except its end; `None` for logs that
/// have no paths, such as standard input.
fn log_key(
    logs: &[PathBuf],
    store: &EventStore,
    advice: &AdviceConfig,
    seed: u64,
) -> Option<String> {
    let paths: Option<Vec<PathBuf>> = logs
        .iter()
        .map(|log| fs_err::canonicalize(log).ok())
        .collect();
    let summary = &store.summary;
    manifest::key(&(paths?, summary.begin_ms, &summary.aps, advice, seed)).ok()
}

fn is_recent(kept: &LearnedAnswers, begin_ms: i64, known_ms: i64) -> bool {
    let span_ms = kept.known_ms.saturating_sub(begin_ms);
    let since_ms = known_ms.saturating_sub(kept.known_ms);
    (0..=span_ms / KEPT_DIVISOR).contains(&since_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_config::default_settings;
    use test_stores::log_with_outages;

    #[test]
    fn log_is_learned_from_again_once_it_has_gone_on() {
        let mut log = log_with_outages(8);
        log.add_held(7, 17_100);
        let store = log.store();
        let end_ms = store.summary.end_ms;
        let span_ms = end_ms - store.summary.begin_ms;
        let dir = tempfile::tempdir().expect("a directory");
        let named = |name: &str| {
            let path = dir.path().join(name);
            fs_err::write(&path, "").expect("written");
            vec![path]
        };
        let (one, other) = (named("one"), named("other"));
        let settings = AdviceConfig {
            prior: false,
            ..default_settings()
        };
        let known_ms = |logs: &[PathBuf], known_ms| {
            let state = dir.path().join("state");
            answers_of_log(&state, logs, &store, known_ms, &settings, 1)
                .expect("learned")
                .map(|answers| answers.known_ms)
        };
        assert_eq!(known_ms(&one, end_ms), Some(end_ms));
        let soon_ms = end_ms + span_ms / 20;
        assert_eq!(known_ms(&one, soon_ms), Some(end_ms), "they are kept");
        assert_eq!(
            known_ms(&one, end_ms - 1),
            Some(end_ms - 1),
            "never what came later"
        );
        assert_eq!(known_ms(&other, soon_ms), Some(soon_ms), "of another log");
        let late_ms = end_ms + span_ms / 5;
        assert_eq!(known_ms(&other, late_ms), Some(late_ms), "they are old");
    }
}
