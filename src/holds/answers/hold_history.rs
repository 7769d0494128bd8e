//! The holds of a log as evidence: by cause, what was known at any moment.

use super::cause_kind::{CauseKeys, CauseKind};
use super::cluster_runs::ClusterRuns;
use super::input_runs::{InputRun, input_runs};
use super::missing_outputs::MissingOutputs;
use super::origin_state::{OriginState, OriginStates};
use super::past_hold::{PastHold, past_holds};
use super::server_faults::correct_named_faults;
use poolcast_base::parallel::map_items;
use poolcast_events::EventStore;
use poolcast_tensors::{
    DatedOutcome, GroupedList, HoldLengths, KeyGroups, PoolHistory, QueriedHold, successes_so_far,
};

/// Seconds per frame in which recent events are counted.
pub const FRAME_S: u32 = 60;

/// A release of a job whose outcome stands for what would have happened to others at that time, or
/// a new hold for the same cause, which stands for a failure. Sorts by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LentOutcome {
    /// Time of the release or of the hold.
    pub(crate) at_ms: i64,
    pub(crate) outcome: DatedOutcome,
    /// Index of the job.
    pub(crate) job: u32,
    /// True if a person released the job, who may have repaired it before.
    pub(crate) is_by_hand: bool,
}

impl LentOutcome {
    /// Returns the success of a job that was not held, in a run that got past the point of a hold at `at_ms`.
    /// Had the held jobs been released then, they would have got past it, too.
    fn of_success(at_ms: i64, known_ms: i64, job: u32) -> LentOutcome {
        LentOutcome {
            at_ms,
            outcome: DatedOutcome::new(known_ms, true),
            job,
            is_by_hand: false,
        }
    }
}

/// A job that got past the point at which another was held, or itself. Sorts by the time at which
/// that was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Pass {
    pub(crate) known_ms: i64,
    /// Time of the release, or of the transfer of the file if the job was not held.
    pub(crate) released_ms: i64,
    pub(crate) owner: u64,
    /// True if a person released the job, who may have repaired it before.
    pub(crate) is_by_hand: bool,
}

/// A release, and the time at which it was known if the job got past the point of its hold. Sorts by
/// the time of the release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct DatedRelease {
    released_ms: i64,
    /// `i64::MAX` if the log ends before.
    known_ms: i64,
}

/// The events of the holds of one kind of cause, by cause.
#[derive(Debug)]
struct CauseIndex {
    groups: KeyGroups,
    held: GroupedList<i64>,
    /// Times of holds of jobs that had just been released from a hold for the cause.
    held_again: GroupedList<i64>,
    ended: GroupedList<i64>,
    outcomes: GroupedList<DatedOutcome>,
    /// For each outcome, the number of successes of its cause so far.
    successes: Vec<u32>,
    passes: GroupedList<Pass>,
    /// For an origin, first runs of jobs that read a file of it.
    reads: GroupedList<Pass>,
    lent: GroupedList<LentOutcome>,
    lent_successes: GroupedList<LentOutcome>,
    releases: GroupedList<DatedRelease>,
}

/// The events of one cause, all known at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KnownCause<'a> {
    /// Times of the holds.
    pub(crate) held: &'a [i64],
    /// Ends of the holds.
    pub(crate) ended: &'a [i64],
    /// Outcomes of the releases.
    pub(crate) outcomes: &'a [DatedOutcome],
    /// For each outcome, the number of successes so far.
    pub(crate) successes: &'a [u32],
    /// Jobs that got past the point of their hold. For a file, also first runs of jobs that read it.
    pub(crate) passes: &'a [Pass],
    /// For an origin, first runs of jobs that read a file of it.
    pub(crate) reads: &'a [Pass],
}

