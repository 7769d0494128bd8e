//! Tells a file that a server lacks from a server that fails, by what was known before each hold. A cache
//! that cannot reach its origin may say that a file is missing, and a server that fails does not say so of a
//! file that it lacks.

use std::collections::HashSet;

use super::cause_kind::{CauseKeys, CauseKind};
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
}

/// Corrects the faults that failed plug-ins name in `holds`, which are sorted by job and time.
pub(super) fn correct_named_faults(store: &EventStore, holds: &mut [PastHold]) {
    let mut failing_origins: HashSet<u32> = HashSet::new();
    let mut lacked_files: HashSet<(u32, u64)> = HashSet::new();
    for event in origin_events(store, holds) {
        let hold = &mut holds[event.hold];
        if hold.origin == 0 {
            continue; // unknown
        }
        if event.is_pass {
            failing_origins.remove(&hold.origin);
            continue;
        }

        let file = (hold.job, hold.causes.get(CauseKind::File));
        let fault = match hold.named_fault {
            NamedFault::Missing if failing_origins.contains(&hold.origin) => NamedFault::Server,
            NamedFault::Server if lacked_files.contains(&file) => NamedFault::Missing,
            fault => fault,
        };
        if hold.named_fault == NamedFault::Server {
            failing_origins.insert(hold.origin);
        }
        if fault == NamedFault::Missing {
            lacked_files.insert(file);
        }
        if fault != hold.named_fault {
            hold.is_perhaps_missing = fault == NamedFault::Server;
            hold.named_fault = fault;
            let job = store.jobs().get(hold.job as usize);
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
