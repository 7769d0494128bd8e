//! The state of a thing that held jobs name: the latest outcomes of all jobs that were held for it, and
//! of others that read from it.

use serde::Serialize;

use super::cause_kind::CauseKind;
use super::hold_history::{HoldHistory, Pass};
use super::past_hold::{MAX_COUNTED, PastHold};

/// Probability that the chance of success is below its lower bound.
const ERROR_PROBABILITY: f64 = 0.1;

/// The kind of a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThingKind {
    /// The host or namespace of a URL, or the upper directories of a path.
    Origin,
    /// A file.
    File,
    /// A hold reason in a cluster, where the reason names no file.
    Reason,
}

impl From<CauseKind> for ThingKind {
    fn from(kind: CauseKind) -> ThingKind {
        match kind {
            CauseKind::Origin => ThingKind::Origin,
            CauseKind::File => ThingKind::File,
            _ => ThingKind::Reason,
        }
    }
}

/// The latest outcomes of all jobs that were held for one thing, or that read from it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ThingState {
    /// The kind of the thing.
    pub kind: ThingKind,
    /// Time of the last hold for the thing, or of the last failure of a job that was held for it,
    /// epoch ms.
    pub last_failure_ms: i64,
    /// Jobs that were released since then, and got past the point of their hold, and first runs of
    /// other jobs that read the same file; 100 also means more.
    pub successes_since: usize,
    /// Known owners of these jobs.
    pub owners_since: usize,
    /// Owner of all these jobs, 0 if unknown, if a person released each of them. That person may have
    /// repaired them before.
    #[serde(skip)]
    pub by_hand_of: Option<u64>,
    /// Lower bound of the chance of success that follows from these successes alone, with 90 %
    /// confidence; absent without a success.
    pub success_lower: Option<f64>,
    /// For an origin, first runs of jobs that read a file of it since then; 100 also means more.
    /// They show that it answers, and not that it has this file.
    pub reads_since: usize,
}

impl ThingState {
    /// Returns the state of the thing of kind `kind` that `hold` is for, as known at `asked_ms`;
    /// `None` if no outcome is known.
    pub(crate) fn known(
        history: &HoldHistory<'_>,
        kind: CauseKind,
        hold: &PastHold,
        asked_ms: i64,
    ) -> Option<ThingState> {
        let known = history.known_cause(kind, &hold.causes, asked_ms);
        if known.outcomes.is_empty() && known.passes.is_empty() && known.reads.is_empty() {
            return None;
        }
        let since_ms = known.last_failure_ms()?;

        let successes = latest_passes(known.passes, since_ms);
        Some(ThingState {
            kind: kind.into(),
            last_failure_ms: since_ms,
            successes_since: successes.len(),
            owners_since: known_owners(&successes),
            by_hand_of: by_hand_of(successes.iter().copied()),
            success_lower: success_lower(successes.len()),
            reads_since: latest_passes(known.reads, since_ms).len(),
        })
    }
}

/// Returns the latest of the sorted `passes` that began after `since_ms`.
fn latest_passes(passes: &[Pass], since_ms: i64) -> Vec<&Pass> {
    let latest = passes.iter().rev();
    latest
        .take_while(|pass| pass.known_ms > since_ms)
        .take(MAX_COUNTED)
        .filter(|pass| pass.released_ms >= since_ms)
        .collect()
}

/// Returns the owner of all `passes` if a person released each of them.
fn by_hand_of<'a>(passes: impl Iterator<Item = &'a Pass>) -> Option<u64> {
    let mut passes = passes.peekable();
    let owner = passes.peek()?.owner;
    let is_by_hand = |pass: &Pass| pass.is_by_hand && pass.owner == owner;
    passes.all(is_by_hand).then_some(owner)
}

/// Returns true if the server named no other cluster's file as missing at about the time of `hold`, which is for a file
/// that it lacks, and one person released by hand each job that is known at `asked_ms` to have got past such a hold.
/// That person may have corrected their addresses before, which repairs no other job.
pub(crate) fn is_corrected_by_owner(
    history: &HoldHistory<'_>,
    hold: &PastHold,
    asked_ms: i64,
) -> bool {
    let unit_ms = history.unit_ms(asked_ms) as i64;
    let until_ms = asked_ms.min(hold.hold_ms + unit_ms);
    if history.has_origin_failed(hold, hold.hold_ms - unit_ms, until_ms) {
        return false;
    }
    let known = history.known_cause(CauseKind::Origin, &hold.causes, asked_ms);
    let latest = known.passes.iter().rev().take(MAX_COUNTED);
    by_hand_of(latest).is_some()
}

fn known_owners(successes: &[&Pass]) -> usize {
    let mut owners: Vec<u64> = successes.iter().map(|pass| pass.owner).collect();
    owners.retain(|&owner| owner != 0);
    owners.sort_unstable();
    owners.dedup();
    owners.len()
}

