//! Distinguishes a file that is missing from a directory or server that fails, by the other jobs that got
//! files from there, or failed to, at about the time of a hold.

use std::collections::HashMap;

use super::cause_kind::CauseKind;
use super::failed_reads::{FailedRead, FailedReads, MANY};
use super::input_runs::{runs_of_failed_clusters, runs_that_read};
use super::named_fault::NamedFault;
use super::past_hold::{MAX_COUNTED, PastHold};
use htcondor_eventlog::InputFile;
use htcondor_holdreasons::Outcome;
use poolcast_events::EventStore;

/// Owners whose files are missing in a directory at about the same time from which on the directory counts
/// as missing, if nobody is known to read from it.
const MIN_OWNERS: usize = 3;
/// The same for any directory or server that others read from, without a read in between.
const MIN_OWNERS_BETWEEN_READS: usize = 2;
/// Clusters, with the one of the hold itself, that must have failed between two reads.
const MIN_CLUSTERS_BETWEEN_READS: usize = 3;
/// Clusters of unknown owners that take the place of [`MIN_OWNERS`].
const MIN_CLUSTERS: usize = 3;
/// Files of these clusters or owners.
const MIN_FILES: usize = 2;
/// Reads from which on jobs are known to read from a directory or server.
const MIN_READS: usize = 5;
/// Reads before a hold, and as many after it, between which no other cluster may fail if the directory or server
/// works, and at most within the time that as many reads take on the mean.
const READS_AROUND: usize = 3;
/// Mean times between two reads without one from which on it is missed.
const MISSED_AFTER: i64 = 3;
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
    /// Jobs of several clusters failed to get their files, and the log does not name their owners: all may
    /// be of one who misnamed the files.
    PerhapsFails,
}

/// A transfer of an input file that succeeded. Sorts by its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Read {
    read_ms: i64,
    known_ms: i64,
}

// More clusters, owners or files than are counted change no answer.
const _: () = assert!(
    MIN_OWNERS <= MANY
        && MIN_OWNERS_BETWEEN_READS <= MANY
        && MIN_CLUSTERS_BETWEEN_READS <= MANY
        && MIN_CLUSTERS <= MANY
        && MIN_FILES <= MANY
);

/// The transfers of input files from one directory or server, each in order of time.
#[derive(Debug, Default)]
struct OriginReads {
    failed: FailedReads,
    /// Times at which the server said that it fails, sorted.
    server_failed_ms: Vec<i64>,
    /// First runs of jobs, at most one per second.
    reads: Vec<Read>,
    /// Times at which the reads were known, sorted.
    known_ms: Vec<i64>,
}

/// The transfers of input files from all directories and servers that a hold names, by their hashes.
#[derive(Debug)]
pub(super) struct OriginStates(HashMap<u32, OriginReads>);

impl OriginStates {
    /// Collects the transfers in `store` that failed with `holds`, and those that succeeded.
    pub(super) fn new(store: &EventStore, holds: &[PastHold]) -> OriginStates {
        let mut failed: HashMap<u32, Vec<FailedRead>> = HashMap::new();
        for hold in holds.iter().filter(|hold| names_input(hold)) {
            failed.entry(hold.origin).or_default().push(FailedRead {
                hold_ms: hold.hold_ms,
                cluster: store.jobs().cluster(hold.job as usize),
                owner: hold.owner,
                file: hold.causes.get(CauseKind::File),
                is_of_server: NamedFault::of_kind(hold.stated) == NamedFault::Server,
            });
        }
        let of_input = |input: InputFile| {
            let origin = input.origin;
            failed.contains_key(&origin).then_some(origin)
        };
        let listed = runs_that_read(store, of_input);
        let shared = runs_of_failed_clusters(store, holds);
        let mut reads: HashMap<u32, Vec<Read>> = HashMap::new();
        for (run, origin) in listed.into_iter().chain(shared) {
            reads.entry(origin).or_default().push(Read {
                read_ms: run.read_ms,
                known_ms: run.known_ms,
            });
        }

        let with_reads = |(origin, failed)| {
            let reads = reads.remove(&origin).unwrap_or_default();
            (origin, OriginReads::new(failed, reads))
        };
        OriginStates(failed.into_iter().map(with_reads).collect())
    }