impl KnownCause<'_> {
    /// Returns the time of the last hold, or of the last failure after a release if that is later.
    pub(crate) fn last_failure_ms(&self) -> Option<i64> {
        (self.last_decided_ms(false)).max(self.held.last().copied())
    }

    /// Returns when the last success, or else the last failure, was decided. Thousands of outcomes of the other
    /// kind may follow it, so that it is found by the counts so far.
    pub(crate) fn last_decided_ms(&self, is_success: bool) -> Option<i64> {
        let count_until = |end: usize| {
            let successes = end
                .checked_sub(1)
                .map_or(0, |last| self.successes[last] as usize);
            if is_success {
                successes
            } else {
                end - successes
            }
        };
        let count = count_until(self.outcomes.len());
        let (mut before, mut end) = (0, self.outcomes.len());
        while before < end {
            let middle = before.midpoint(end);
            if count_until(middle) < count {
                before = middle + 1;
            } else {
                end = middle;
            }
        }
        let last = end.checked_sub(1)?;
        Some(self.outcomes[last].decided_ms())
    }

    /// Returns the time of the last hold at another time than `hold_ms`.
    pub(crate) fn last_other_hold_ms(&self, hold_ms: i64) -> Option<i64> {
        // An outage may hold thousands of jobs at one time.
        let end = match self.held.last() {
            Some(&last_ms) if last_ms == hold_ms => {
                self.held.partition_point(|&held_ms| held_ms < hold_ms)
            }
            _ => self.held.len(),
        };
        self.held[..end].last().copied()
    }

    /// Returns the number of outcomes decided by `time_ms` that are failures.
    pub(crate) fn failures_by(&self, time_ms: i64) -> usize {
        let decided = self
            .outcomes
            .partition_point(|outcome| outcome.decided_ms() <= time_ms);
        let successes = decided
            .checked_sub(1)
            .map_or(0, |last| self.successes[last]);
        decided - successes as usize
    }
}

/// The holds of a log, with what was known about their causes at any moment.
#[derive(Debug)]
pub struct HoldHistory<'a> {
    pub(crate) store: &'a EventStore,
    pub(crate) pool: PoolHistory,
    pub(crate) holds: Vec<PastHold>,
    causes: Vec<CauseIndex>,
    cluster_runs: ClusterRuns,
    missing_outputs: MissingOutputs,
    origins: OriginStates,
    lengths: HoldLengths,
}

impl<'a> HoldHistory<'a> {
    /// Indexes the holds of `store`.
    pub fn new(store: &'a EventStore) -> HoldHistory<'a> {
        let (pool, mut holds) =
            rayon::join(|| PoolHistory::new(store, FRAME_S), || past_holds(store));
        correct_named_faults(store, &mut holds);
        let cluster_runs = ClusterRuns::new(store, &holds);
        let causes = map_items(&CauseKind::ALL, |&kind| {
            CauseIndex::new(store, &holds, kind, &cluster_runs)
        });
        let origins = OriginStates::new(store, &holds);
        let mut lengths_ms: Vec<(i64, i64)> = holds
            .iter()
            .filter_map(|hold| Some((hold.release_ms?, hold.release_ms? - hold.hold_ms)))
            .collect();
        lengths_ms.sort_unstable();
        let lengths = HoldLengths::new(lengths_ms);
        HoldHistory {
            store,
            missing_outputs: MissingOutputs::new(store, &holds, &lengths),
            pool,
            holds,
            causes,
            cluster_runs,
            origins,
            lengths,
        }
    }

    /// Returns the typical length of a hold as known at `time_ms`, in ms: the geometric mean of
    /// the holds that had been released. All ages are measured in it.
    pub(crate) fn unit_ms(&self, time_ms: i64) -> f64 {
        f64::from(self.lengths.mean_ms(time_ms))
    }

    /// Returns hold `hold` as asked about at `asked_ms`.
    pub(crate) fn asked(&self, hold: usize, asked_ms: i64) -> QueriedHold {
        let PastHold { job, cycle, .. } = self.holds[hold];
        QueriedHold {
            job,
            cycle,
            asked_ms,
        }
    }

    /// Returns the index of the hold of job `job` with `earlier_holds` earlier ones, if it exists.
    pub(crate) fn find(&self, job: u32, earlier_holds: u32) -> Option<usize> {
        let first = self.holds.partition_point(|hold| hold.job < job);
        let index = first + earlier_holds as usize;
        self.holds.get(index).filter(|hold| hold.job == job)?;
        Some(index)
    }

    /// Returns the indices of the holds that last at `time_ms`.
    pub(crate) fn held_at(&self, time_ms: i64) -> Vec<usize> {
        let holds = 0..self.holds.len();
        holds
            .filter(|&hold| self.holds[hold].lasts_at(time_ms))
            .collect()
    }

    /// Returns what was known at `time_ms` about the cause of kind `kind` with these `keys`.
    pub(crate) fn known_cause(
        &self,
        kind: CauseKind,
        keys: &CauseKeys,
        time_ms: i64,
    ) -> KnownCause<'_> {
        let index = &self.causes[kind as usize];
        let group = index.groups.group(keys.get(kind));
        let until = |times_ms: &'_ [i64]| times_ms.partition_point(|&at_ms| at_ms <= time_ms);
        let (held, ended) = (index.held.of(group), index.ended.of(group));
        let (outcomes, passes) = (index.outcomes.of(group), index.passes.of(group));
        let decided = outcomes.partition_point(|outcome| outcome.decided_ms() <= time_ms);
        let known = |passes: &'_ [Pass]| passes.partition_point(|pass| pass.known_ms <= time_ms);
        let reads = index.reads.of(group);
        KnownCause {
            held: &held[..until(held)],
            ended: &ended[..until(ended)],
            outcomes: &outcomes[..decided],
            successes: &index.successes[index.outcomes.range(group)][..decided],
            passes: &passes[..known(passes)],
            reads: &reads[..known(reads)],
        }
    }