/// Returns the one-sided lower bound of Clopper and Pearson for `count` successes of `count`.
pub(super) fn success_lower(count: usize) -> Option<f64> {
    (count > 0).then(|| ERROR_PROBABILITY.powf(1.0 / count as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::{
        ATTRIBUTE_UPDATE, EXECUTE, HELD, InputFile, RELEASED, SUBMIT, TERMINATED,
    };
    use htcondor_holdreasons::read_reason;
    use test_stores::TestLog;

    /// Returns the state of the file that the last job of `log` is held for, at second `asked_s`.
    fn state_at(log: &TestLog, asked_s: i64) -> Option<ThingState> {
        let store = log.store();
        let history = HoldHistory::new(&store);
        let hold = history.holds.last().expect("a hold");
        ThingState::known(&history, CauseKind::File, hold, asked_s * 1000)
    }

    /// Returns a log in which file 7 fails up to 200 s, and three jobs get past it from 309 s on.
    fn log_of_recovery() -> TestLog {
        let mut log = TestLog::default();
        log.add_released(7, 100, 150, false);
        for at in 0..3 {
            log.add_released(7, 160 + at, 300 + 10 * at, true);
        }
        log.add_released(8, 100, 310, true);
        log.add_held(7, 200);
        log
    }

    #[test]
    fn successes_count_from_the_last_failure_on() {
        let log = log_of_recovery();
        let state = |asked_s| state_at(&log, asked_s).expect("a state");
        assert_eq!(
            (state(299).last_failure_ms, state(299).successes_since),
            (200_000, 0)
        );
        assert_eq!(state(299).success_lower, None);
        let later = [309, 319, 329].map(|asked_s| state(asked_s).successes_since);
        assert_eq!(later, [1, 2, 3]);
        assert_eq!(state(999).owners_since, 0, "the log names no owner");
        assert_eq!(state(999).by_hand_of, None, "a policy released them");
    }

    #[test]
    fn new_hold_or_failure_ends_the_successes() {
        let mut log = log_of_recovery();
        log.add_held(7, 400);
        let state = state_at(&log, 500).expect("a state");
        assert_eq!((state.last_failure_ms, state.successes_since), (400_000, 0));
        let before = state_at(&log, 399).expect("a state");
        assert_eq!(before.successes_since, 3, "as of the time of asking");
    }

    #[test]
    fn releases_by_hand_have_one_owner_until_a_policy_releases_a_job() {
        let mut log = TestLog::default();
        log.add_released(7, 100, 150, false);
        log.add_released(7, 101, 300, true);
        log.release_last_job_by_hand();
        log.add_released(7, 102, 400, true);
        log.add_held(7, 200);
        let by_hand_of = |asked_s| state_at(&log, asked_s).expect("a state").by_hand_of;
        assert_eq!(by_hand_of(299), None, "nobody got past it");
        assert_eq!(by_hand_of(399), Some(0), "of an unknown owner");
        assert_eq!(by_hand_of(499), None, "a policy repairs nothing");
    }

    #[test]
    fn owner_who_released_all_by_hand_may_have_corrected_addresses() {
        let missing = "Transfer input files failure at execution point slot1@e using protocol https. Details: The requested URL returned error: 404 ( URL file = https://a.example/x )|";
        let is_corrected = |passes: &[bool], others_s: Option<i64>| {
            let mut log = TestLog::default();
            log.add_held(7, 200);
            for (at_s, &is_by_hand) in (300..).zip(passes) {
                log.add_released(7, 100, at_s, true);
                if is_by_hand {
                    log.release_last_job_by_hand();
                }
            }
            if let Some(at_s) = others_s {
                let input = |file| InputFile { file, origin: 7 };
                log.add_failed_read(input(8), at_s, "ada");
                log.add_failed_read(input(9), at_s + 1, "ada");
            }
            log.state(.., read_reason(missing, Some((13, 256))).kind);
            let store = log.store();
            let history = HoldHistory::new(&store);
            is_corrected_by_owner(&history, &history.holds[0], 999_000)
        };
        assert!(!is_corrected(&[], None), "nobody got past it");
        assert!(is_corrected(&[true, true], None));
        assert!(!is_corrected(&[true, false], None), "a policy repairs none");
        assert!(!is_corrected(&[true], Some(201)), "others miss files there");
        assert!(is_corrected(&[true], Some(900)), "much later");
    }

    #[test]
    fn success_of_an_edited_job_shows_nothing_about_others() {
        let successes = |edited: &[(i64, u16, u32)]| {
            let mut log = TestLog::default();
            log.add_released(7, 100, 150, false);
            let begun = [(90, SUBMIT, 0), (91, EXECUTE, 0), (101, HELD, 7)];
            let end = [(300, RELEASED, 0), (301, EXECUTE, 0), (309, TERMINATED, 0)];
            log.add(&[&begun[..], edited, &end].concat());
            log.add_held(7, 200);
            state_at(&log, 400).expect("a state").successes_since
        };
        assert_eq!(successes(&[]), 1);
        assert_eq!(successes(&[(299, ATTRIBUTE_UPDATE, 0)]), 0);
    }

    #[test]
    fn release_before_the_last_failure_is_no_evidence() {
        let mut log = TestLog::default();
        log.add_released(7, 100, 195, true);
        log.add_held(7, 200);
        let state = state_at(&log, 300).expect("a state");
        assert_eq!(state.successes_since, 0, "it succeeded at 204 s");
    }

    #[test]
    fn thing_without_outcomes_has_no_state() {
        let mut log = TestLog::default();
        log.add_released(8, 100, 150, true);
        log.add_held(7, 200);
        assert_eq!(state_at(&log, 300), None);
    }

    #[test]
    fn bound_follows_clopper_and_pearson() {
        let percent = |count| (100.0 * success_lower(count).expect("a bound")).floor();
        assert_eq!([1, 2, 10, 12].map(percent), [10.0, 31.0, 79.0, 82.0]);
        assert_eq!(success_lower(0), None);
    }
}