    /// Returns the state of the directory or server of `hold` when it began, as known at `asked_ms`, and, if
    /// it failed, the number of reads since, at most [`MAX_COUNTED`]. `unit_ms` is a typical hold length.
    pub(super) fn at_hold(
        &self,
        hold: &PastHold,
        asked_ms: i64,
        unit_ms: f64,
    ) -> (OriginState, usize) {
        let Some(of_origin) = self.of_input(hold) else {
            return (OriginState::Unknown, 0);
        };
        let known_reads = of_origin
            .known_ms
            .partition_point(|&known_ms| known_ms <= asked_ms);
        let by_reads = (known_reads >= MIN_READS)
            .then(|| of_origin.state_by_reads(hold, asked_ms, known_reads))
            .filter(|(state, _)| *state != OriginState::Unknown);
        by_reads.unwrap_or_else(|| {
            let state = of_origin.state_by_failures(hold, asked_ms, unit_ms as i64);
            (state, 0)
        })
    }

    /// Returns the transfers from the directory or server of the input file that `hold` names; `None` if it
    /// names none.
    fn of_input(&self, hold: &PastHold) -> Option<&OriginReads> {
        self.0.get(&hold.origin).filter(|_| names_input(hold))
    }

    /// Returns true if two clusters failed to get different files from the directory or server of `hold` between
    /// two times.
    pub(super) fn has_failed_between(&self, hold: &PastHold, from_ms: i64, until_ms: i64) -> bool {
        let Some(of_origin) = self.of_input(hold) else {
            return false;
        };
        of_origin.failed.has_other_between(from_ms, until_ms)
    }
}

impl OriginReads {
    fn new(mut failed: Vec<FailedRead>, mut reads: Vec<Read>) -> OriginReads {
        reads.sort_unstable();
        reads.dedup_by_key(|read| read.read_ms / 1000);
        let mut known_ms: Vec<i64> = reads.iter().map(|read| read.known_ms).collect();
        known_ms.sort_unstable();

        failed.sort_unstable();
        let of_server = failed.iter().filter(|failed| failed.is_of_server);
        let server_failed_ms = of_server.map(|failed| failed.hold_ms).collect();

        // Thousands of jobs of a cluster may fail together, and a few of them say the same.
        let mut kept: HashMap<_, usize> = HashMap::new();
        failed.retain(|failed| {
            let before = reads.partition_point(|read| read.read_ms <= failed.hold_ms);
            let together = (failed.cluster, before, failed.hold_ms / 60_000);
            let count = kept.entry(together).or_default();
            *count += 1;
            *count <= MIN_FILES
        });
        OriginReads {
            failed: FailedReads::from_sorted(failed),
            server_failed_ms,
            reads,
            known_ms,
        }
    }

    /// Returns the state by the failures within `unit_ms` before and after `hold`.
    fn state_by_failures(&self, hold: &PastHold, asked_ms: i64, unit_ms: i64) -> OriginState {
        let until_ms = asked_ms.min(hold.hold_ms + unit_ms);
        let failed = (self.failed).counts_between(hold.hold_ms - unit_ms, until_ms);
        if hold.subcode != NO_SUCH_FILE || failed.files < MIN_FILES {
            OriginState::Unknown
        } else if failed.owners >= MIN_OWNERS {
            OriginState::Fails
        } else if failed.owners == 0 && failed.clusters >= MIN_CLUSTERS {
            OriginState::PerhapsFails
        } else {
            OriginState::Unknown
        }
    }

