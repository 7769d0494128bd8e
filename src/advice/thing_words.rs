//! The state of things in words: the thing that failed, its last failure, and the successes since.

use super::addresses::{server_of, without_secrets};
use super::job_advice::JobAdvice;
use super::job_command::JobId;
use htcondor_eventlog::named_file;
use poolcast_base::output;
use poolcast_holds::answers::{MAX_COUNTED, ThingKind, ThingState};

/// Returns the name of the thing of kind `kind` that the job is held for, from the hold reason.
pub(super) fn thing_name(advice: &JobAdvice, kind: ThingKind) -> String {
    let reason = advice.hold.reason.as_ref().map(ToString::to_string);
    let named = reason.as_deref().and_then(named_file);
    let name = match kind {
        ThingKind::Origin => named.map(|named| server_of(named.file).to_owned()),
        ThingKind::File => named.map(|named| without_secrets(named.file)),
        ThingKind::Reason => return format!("this reason in cluster {}", advice.job.id.cluster),
    };
    let unknown = match kind {
        ThingKind::File => "this file",
        _ => "this server",
    };
    let name = name.filter(|name| !name.is_empty());
    name.unwrap_or_else(|| unknown.to_owned())
}

/// Says that the release of `jobs` settles the answer about other jobs of a thing.
pub(super) fn settling_words(jobs: &[JobId]) -> String {
    let ids: Vec<String> = jobs.iter().map(ToString::to_string).collect();
    format!("the release of {} settles this", ids.join(" or "))
}

/// Formats `state`, without the name of the thing. `last_failure` is the time of the last failure.
pub fn state_words(state: &ThingState, last_failure: &str) -> String {
    let successes = match state.successes_since {
        0 => "no success".to_owned(),
        1 => "1 success".to_owned(),
        MAX_COUNTED.. => format!("at least {MAX_COUNTED} successes"),
        count => format!("{count} successes"),
    };
    let owners = match state.owners_since {
        0 => String::new(),
        owners => format!(", of {}", output::counted(owners, "owner")),
    };
    let reads = match state.reads_since {
        0 => String::new(),
        1 => ", but 1 job that was not held read from it".to_owned(),
        MAX_COUNTED.. => {
            format!(", but at least {MAX_COUNTED} jobs that were not held read from it")
        }
        count => format!(", but {count} jobs that were not held read from it"),
    };
    format!("last failure {last_failure}, {successes} since{owners}{reads}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_put_into_words() {
        let state = |successes_since, owners_since| ThingState {
            kind: ThingKind::Origin,
            last_failure_ms: 0,
            successes_since,
            owners_since,
            by_hand_of: None,
            success_lower: None,
            reads_since: 0,
        };
        let words = |successes, owners| state_words(&state(successes, owners), "23:14");
        assert_eq!(words(0, 0), "last failure 23:14, no success since");
        assert_eq!(
            words(1, 1),
            "last failure 23:14, 1 success since, of 1 owner"
        );
        assert_eq!(
            words(12, 3),
            "last failure 23:14, 12 successes since, of 3 owners"
        );
        assert_eq!(
            words(MAX_COUNTED, 0),
            "last failure 23:14, at least 100 successes since"
        );
    }
}
