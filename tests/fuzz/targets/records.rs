//! Reads any bytes as an event log. The result must be events and anomalies, or an error, but never
//! a panic. All ways to read a log must agree on its content.

#![no_main]

use std::cell::RefCell;
use std::path::Path;

use htcondor_eventlog::{self as eventlog, AD_INFORMATION, GENERIC, LogSummary, ReadOptions};
use libfuzzer_sys::fuzz_target;
use poolcast_fuzz::{new_file, write};
use tempfile::NamedTempFile;

thread_local! {
    /// The file of the log, in memory if the system has `/dev/shm`.
    static FILE: RefCell<NamedTempFile> = RefCell::new(new_file());
}

fuzz_target!(init: one_thread(), |text: &[u8]| {
    let scanned = eventlog::scan(text);
    FILE.with_borrow_mut(|file| {
        let half = write(file, &text[..text.len() / 2]);
        let resume = eventlog::read(half, &ReadOptions::default(), |_| {}, &mut |_| Ok(())).ok().and_then(|log| log.resume);
        let whole = write(file, text);
        if let Some(resume) = resume.filter(|resume| eventlog::can_read_on(whole, resume).expect("readable")) {
            drop(eventlog::read_on(whole, &ReadOptions::default(), &resume, |_| {}, &mut |_| Ok(())));
        }
        check(whole, scanned);
    });
});

/// Runs the reader on the calling thread. Otherwise every input would wake the threads of a pool.
fn one_thread() {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .use_current_thread();
    pool.build_global().expect("the first pool");
}

/// Reads the log at `path` in several ways, and compares them. A scan found `scanned` events in it.
fn check(path: &Path, scanned: usize) {
    // With a year, every event has a time, so no event is dropped.
    let options = ReadOptions {
        year: Some(2024),
        ..ReadOptions::default()
    };
    let mut events = 0;
    let log = eventlog::read(path, &options, |_| {}, &mut |batch| {
        events += batch.events.len();
        Ok(())
    });
    let mut lines = Vec::new();
    let dumped = eventlog::dump(path, &options, &mut lines);
    let Ok(log) = log else { return };
    dumped.expect("what can be read can be dumped");
    let lines = lines.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(
        lines as u64,
        log.records_by_number.values().sum::<u64>(),
        "lines and records"
    );
    assert_eq!(events as u64, records_of_jobs(&log), "events and records");
    // For a compressed log, the scan saw other bytes than the reader.
    assert!(
        events == scanned || log.bytes != log.file_bytes,
        "{events} events read, {scanned} scanned"
    );
}

fn records_of_jobs(log: &LogSummary) -> u64 {
    let from_jobs = log
        .records_by_number
        .iter()
        .filter(|(number, _)| ![GENERIC, AD_INFORMATION].contains(number));
    from_jobs.map(|(_, count)| count).sum()
}