    /// Returns the state by the last known read before `hold`, the first one after it, and the failures between
    /// them, and the reads since a failure.
    fn state_by_reads(
        &self,
        hold: &PastHold,
        asked_ms: i64,
        known_reads: usize,
    ) -> (OriginState, usize) {
        let after = self
            .reads
            .partition_point(|read| read.read_ms <= hold.hold_ms);
        let (before, after) = self.reads.split_at(after);
        // A read is known when it has ended, or later.
        let after = &after[..after.partition_point(|read| read.read_ms <= asked_ms)];
        let earlier_ms = first_known(before.iter().rev(), asked_ms, READS_AROUND);
        let later_ms = first_known(after.iter(), asked_ms, READS_AROUND);
        let mean_ms = (asked_ms - self.reads[0].read_ms) / known_reads as i64;

        let from_ms = earlier_ms.first().copied().unwrap_or(hold.hold_ms);
        let until_ms = later_ms
            .first()
            .map_or(asked_ms, |next_ms| asked_ms.min(*next_ms));
        let failed = self.failed.counts_between(from_ms, until_ms);
        if until_ms - from_ms >= MISSED_AFTER * mean_ms
            && (failed.owners == 0 || failed.owners >= MIN_OWNERS_BETWEEN_READS)
            && failed.clusters >= MIN_CLUSTERS_BETWEEN_READS
            && failed.files >= MIN_FILES
        {
            let reads_since = first_known(after.iter(), asked_ms, MAX_COUNTED).len();
            (OriginState::Fails, reads_since)
        } else if self.works_at(hold.hold_ms, (&earlier_ms, &later_ms), mean_ms, asked_ms) {
            (OriginState::Works, 0)
        } else {
            (OriginState::Unknown, 0)
        }
    }

    /// Returns true if the reads at `earlier_ms` and `later_ms`, the nearest ones first, show at `asked_ms` that
    /// others got their files at `hold_ms`, where the mean time between two reads is `mean_ms`.
    fn works_at(
        &self,
        hold_ms: i64,
        (earlier_ms, later_ms): (&[i64], &[i64]),
        mean_ms: i64,
        asked_ms: i64,
    ) -> bool {
        // One of the two nearest reads must be as near as reads are to each other on the mean: an outage would have
        // had to begin or end in between.
        let nearest_ms = earlier_ms.first().zip(later_ms.first());
        let is_between = nearest_ms.is_some_and(|(earlier_ms, later_ms)| {
            (hold_ms - earlier_ms).min(later_ms - hold_ms) <= mean_ms
        });
        if !is_between {
            return false;
        }

        // A server that fails for hours may answer some. An outage that begins much later says nothing.
        let around_ms = READS_AROUND as i64 * mean_ms;
        let first_ms = earlier_ms.get(READS_AROUND - 1).copied();
        let last_ms = later_ms.get(READS_AROUND - 1).copied();
        let from_ms = first_ms.unwrap_or(i64::MIN).max(hold_ms - around_ms);
        let until_ms = last_ms.unwrap_or(asked_ms).min(hold_ms + around_ms);
        let next = (self.server_failed_ms).partition_point(|&failed_ms| failed_ms < from_ms);
        let has_failed = (self.server_failed_ms.get(next)).is_some_and(|&ms| ms <= until_ms);
        !has_failed && self.failed.counts_between(from_ms, until_ms).clusters <= 1
    }
}

/// Returns the times of the first `count` of `reads` that are known at `asked_ms`, epoch ms.
fn first_known<'a>(reads: impl Iterator<Item = &'a Read>, asked_ms: i64, count: usize) -> Vec<i64> {
    let known = reads.filter(|read| read.known_ms <= asked_ms);
    known.map(|read| read.read_ms).take(count).collect()
}

/// Returns true if `hold` names an input file that did not arrive, or a program or a directory that is
/// missing.
fn names_input(hold: &PastHold) -> bool {
    let stated = hold.stated;
    let is_missing = stated.outcome == Outcome::Absent && stated.is_of_file();
    hold.origin != 0 && (stated.is_input_transfer() || is_missing)
}

#[cfg(test)]
mod tests {
    use super::super::hold_history::HoldHistory;
    use super::*;
    use htcondor_eventlog::{EXECUTE, FILE_TRANSFER};
    use htcondor_holdreasons::read_reason;
    use test_stores::TestLog;

    fn file(file: u32) -> InputFile {
        InputFile { file, origin: 7 }
    }

