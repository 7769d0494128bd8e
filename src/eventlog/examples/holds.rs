//! Counts the holds in event logs by code and subcode, with what the first of their reasons states:
//! `cargo run --example holds -- /var/log/condor/EventLog`.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::path::PathBuf;

use htcondor_eventlog::{HELD, JobEvent, LogSummary, ReadOptions, find_generations, read};
use htcondor_holdreasons::explain;

/// Holds with one code and subcode.
struct HoldTally {
    holds: u64,
    /// The first one.
    first: JobEvent,
}

fn main() -> Result<(), Box<dyn Error>> {
    let logs: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let mut counts = BTreeMap::new();
    for log in find_generations(&logs)? {
        let summary = read(&log, &ReadOptions::default(), |_| {}, &mut |batch| {
            count_holds(batch.events, &mut counts);
            Ok(())
        })?;
        print_damage(&summary)?;
    }

    let mut out = std::io::stdout().lock();
    for ((code, subcode), count) in counts {
        let stated = count.first.facts.hold(HELD).kind;
        let meaning = explain(&stated.into()).meaning;
        writeln!(out, "{:8}  {code}/{subcode}  {meaning}", count.holds)?;
    }
    Ok(())
}

fn count_holds(events: &[JobEvent], counts: &mut BTreeMap<(i32, i32), HoldTally>) {
    for hold in events.iter().filter(|event| event.number == HELD) {
        let count = counts
            .entry((hold.hold_code, hold.hold_subcode))
            .or_insert(HoldTally {
                holds: 0,
                first: *hold,
            });
        count.holds += 1;
    }
}

fn print_damage(log: &LogSummary) -> std::io::Result<()> {
    let mut out = std::io::stderr().lock();
    for (anomaly, count) in log.anomalies.iter().filter(|(kind, _)| kind.is_damage()) {
        writeln!(out, "{count} times {}", anomaly.describe())?;
    }
    Ok(())
}