    /// Returns true if a job with the cause of kind `kind` was released in the `within_ms` before
    /// `time_ms`, and the outcome is not known yet.
    pub(crate) fn awaits_outcome(
        &self,
        kind: CauseKind,
        keys: &CauseKeys,
        time_ms: i64,
        within_ms: i64,
    ) -> bool {
        let index = &self.causes[kind as usize];
        let releases = index.releases.of(index.groups.group(keys.get(kind)));
        let until = releases.partition_point(|release| release.released_ms <= time_ms);
        let recent = releases[..until].iter().rev();
        recent
            .take_while(|release| time_ms - release.released_ms <= within_ms)
            .any(|release| release.known_ms > time_ms)
    }

    /// Returns true if it was known at `time_ms` that a released job had been held again for the cause of kind
    /// `kind`, and that no job had got past the cause since.
    pub(crate) fn failed_again(&self, kind: CauseKind, keys: &CauseKeys, time_ms: i64) -> bool {
        let index = &self.causes[kind as usize];
        let held_again = index.held_again.of(index.groups.group(keys.get(kind)));
        let until = held_again.partition_point(|&held_ms| held_ms <= time_ms);
        let last_held_ms = held_again[..until].last().copied();

        let passes = self.known_cause(kind, keys, time_ms).passes;
        last_held_ms > passes.last().map(|pass| pass.known_ms)
    }

    /// Returns the state of the directory or server that `hold` names when it began, as known at `asked_ms`,
    /// and the number of reads from there since it last failed.
    pub(crate) fn origin_state(&self, hold: &PastHold, asked_ms: i64) -> (OriginState, usize) {
        let unit_ms = self.unit_ms(asked_ms);
        self.origins.at_hold(hold, asked_ms, unit_ms)
    }

    /// Returns true if two clusters failed to get different files from the directory or server that `hold` names
    /// between two times.
    pub(crate) fn has_origin_failed(&self, hold: &PastHold, from_ms: i64, until_ms: i64) -> bool {
        self.origins.has_failed_between(hold, from_ms, until_ms)
    }

    /// Returns the number of other jobs of the cluster that are known at `asked_ms` to have started
    /// their program since a job of the cluster last failed like hold `index`, and to have succeeded.
    pub(crate) fn succeeded_in_cluster(&self, index: usize, asked_ms: i64) -> usize {
        let hold = &self.holds[index];
        let of_cluster = self.known_cause(CauseKind::ClusterReason, &hold.causes, asked_ms);
        let since_ms = of_cluster.last_failure_ms().unwrap_or(hold.hold_ms);
        let cluster = self.store.jobs().cluster(hold.job as usize);
        self.cluster_runs.count_since(cluster, since_ms, asked_ms)
    }

