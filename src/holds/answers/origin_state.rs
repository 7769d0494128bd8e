//! Tells a file that its directory or server lacks from a directory or server that fails, by the other jobs
//! that got files from there, or failed to, at about the time of a hold.

use std::collections::{HashMap, HashSet};

use super::cause_kind::CauseKind;
use super::input_runs::{TRANSFER_INPUT, runs_of_origins};
use super::past_hold::PastHold;
use poolcast_events::EventStore;

/// Owners whose files are missing in a directory at about the same time from which on the directory counts
/// as missing, if nobody is known to read from it.
const MIN_OWNERS: usize = 3;
/// The same for any directory or server that others read from, without a read in between.
const MIN_OWNERS_BETWEEN_READS: usize = 2;
/// Clusters, with that of the hold itself, that must have failed between two reads.
const MIN_CLUSTERS_BETWEEN_READS: usize = 3;
/// Files of these clusters or owners.
const MIN_FILES: usize = 2;
/// Reads from which on jobs are known to read from a directory or server.
const MIN_READS: usize = 5;
/// `ENOENT`: no such file or directory.
const NO_SUCH_FILE: i32 = 2;

/// The state of a directory or a server at the time of a hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OriginState {
    /// The log does not say.
    #[default]
    Unknown,
    /// Other jobs got their files before and after.
    Works,
    /// Jobs of several owners failed to get their files.
    Fails,
}

/// A hold because an input file did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FailedRead {
    hold_ms: i64,
    cluster: (u32, i32),
    owner: u64,
    file: u64,
}

/// A transfer of an input file that succeeded. Sorts by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Read {
    read_ms: i64,
    known_ms: i64,
}

/// The transfers of input files from one directory or server, in order of time.
#[derive(Debug, Default)]
struct OriginReads {
    failed: Vec<FailedRead>,
    /// At most one per second.
    reads: Vec<Read>,
}

/// The transfers of input files from all directories and servers that a hold names, by their hashes.
#[derive(Debug)]
pub(super) struct OriginStates(HashMap<u32, OriginReads>);

impl OriginStates {
    /// Collects the transfers in `store` that jobs were held for, and those that succeeded.
    pub(super) fn new(store: &EventStore, holds: &[PastHold]) -> OriginStates {
        let mut origins: HashMap<u32, OriginReads> = HashMap::new();
        for hold in holds.iter().filter(|hold| names_input(hold)) {
            let of_origin = origins.entry(hold.origin).or_default();
            of_origin.failed.push(FailedRead {
                hold_ms: hold.hold_ms,
                cluster: store.jobs().cluster(hold.job as usize),
                owner: hold.owner,
                file: hold.causes.get(CauseKind::File),
            });
        }
        for (run, origin) in runs_of_origins(store, |origin| origins.contains_key(&origin)) {
            let of_origin = origins.entry(origin).or_default();
            of_origin.reads.push(Read {
                read_ms: run.read_ms,
                known_ms: run.known_ms,
            });
        }
        for of_origin in origins.values_mut() {
            of_origin.failed.sort_unstable();
            of_origin.reads.sort_unstable();
            of_origin.reads.dedup_by_key(|read| read.read_ms / 1000);
        }
        OriginStates(origins)
    }

    /// Returns the state of the directory or server of `hold` when it began, as known at `asked_ms`, and the
    /// number of reads from there since it last failed. `unit_ms` is a typical hold length.
    pub(super) fn at_hold(
        &self,
        hold: &PastHold,
        asked_ms: i64,
        unit_ms: f64,
    ) -> (OriginState, usize) {
        let Some(of_origin) = self.0.get(&hold.origin).filter(|_| names_input(hold)) else {
            return (OriginState::Unknown, 0);
        };
        let known = |read: &&Read| read.known_ms <= asked_ms;
        let after = of_origin
            .reads
            .partition_point(|read| read.read_ms <= hold.hold_ms);
        let (before, after) = of_origin.reads.split_at(after);
        let previous_ms = before.iter().rfind(known).map(|read| read.read_ms);
        let next_ms = after.iter().find(known).map(|read| read.read_ms);

        let reads = before.iter().chain(after).filter(known).count();
        if reads < MIN_READS {
            let within_ms = unit_ms as i64;
            let (from_ms, to_ms) = (hold.hold_ms - within_ms, hold.hold_ms + within_ms);
            let failed = of_origin.failed_between(from_ms, to_ms.min(asked_ms));
            let fails = hold.subcode == NO_SUCH_FILE
                && failed.owners.len() >= MIN_OWNERS
                && failed.files.len() >= MIN_FILES;
            let state = if fails {
                OriginState::Fails
            } else {
                OriginState::Unknown
            };
            return (state, 0);
        }

        let from_ms = previous_ms.unwrap_or(i64::MIN);
        let failed = of_origin.failed_between(from_ms, next_ms.unwrap_or(i64::MAX).min(asked_ms));
        if failed.owners.len() >= MIN_OWNERS_BETWEEN_READS
            && failed.clusters.len() >= MIN_CLUSTERS_BETWEEN_READS
            && failed.files.len() >= MIN_FILES
        {
            let reads_since = next_ms.map_or(0, |_| after.iter().filter(known).count());
            return (OriginState::Fails, reads_since);
        }
        let first_ms = of_origin.reads[0].read_ms;
        let between_ms = (asked_ms - first_ms) / reads as i64;
        let is_near = |read_ms: i64| (hold.hold_ms - read_ms).abs() <= between_ms;
        let works = previous_ms
            .zip(next_ms)
            .is_some_and(|(previous_ms, next_ms)| is_near(previous_ms) || is_near(next_ms));
        let state = if works && failed.clusters.len() <= 1 {
            OriginState::Works
        } else {
            OriginState::Unknown
        };
        (state, 0)
    }
}

/// The different jobs among failed transfers.
#[derive(Debug, Default)]
struct FailedJobs {
    clusters: HashSet<(u32, i32)>,
    owners: HashSet<u64>,
    files: HashSet<u64>,
}

impl OriginReads {
    /// Returns the jobs of known owners whose transfers failed between two times.
    fn failed_between(&self, from_ms: i64, to_ms: i64) -> FailedJobs {
        let begin = self
            .failed
            .partition_point(|failed| failed.hold_ms < from_ms);
        let until = self
            .failed
            .partition_point(|failed| failed.hold_ms <= to_ms);
        let mut jobs = FailedJobs::default();
        for failed in self.failed[begin..until.max(begin)]
            .iter()
            .filter(|failed| failed.owner != 0)
        {
            jobs.clusters.insert(failed.cluster);
            jobs.owners.insert(failed.owner);
            jobs.files.insert(failed.file);
        }
        jobs
    }
}

/// Returns true if `hold` names an input file that did not arrive, or a program or a directory that is
/// missing.
fn names_input(hold: &PastHold) -> bool {
    let is_missing = matches!(hold.code, 6..=10 | 14 | 22) && hold.subcode == NO_SUCH_FILE;
    hold.origin != 0 && (hold.code == TRANSFER_INPUT || is_missing)
}
