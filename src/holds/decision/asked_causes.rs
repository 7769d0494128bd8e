//! The causes that jobs are held for at one moment: the evidence on each, and the jobs that a probe of
//! it releases.

use std::collections::HashMap;

use crate::answers::{
    CauseKind, HeldOdds, HoldHistory, LearnedFrom, NamedFault, OriginState, PastHold, ReasonRecord,
    ThingState,
};

/// Number of held jobs of a cause from which on two of them are probes.
pub(super) const HELD_FOR_TWO_PROBES: usize = 6;

/// The kind of a cause, and its key.
pub type ProbeCause = (u8, u64);

/// A hold that is asked about, with what its cause is found by.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedHold {
    /// Index of the hold in the history.
    pub(super) hold: usize,
    /// The kind of cause that the answer is for.
    pub(super) kind: CauseKind,
    pub(super) odds: HeldOdds,
    pub(super) reason: ReasonRecord,
    /// Other jobs of its cluster that succeeded since one failed like this.
    pub(super) succeeded: usize,
    /// The fault that its reason names, if the other jobs of its server confirm it.
    pub(super) named_fault: NamedFault,
    /// The state of the directory or server of its file when the hold began.
    pub(super) origin_state: OriginState,
    /// Reads from there since, if it failed.
    pub(super) reads_since: usize,
}

/// What is known about one cause, and about the jobs that are held for it.
#[derive(Debug, Default)]
pub(super) struct AskedCause {
    /// Each job, with its odds now.
    pub(super) held: Vec<(usize, f64)>,
    /// Highest odds now among them.
    pub(super) best_odds: f64,
    /// True if something was learned here about one of them.
    pub(super) is_learned: bool,
    /// The jobs that a probe releases.
    pub(super) probes: Vec<usize>,
    /// Decided outcomes of jobs that were held for it.
    pub(super) outcomes: usize,
    /// Time of the last failure for it, epoch ms; `None` if none is known.
    pub(super) last_failure_ms: Option<i64>,
    /// True if a released job was held for it again, and none has got past it since.
    pub(super) failed_again: bool,
    /// The state of the thing that failed, if an outcome is known.
    pub(super) state: Option<ThingState>,
}

impl AskedCause {
    /// Returns the number of jobs of the cause that are known to have got past it since its last
    /// failure or new hold, and so since each of the holds that last.
    pub(super) fn recovered(&self) -> usize {
        self.state.map_or(0, |state| state.successes_since)
    }

    /// Returns the number of reads from the thing that failed, since its last failure.
    pub(super) fn reads_since(&self) -> usize {
        self.state.map_or(0, |state| state.reads_since)
    }

    /// Returns true if nothing was learned about its jobs, and no failure is known since `since_ms`.
    pub(super) fn is_new(&self, since_ms: i64) -> bool {
        !self.is_learned
            && self
                .last_failure_ms
                .is_none_or(|last_ms| last_ms < since_ms)
    }
}

/// Groups the holds in `asked`, which last at `asked_ms`, by cause.
pub(super) fn asked_causes(
    history: &HoldHistory<'_>,
    asked: &[AskedHold],
    asked_ms: i64,
) -> HashMap<ProbeCause, AskedCause> {
    let mut causes: HashMap<ProbeCause, AskedCause> = HashMap::new();
    for AskedHold {
        hold: index,
        kind,
        odds,
        ..
    } in asked
    {
        let hold = &history.holds[*index];
        let cause = causes.entry(probe_cause(*kind, hold)).or_default();
        cause.is_learned |= odds.learned_from == LearnedFrom::ThisLog;
        cause.held.push((*index, odds.now));
        cause.best_odds = cause.best_odds.max(odds.higher_now());
    }

    for ((kind, _), cause) in &mut causes {
        let kind = CauseKind::ALL[*kind as usize];
        let (first, _) = cause.held[0];
        let hold = &history.holds[first];
        let known = history.known_cause(kind, &hold.causes, asked_ms);
        cause.outcomes = known.outcomes.len();
        cause.failed_again = history.failed_again(kind, &hold.causes, asked_ms);
        cause.last_failure_ms = known.last_failure_ms();
        cause.state = ThingState::known(history, kind, hold, asked_ms);
        cause.probes = probes_among(history, &cause.held);
    }
    causes
}

/// Returns the cause that a probe of `hold` is about.
pub(crate) fn hold_cause(hold: &PastHold) -> ProbeCause {
    probe_cause(probe_kind(hold, hold.named_fault), hold)
}

/// Returns the cause of kind `kind` of `hold`.
pub(super) fn probe_cause(kind: CauseKind, hold: &PastHold) -> ProbeCause {
    (kind as u8, hold.causes.get(kind))
}

/// Returns the kind of cause that a probe of `hold`, with `named_fault`, is about: the origin where a URL or a written
/// directory fails, or else the named file, or else the cluster and the reason. These are also the cause if the job
/// brings its program along: whoever mends another program helps no other cluster.
pub(super) fn probe_kind(hold: &PastHold, named_fault: NamedFault) -> CauseKind {
    let is_of_origin = hold.stated.is_output_transfer() || hold.stated.is_plugin_transfer();
    if hold.names_own_program() {
        CauseKind::ClusterReason
    } else if is_of_origin && !named_fault.is_of_file() && hold.causes.names_file() {
        CauseKind::Origin
    } else {
        hold.causes.narrowest_kind()
    }
}

/// Returns how many of `held` jobs of a cause are probes.
pub fn probe_count(held: usize) -> usize {
    if held < HELD_FOR_TWO_PROBES { 1 } else { 2 }
}

/// Returns the jobs to release as probes: those with the highest odds, of different owners where
/// there are some. A file that its server perhaps lacks would show nothing about the others.
fn probes_among(history: &HoldHistory<'_>, jobs: &[(usize, f64)]) -> Vec<usize> {
    let mut sorted = jobs.to_vec();
    let is_perhaps_missing = |index: usize| history.holds[index].is_perhaps_missing;
    sorted.sort_by_key(|&(index, odds)| {
        let falling = -(odds * 1e6) as i64;
        (is_perhaps_missing(index), falling, index)
    });
    let sorted: Vec<usize> = sorted.into_iter().map(|(index, _)| index).collect();
    let first = sorted[0];
    let owner = |index: usize| history.holds[index].owner;
    let other = sorted[1..]
        .iter()
        .find(|&&index| owner(index) != owner(first));
    let second = other.or(sorted.get(1)).copied();
    [Some(first), second]
        .into_iter()
        .flatten()
        .take(probe_count(jobs.len()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use test_stores::log_with_outages;

    #[test]
    fn probes_are_of_different_owners() {
        let store = log_with_outages(2).store();
        let mut history = HoldHistory::new(&store);
        let rising: Vec<(usize, f64)> = (0..7).zip([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]).collect();
        assert_eq!(probes_among(&history, &rising), [6, 5]);
        assert_eq!(probes_among(&history, &rising[..5]), [4], "fewer than six");

        history.holds[4].is_perhaps_missing = true;
        assert_eq!(probes_among(&history, &rising[..5]), [3]);
    }
}
