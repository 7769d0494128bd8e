//! Tells a file that a server lacks from a server that fails, by what was known before each hold. A cache
//! that cannot reach its origin may say that a file is missing, and a server that fails does not say so of a
//! file that it lacks.

use std::collections::{HashMap, HashSet};

use super::cause_kind::{CauseKeys, CauseKind};
use super::cluster_runs::ClusterKey;
use super::failed_reads::MANY;
use super::input_runs::input_runs;
use super::named_fault::NamedFault;
use super::past_hold::PastHold;
use poolcast_events::EventStore;

/// What became known about an origin, and the index of a hold for it. Sorts by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct OriginEvent {
    known_ms: i64,
    /// True if a job got past the transfer, and false if the hold began.
    is_pass: bool,
    hold: usize,
    /// Index of the job.
    job: u32,
}

/// What became of the transfers from one origin so far.
#[derive(Debug, Default)]
struct OriginFaults {
    all: Faults,
    clusters: HashMap<ClusterKey, Faults>,
}

/// What a server said to some jobs since the last ones that passed.
#[derive(Debug, Default)]
struct Faults {
    has_failed: bool,
    /// Number of files that it lacked.
    missing: usize,
    /// Number of jobs that passed since it failed.
    passed: usize,
}

impl OriginFaults {
    fn add_hold(&mut self, cluster: ClusterKey, fault: NamedFault) {
        for faults in [&mut self.all, self.clusters.entry(cluster).or_default()] {
            faults.add_hold(fault);
        }
    }

    /// Counts a job of `cluster` that passed. One pass shows to others that the server works, but a server that fails lets
    /// some of the jobs of a large cluster pass.
    fn add_pass(&mut self, cluster: ClusterKey) {
        self.all.add_pass(1);
        if let Some(own) = self.clusters.get_mut(&cluster) {
            own.add_pass(MANY);
        }
    }

    /// Returns true if the server is not believed that it lacks a file of `cluster`: a server that fails says so to some
    /// jobs, and to others that it lacks the file. What it said to the cluster outweighs what it said to others.
    fn makes_doubtful(&self, cluster: ClusterKey) -> bool {
        match self.clusters.get(&cluster) {
            Some(own) if own.has_failed => true,
            Some(own) if own.missing >= MANY => false,
            _ => self.all.has_failed,
        }
    }
}

impl Faults {
    fn add_hold(&mut self, fault: NamedFault) {
        match fault {
            NamedFault::Server => {
                self.has_failed = true;
                self.passed = 0;
            }
            NamedFault::Missing => self.missing += 1,
            _ => {}
        }
    }

    /// Counts a job that passed. If the server has failed, `enough` of them show that it works again.
    fn add_pass(&mut self, enough: usize) {
        self.passed += 1;
        if !self.has_failed || self.passed >= enough {
            *self = Faults::default();
        }
    }
}

/// Corrects the faults that failed plug-ins name in `holds`, which are sorted by job and time.
pub(super) fn correct_named_faults(store: &EventStore, holds: &mut [PastHold]) {
    let jobs = store.jobs();
    let mut origins: HashMap<u32, OriginFaults> = HashMap::new();
    let mut lacked_files: HashSet<(u32, u64)> = HashSet::new();
    for event in origin_events(store, holds) {
        let hold = &mut holds[event.hold];
        if hold.origin == 0 {
            continue; // unknown
        }
        let origin = origins.entry(hold.origin).or_default();
        let cluster = jobs.cluster(event.job as usize);
        if event.is_pass {
            origin.add_pass(cluster);
            continue;
        }

        let file = (hold.job, hold.causes.get(CauseKind::File));
        let fault = match hold.named_fault {
            NamedFault::Missing if origin.makes_doubtful(cluster) => NamedFault::Server,
            NamedFault::Server if lacked_files.contains(&file) => NamedFault::Missing,
            fault => fault,
        };
        origin.add_hold(cluster, hold.named_fault);
        if fault == NamedFault::Missing {
            lacked_files.insert(file);
        }
        if fault != hold.named_fault {
            hold.is_perhaps_missing = fault == NamedFault::Server;
            hold.named_fault = fault;
            let job = jobs.get(hold.job as usize);
            hold.causes = CauseKeys::new(&job, hold.cycle.hold, fault);
        }
    }
}