    /// Returns true if hold `index` is for a missing output file, and it is known at `asked_ms` that no job of the
    /// cluster ended well by itself, and that this is no fault of the machines. A job that a person released may have
    /// been repaired before it ended well, so that it is no evidence if others have failed in later runs.
    pub(crate) fn never_writes_output(&self, index: usize, asked_ms: i64) -> bool {
        let hold = &self.holds[index];
        let cluster = self.store.jobs().cluster(hold.job as usize);
        if !hold.lacks_output() || !self.missing_outputs.are_of_no_machine(cluster, asked_ms) {
            return false;
        }

        let successes = self.cluster_runs.known(cluster, asked_ms);
        let last_ms = successes.iter().map(|run| run.started_ms).max();
        let is_missing_since =
            |last_ms| (self.missing_outputs).are_missing_since(cluster, last_ms, asked_ms);
        successes.iter().all(|run| run.is_by_hand) && last_ms.is_none_or(is_missing_since)
    }

    /// Returns the outcomes that holds with these `keys` lend to each other, in order of time.
    pub(crate) fn lent(&self, kind: CauseKind, keys: &CauseKeys) -> &[LentOutcome] {
        let index = &self.causes[kind as usize];
        index.lent.of(index.groups.group(keys.get(kind)))
    }

    /// Like [`HoldHistory::lent`], but only the successes.
    pub(crate) fn lent_successes(&self, kind: CauseKind, keys: &CauseKeys) -> &[LentOutcome] {
        let index = &self.causes[kind as usize];
        let group = index.groups.group(keys.get(kind));
        index.lent_successes.of(group)
    }
}

impl CauseIndex {
    fn new(
        store: &EventStore,
        holds: &[PastHold],
        kind: CauseKind,
        cluster_runs: &ClusterRuns,
    ) -> CauseIndex {
        let (groups, group_of) =
            KeyGroups::from_keys(holds.iter().map(|hold| hold.causes.get(kind)));
        let mut held = Vec::with_capacity(holds.len());
        let mut held_again = Vec::new();
        let mut ended = Vec::with_capacity(holds.len());
        let mut outcomes = Vec::with_capacity(holds.len());
        let mut passes = Vec::new();
        let mut lent = Vec::new();
        let mut releases = Vec::new();
        for (hold, index) in holds.iter().zip(0..) {
            held.push((hold.hold_ms, index));
            if is_held_again(holds, index as usize, kind) {
                held_again.push((hold.hold_ms, index));
            }
            ended.extend(hold.end_ms.map(|end_ms| (end_ms, index)));
            outcomes.extend(hold.outcome.map(|outcome| (outcome, index)));
            passes.extend(pass_of_hold(hold).map(|pass| (pass, index)));
            releases.extend(dated_release(hold).map(|release| (release, index)));
            lent.extend(lent_outcomes(hold).map(|outcome| (outcome, index)));
        }

        // A file that one job reads can be read by others. An origin that has one file may lack another.
        let mut reads = Vec::new();
        for (run, index) in input_runs(store, holds, kind) {
            if kind == CauseKind::File {
                passes.push((pass_of_run(&run), index));
                let success = LentOutcome::of_success(run.read_ms, run.known_ms, run.job);
                lent.push((success, index));
            } else {
                reads.push((pass_of_run(&run), index));
            }
        }

        for (run, index) in cluster_runs.of_started_programs(store, holds, kind) {
            let success = LentOutcome::of_success(run.started_ms, run.known_ms, run.job);
            lent.push((success, index));
        }

        let count = groups.count();
        let is_success = |(lent, _): &&(LentOutcome, u32)| lent.outcome.is_success();
        let successes: Vec<(LentOutcome, u32)> = lent.iter().filter(is_success).copied().collect();
        let outcomes = GroupedList::new(count, &group_of, &outcomes);
        CauseIndex {
            held: GroupedList::new(count, &group_of, &held),
            held_again: GroupedList::new(count, &group_of, &held_again),
            ended: GroupedList::new(count, &group_of, &ended),
            successes: successes_so_far(&outcomes),
            outcomes,
            passes: GroupedList::new(count, &group_of, &passes),
            reads: GroupedList::new(count, &group_of, &reads),
            lent: GroupedList::new(count, &group_of, &lent),
            lent_successes: GroupedList::new(count, &group_of, &successes),
            releases: GroupedList::new(count, &group_of, &releases),
            groups,
        }
    }
}