    /// Returns a log in which others read from the origin 7 every 10 s up to 200 s, and from `back_s` on.
    fn log_of_reads(back_s: i64) -> TestLog {
        let mut log = TestLog::default();
        for tens in 0..20 {
            log.add_reader(file(1), 10 + 10 * tens);
        }
        for tens in 0..5 {
            log.add_reader(file(1), back_s + 10 * tens);
        }
        log
    }

    /// Returns the state for the hold of the first job of `log` that is held, asked at `asked_s`.
    fn state(log: &TestLog, asked_s: i64) -> (OriginState, usize) {
        let store = log.store();
        let history = HoldHistory::new(&store);
        history.origin_state(&history.holds[0], asked_s * 1000)
    }

    #[test]
    fn origin_works_if_others_read_before_and_after() {
        let mut log = log_of_reads(210);
        log.add_failed_read(file(2), 205, "ada");
        assert_eq!(state(&log, 211).0, OriginState::Unknown, "no read since");
        assert_eq!(state(&log, 300), (OriginState::Works, 0));

        log.add_failed_read(file(3), 206, "ada");
        assert_eq!(state(&log, 300).0, OriginState::Unknown, "two failures");
    }

    #[test]
    fn server_that_says_that_it_fails_does_not_work() {
        let state_with = |reason: &str| {
            let mut log = log_of_reads(210);
            log.add_failed_read(file(2), 205, "ada");
            let kind = read_reason(reason, Some((13, 256))).kind;
            log.state(.., kind);
            state(&log, 300).0
        };
        let plugin = "Transfer input files failure at execution point slot1@e using protocol https. Details: The requested URL returned error:";
        let lacks = format!("{plugin} 404 ( URL file = https://a.example/x )|");
        assert_eq!(state_with(&lacks), OriginState::Works);
        let fails = format!("{plugin} 503 ( URL file = https://a.example/x )|");
        assert_eq!(state_with(&fails), OriginState::Unknown);
    }

    #[test]
    fn server_that_answers_some_while_it_fails_does_not_work() {
        // Others read at 190, 200, 210, 220, 230 and 240 s.
        let state_with = |failed_s: i64, asked_s: i64| {
            let mut log = log_of_reads(210);
            log.add_failed_read(file(2), 215, "ada");
            log.add_failed_read(file(3), failed_s, "bob");
            state(&log, asked_s).0
        };
        assert_eq!(state_with(188, 300), OriginState::Works);
        assert_eq!(state_with(206, 300), OriginState::Unknown);
        assert_eq!(state_with(224, 300), OriginState::Unknown);
        assert_eq!(state_with(245, 300), OriginState::Works);
        assert_eq!(state_with(188, 225), OriginState::Works, "one read since");
        assert_eq!(state_with(224, 225), OriginState::Unknown);
        assert_eq!(state_with(226, 225), OriginState::Works, "not yet known");
    }

    #[test]
    fn jobs_of_a_cluster_that_lists_no_inputs_show_that_its_server_works() {
        let mut log = TestLog::default();
        let cluster = log.add_held(7, 205);
        for tens in 0..30 {
            log.add(&[
                (10 + 10 * tens, FILE_TRANSFER, 0),
                (12 + 10 * tens, EXECUTE, 0),
            ]);
            log.move_last_job_to(cluster);
        }
        assert_eq!(state(&log, 206).0, OriginState::Unknown, "no read since");
        assert_eq!(state(&log, 300).0, OriginState::Works);
    }

    #[test]
    fn failures_of_several_owners_count_if_reads_say_nothing() {
        let mut log = log_of_reads(900);
        for (number, owner) in [(2, "ada"), (3, "bob"), (4, "cy")] {
            log.add_failed_read(file(number), 500, owner);
        }
        let store = log.store();
        let history = HoldHistory::new(&store);
        let mut missing = history.holds[0].clone();
        missing.subcode = NO_SUCH_FILE;
        let state_at = |asked_s: i64| history.origin_state(&missing, asked_s * 1000).0;
        assert_eq!(state_at(500), OriginState::Fails);
    }