/// Returns the holds because plug-ins failed, the times at which their jobs were known to get past them,
/// and those at which other jobs were known to have read from the same origins, in order of time.
fn origin_events(store: &EventStore, holds: &[PastHold]) -> Vec<OriginEvent> {
    let mut events = Vec::new();
    for (index, hold) in holds.iter().enumerate() {
        if !hold.stated.is_plugin_transfer() {
            continue;
        }
        let mut add = |known_ms, is_pass| {
            events.push(OriginEvent {
                known_ms,
                is_pass,
                hold: index,
                job: hold.job,
            });
        };
        add(hold.hold_ms, false);
        if let Some(pass) = hold.next_run.filter(|next| next.is_success()) {
            add(pass.decided_ms(), true);
        }
    }
    if !events.is_empty() {
        let reads = input_runs(store, holds, CauseKind::Origin);
        events.extend(reads.into_iter().map(|(run, hold)| OriginEvent {
            known_ms: run.known_ms,
            is_pass: true,
            hold: hold as usize,
            job: run.job,
        }));
    }
    events.sort_unstable();
    events
}

#[cfg(test)]
mod tests {
    use super::super::hold_history::HoldHistory;
    use super::*;
    use htcondor_eventlog::InputFile;
    use htcondor_holdreasons::read_reason;
    use test_stores::TestLog;

    /// Returns the second hold of `log`, where the server failed at the first, and said at the second that it
    /// lacks the file.
    fn second_hold(log: &TestLog) -> PastHold {
        let store = log.store();
        let mut holds = HoldHistory::new(&store).holds;
        holds[0].named_fault = NamedFault::Server;
        holds[1].named_fault = NamedFault::Missing;
        correct_named_faults(&store, &mut holds);
        holds[1].clone()
    }

    #[test]
    fn server_that_fails_is_not_believed_about_missing_files() {
        let file = |file| InputFile { file, origin: 7 };
        let mut log = TestLog::default();
        log.add_failed_read(file(1), 100, "ada");
        log.add_failed_read(file(2), 200, "bob");
        let hold = second_hold(&log);
        assert_eq!(hold.named_fault, NamedFault::Server);
        assert!(hold.is_perhaps_missing);

        log.add_reader(file(3), 150);
        let hold = second_hold(&log);
        assert_eq!(hold.named_fault, NamedFault::Missing);
        assert!(!hold.is_perhaps_missing, "it worked in between");
    }

    #[test]
    fn server_is_believed_by_what_it_said_to_the_cluster() {
        use NamedFault::{Missing, Server};
        let (own, other) = ((0, 1), (0, 2));
        let mut origin = OriginFaults::default();
        origin.add_hold(other, Server);
        origin.add_hold(own, Missing);
        origin.add_hold(own, Missing);
        assert!(origin.makes_doubtful(own), "it failed for others");
        origin.add_hold(own, Missing);
        assert!(!origin.makes_doubtful(own), "it never failed for this one");

        origin.add_hold(own, Server);
        for left in [2, 1, 0] {
            origin.add_pass(own);
            assert_eq!(origin.makes_doubtful(own), left > 0);
        }
        assert!(!origin.makes_doubtful((0, 3)), "jobs of others passed");
        assert!(origin.makes_doubtful(other), "none of its jobs passed");
    }

    #[test]
    fn daemon_is_believed_about_missing_files_whatever_the_code() {
        let mut log = TestLog::default();
        log.add_failed_read(InputFile { file: 1, origin: 7 }, 100, "ada");
        log.add_failed_read(InputFile { file: 2, origin: 7 }, 200, "bob");
        let mut second_fault = |reason: &str, codes| {
            log.state(.., read_reason(reason, Some(codes)).kind);
            second_hold(&log).named_fault
        };
        let by_plugin = "Transfer output files failure at execution point slot1@e using protocol https. Details: The requested URL returned error: 404 ( URL file = https://a.example/x )|";
        assert_eq!(second_fault(by_plugin, (13, 1)), NamedFault::Server);
        let by_daemon = "Transfer input files failure at access point ap while sending files to execution point slot1@e. Details: reading from file /x: (errno 2) No such file or directory";
        assert_eq!(second_fault(by_daemon, (13, 256)), NamedFault::Missing);
    }
}
