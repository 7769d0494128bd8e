//! The results of learning: a run of one's own, the model that a site publishes, and the archives of
//! logs.

use std::path::{Path, PathBuf};

use poolcast_advice::PublishedModel;
use poolcast_base::finding::Finding;
use poolcast_base::output::{counted, time_span, utc_time};
use poolcast_collect::read_archive;
use poolcast_holds::answers::LearnedAnswers;
use poolcast_sweep as sweep;

/// Age from which a model should learn again. Servers, quotas and users change within a week.
const MAX_AGE_MS: i64 = 7 * 86_400_000;

/// Describes the model that `advise` uses here: the result of `run`, or else the one that the site
/// publishes in `site_model`. `log` is the log to learn from.
pub(super) fn model_finding(
    run: Option<&Path>,
    site_model: Option<&Path>,
    log: Option<&Path>,
    now_ms: i64,
) -> Finding {
    let learn = match log {
        Some(_) => "poolcast learn --log \"$(condor_config_val EVENT_LOG)\"",
        None => "poolcast learn --log mine",
    };
    if let Some(run) = run {
        let place = run.display();
        return match LearnedAnswers::learned_ms(&sweep::answers_dir(run)) {
            Ok(Some(learned_ms)) => aged(&format!("the run in {place}"), learned_ms, now_ms, learn),
            Ok(None) => Finding::bad("model", format!("the run in {place} has no answers"), learn),
            Err(error) => Finding::bad("model", format!("{error:#}"), learn),
        };
    }
    let Some(dir) = site_model.filter(|dir| PublishedModel::is_in(dir)) else {
        let words = site_model.map_or_else(
            || "no run is here, and `advice.site_model` is null".to_owned(),
            |dir| {
                format!(
                    "no run is here, and the site publishes no model in {}",
                    dir.display()
                )
            },
        );
        return Finding::bad("model", words, learn);
    };
    match PublishedModel::read_age(dir) {
        Ok(learned_ms) => {
            let todo = "ask the administrators whether poolcast-learn.timer runs";
            aged(
                &format!("the model of this site in {}", dir.display()),
                learned_ms,
                now_ms,
                todo,
            )
        }
        Err(error) => Finding::bad("model", format!("{error:#}"), learn),
    }
}

/// Describes `what`, a model that learned until `learned_ms`. `todo` makes a newer one.
fn aged(what: &str, learned_ms: i64, now_ms: i64, todo: &str) -> Finding {
    let age_ms = now_ms.saturating_sub(learned_ms);
    let words = format!(
        "{what} learned until {}, {} ago",
        utc_time(learned_ms),
        time_span(age_ms)
    );
    if age_ms > MAX_AGE_MS {
        return Finding::bad("model", words, todo);
    }
    Finding::good("model", words)
}

/// Describes the archives among `dirs`, and the events that they lack.
pub(super) fn archive_findings(dirs: &[PathBuf]) -> Vec<Finding> {
    dirs.iter().filter_map(|dir| archive_finding(dir)).collect()
}

fn archive_finding(dir: &Path) -> Option<Finding> {
    // A directory without a manifest, or one that may not be read, is not an archive of this user.
    let archive = read_archive(dir).ok()?;
    let sizes = archive.generations.iter().map(|one| one.bytes);
    let bytes = sizes.fold(0, u64::saturating_add);
    let words = format!(
        "{}: {} in {}",
        dir.display(),
        counted(usize::try_from(bytes).unwrap_or(usize::MAX), "byte"),
        counted(archive.generations.len(), "generation")
    );
    if archive.lost.is_empty() {
        return Some(Finding::good("archive", format!("{words}, none missing")));
    }
    Some(Finding::bad(
        "archive",
        format!("{words}, with {}", counted(archive.lost.len(), "gap")),
        "collect more often, or set a larger EVENT_LOG_MAX_SIZE: old gaps stay",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_base::finding::FindingState;

    #[test]
    fn old_models_are_to_be_learned_again() {
        let at = |age_ms| aged("it", 0, age_ms, "type this");
        assert_eq!(at(MAX_AGE_MS).state, FindingState::Good);
        let old = at(MAX_AGE_MS + 1);
        assert_eq!(old.todo.as_deref(), Some("type this"));
        assert_eq!(
            at(MAX_AGE_MS).words,
            "it learned until 1970-01-01 00:00:00 UTC, 7 d 0 h ago"
        );
    }

    #[test]
    fn machine_without_a_model_gets_the_command_that_learns() {
        let dir = tempfile::tempdir().expect("a directory");
        let none = model_finding(None, Some(dir.path()), None, 0);
        assert_eq!(none.todo.as_deref(), Some("poolcast learn --log mine"));
        let log = Path::new("/var/log/condor/EventLog");
        let none = model_finding(None, None, Some(log), 0);
        assert!(none.todo.is_some_and(|todo| todo.contains("EVENT_LOG")));
        assert_eq!(archive_findings(&[dir.path().to_owned()]), []);
    }
}