/// Returns the outcomes that `hold` lends: a failure when it began, and its outcome when it was
/// released.
fn lent_outcomes(hold: &PastHold) -> impl Iterator<Item = LentOutcome> {
    let job = hold.job;
    let begun = LentOutcome {
        at_ms: hold.hold_ms,
        outcome: DatedOutcome::new(hold.hold_ms, false),
        job,
        is_by_hand: false,
    };
    let released = hold.release_ms.zip(hold.unrepaired_outcome());
    let released = released.map(|(at_ms, outcome)| LentOutcome {
        at_ms,
        outcome,
        job,
        is_by_hand: !hold.is_automatic,
    });
    [Some(begun), released].into_iter().flatten()
}

/// Returns true if the job of hold `index` had just been released from a hold for the same cause of kind `kind`.
fn is_held_again(holds: &[PastHold], index: usize, kind: CauseKind) -> bool {
    let hold = &holds[index];
    let Some(before) = index.checked_sub(1).map(|before| &holds[before]) else {
        return false;
    };
    before.job == hold.job
        && before.release_ms.is_some()
        && before.causes.get(kind) == hold.causes.get(kind)
}

/// Returns the pass of the job of `hold`, if it got past the point of that hold.
fn pass_of_hold(hold: &PastHold) -> Option<Pass> {
    // A repair of this job shows nothing about others.
    let run = hold
        .next_run
        .filter(|run| run.is_success() && !hold.is_repaired)?;
    Some(Pass {
        known_ms: run.decided_ms(),
        released_ms: hold.release_ms?,
        owner: hold.owner,
        is_by_hand: !hold.is_automatic,
    })
}

/// Returns the release that ended `hold`, if one did.
fn dated_release(hold: &PastHold) -> Option<DatedRelease> {
    let outcomes = hold.next_run.into_iter().chain(hold.outcome);
    let known_ms = outcomes.map(DatedOutcome::decided_ms).min();
    Some(DatedRelease {
        released_ms: hold.release_ms?,
        known_ms: known_ms.unwrap_or(i64::MAX),
    })
}

/// Returns the pass of the job of `run`, which was not held.
fn pass_of_run(run: &InputRun) -> Pass {
    Pass {
        known_ms: run.known_ms,
        released_ms: run.read_ms,
        owner: run.owner,
        is_by_hand: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use test_stores::TestLog;

    proptest! {
        #[test]
        fn last_outcomes_and_holds_are_found_as_by_a_scan(
            decided in proptest::collection::vec(any::<bool>(), 0..12),
            mut held in proptest::collection::vec(0..4i64, 0..8),
            hold_ms in 0..5i64,
        ) {
            let outcomes: Vec<DatedOutcome> = decided
                .iter()
                .zip(0..)
                .map(|(&is_success, at)| DatedOutcome::new(10 * at, is_success))
                .collect();
            let mut so_far = 0;
            let count = |outcome: &DatedOutcome| {
                so_far += u32::from(outcome.is_success());
                so_far
            };
            let successes: Vec<u32> = outcomes.iter().map(count).collect();
            held.sort_unstable();
            let known = KnownCause {
                held: &held,
                ended: &[],
                outcomes: &outcomes,
                successes: &successes,
                passes: &[],
                reads: &[],
            };
            for is_success in [true, false] {
                let last = outcomes.iter().rfind(|outcome| outcome.is_success() == is_success);
                let expected = last.map(|outcome| outcome.decided_ms());
                prop_assert_eq!(known.last_decided_ms(is_success), expected);
            }
            let other = held.iter().rev().find(|&&held_ms| held_ms != hold_ms);
            prop_assert_eq!(known.last_other_hold_ms(hold_ms), other.copied());
        }
    }

    #[test]
    fn cause_failed_again_until_a_job_gets_past_it() {
        let mut log = TestLog::default();
        log.add_held(7, 90);
        // It is held again at 153 s, and the next one gets past the hold at 301 s.
        log.add_released(7, 100, 150, false);
        log.add_released(7, 110, 300, true);
        log.add_held(7, 400);
        let store = log.store();
        let history = HoldHistory::new(&store);
        let failed_again = |kind, asked_s: i64| {
            let keys = &history.holds[0].causes;
            history.failed_again(kind, keys, asked_s * 1000)
        };
        let of_file = [120, 152, 153, 299, 320, 500];
        let expected = [false, false, true, true, false, false];
        assert_eq!(of_file.map(|s| failed_again(CauseKind::File, s)), expected);
        assert!(
            !failed_again(CauseKind::ClusterReason, 200),
            "another cluster"
        );
    }
}