    #[test]
    fn directory_of_an_output_was_read_by_nobody_whatever_the_code() {
        let state_after = |reason: &str| {
            let mut log = log_of_reads(210);
            log.add_failed_read(file(2), 205, "ada");
            log.state(.., read_reason(reason, Some((12, 2))).kind);
            state(&log, 300).0
        };
        let output = "Transfer output files failure at access point ap while receiving files from execution point slot1@e. Details: writing to file /x/a: (errno 2) No such file or directory";
        assert_eq!(state_after(output), OriginState::Unknown);
        let input = "Error from slot1@e: STARTER at 192.0.2.7 failed to receive file(s) from <192.0.2.9:1>; SHADOW at 192.0.2.9 failed to send file(s) to <192.0.2.7:1>: error reading from /x/a: (errno 2) No such file or directory";
        assert_eq!(state_after(input), OriginState::Works);
    }

    #[test]
    fn reads_far_from_a_hold_say_nothing_about_it() {
        let mut log = log_of_reads(900);
        log.add_failed_read(file(2), 500, "ada");
        assert_eq!(state(&log, 1000).0, OriginState::Unknown);
    }

    #[test]
    fn origin_fails_if_several_owners_get_nothing_between_two_reads() {
        let mut log = log_of_reads(600);
        for (number, owner) in [(2, "ada"), (3, "bob"), (4, "ada")] {
            log.add_failed_read(file(number), 300 + i64::from(number), owner);
        }
        assert_eq!(state(&log, 303).0, OriginState::Unknown, "of two clusters");
        assert_eq!(state(&log, 500), (OriginState::Fails, 0));
        assert_eq!(state(&log, 615), (OriginState::Fails, 2), "it is back");

        let mut of_one_owner = log_of_reads(600);
        for number in 2..9 {
            of_one_owner.add_failed_read(file(number), 300, "ada");
        }
        assert_eq!(state(&of_one_owner, 500).0, OriginState::Unknown);
    }

    #[test]
    fn clusters_count_where_the_log_names_no_owner() {
        let mut log = log_of_reads(600);
        for number in 2..5 {
            log.add_failed_read(file(number), 300 + i64::from(number), "");
        }
        assert_eq!(state(&log, 303).0, OriginState::Unknown, "two clusters");
        assert_eq!(state(&log, 500), (OriginState::Fails, 0));

        let mut while_others_read = log_of_reads(210);
        while_others_read.add_failed_read(file(2), 205, "");
        assert_eq!(state(&while_others_read, 300).0, OriginState::Works);
        while_others_read.add_failed_read(file(3), 206, "");
        let of_two = state(&while_others_read, 300).0;
        assert_eq!(of_two, OriginState::Unknown, "two failures");
    }

    #[test]
    fn without_reads_clusters_of_unknown_owners_may_miss_a_directory() {
        let mut log = TestLog::default();
        for number in [2, 3] {
            log.add_failed_read(file(number), 300, "");
        }
        let missing_state = |log: &TestLog| {
            let store = log.store();
            let history = HoldHistory::new(&store);
            let mut missing = history.holds[0].clone();
            missing.subcode = NO_SUCH_FILE;
            history.origin_state(&missing, 500_000).0
        };
        assert_eq!(missing_state(&log), OriginState::Unknown, "two clusters");
        log.add_failed_read(file(2), 300, "");
        assert_eq!(missing_state(&log), OriginState::PerhapsFails);
        log.add_failed_read(file(2), 300, "ada");
        assert_eq!(missing_state(&log), OriginState::Unknown, "one owner");
    }

    #[test]
    fn failures_between_two_usual_reads_are_of_the_files() {
        let mut log = log_of_reads(210);
        for (number, owner) in [(2, "ada"), (3, "bob"), (4, "ada")] {
            log.add_failed_read(file(number), 205, owner);
        }
        assert_eq!(state(&log, 300).0, OriginState::Unknown);
    }

    #[test]
    fn without_reads_three_owners_must_miss_files_of_a_directory() {
        let mut log = TestLog::default();
        for owner in ["ada", "bob", "cy", "dan"] {
            log.add_failed_read(file(2), 300, owner);
            log.add_failed_read(file(3), 300, owner);
        }
        assert_eq!(state(&log, 500).0, OriginState::Unknown, "plug-ins failed");
    }
}
