//! Renders the summary of an event store for people.

use htcondor_eventlog::{Anomaly, event_name};
use htcondor_holdreasons::explain;
use poolcast_base::escape;
use poolcast_base::output;
use poolcast_events::{EventStore, StoreSummary};
use poolcast_holds::decision;
use poolcast_tensors::hold_counts;

/// Maximum number of places shown per kind of damage.
const MAX_SHOWN_PLACES: usize = 3;

/// The counts of records and anomalies, the mixed logs, and the gaps.
pub(in crate::cmd) fn summary(summary: &StoreSummary) -> String {
    let mut text = event_head(summary);
    if let Some(words) = summary.source().words() {
        text.push_str(&format!("  {words}\n"));
    }
    text.push_str(&events_by_number(summary));

    for (anomaly, count) in &summary.anomalies {
        text.push_str(&format!(
            "  {} x {}\n",
            output::with_commas(*count),
            anomaly.describe()
        ));
        text.push_str(&anomaly_places(summary, *anomaly));
    }
    if summary.doubles > 0 {
        text.push_str(&format!(
            "  {} x duplicate event, kept once\n",
            output::with_commas(summary.doubles)
        ));
    }

    text.push_str(&mixed_host_lines(summary));
    text.push_str(&gap_lines(summary));
    text
}

/// The logs, their access points and their time range.
fn event_head(summary: &StoreSummary) -> String {
    let names: Vec<&str> = summary
        .sources
        .iter()
        .map(|source| source.name.as_str())
        .collect();
    format!(
        "{}: {} of {} at {}, {} to {}\n",
        escape::value(&names.join(", ")),
        output::counted(summary.record_count() as usize, "record"),
        output::counted(summary.jobs, "job"),
        escape::value(&summary.aps.join(", ")),
        output::utc_time(summary.begin_ms),
        output::utc_time(summary.end_ms),
    )
}

fn events_by_number(summary: &StoreSummary) -> String {
    let mut rows = Vec::new();
    for (number, count) in &summary.events_by_number {
        rows.push(vec![
            format!("  {number:03} {}", event_name(*number)),
            output::with_commas(*count),
        ]);
    }
    output::aligned_table(&rows)
}

/// The places of the first few anomalies of one kind.
fn anomaly_places(summary: &StoreSummary, anomaly: Anomaly) -> String {
    let mut text = String::new();
    let mut left = MAX_SHOWN_PLACES;
    for source in &summary.sources {
        let places = source.places.iter();
        for place in places.filter(|place| place.anomaly == anomaly).take(left) {
            left -= 1;
            text.push_str(&format!(
                "      {}: line {} (byte {})\n",
                escape::value(&source.name),
                place.line,
                place.offset
            ));
        }
    }
    text
}

/// The logs with jobs of several hosts, which cannot be distinguished.
fn mixed_host_lines(summary: &StoreSummary) -> String {
    let mut text = String::new();
    for source in &summary.sources {
        if source.hosts.is_empty() {
            continue;
        }
        let hosts: Vec<&str> = source.hosts.iter().map(String::as_str).collect();
        text.push_str(&format!(
            "  {}: jobs of several hosts, treated as one access point; equal ids are one job: {}\n",
            escape::value(&source.name),
            escape::value(&hosts.join(", "))
        ));
    }
    text
}

fn gap_lines(summary: &StoreSummary) -> String {
    let mut text = String::new();
    for gap in &summary.gaps {
        let ap = &summary.aps[gap.ap as usize];
        text.push_str(&format!(
            "  a gap at {}: {} to {}\n",
            escape::value(ap),
            output::utc_time(gap.from_ms),
            output::utc_time(gap.to_ms)
        ));
    }
    text
}

/// A table of the holds by code, and what most reasons of each code state.
pub(in crate::cmd) fn holds_by_code(store: &EventStore) -> String {
    let head = [
        "  holds by code",
        "holds",
        "jobs",
        "released",
        "then succeeded",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut statements = String::new();
    for kind in hold_counts(store) {
        let code = kind.hold_code;
        let subcode = kind.hold_subcode;
        rows.push(vec![
            format!(
                "  {code}/{subcode} {}",
                decision::code_meaning(code, subcode)
            ),
            output::with_commas(kind.holds as u64),
            output::with_commas(kind.jobs as u64),
            percent(kind.released, kind.holds),
            percent(kind.succeeded, kind.known),
        ]);
        if let Some(stated) = kind.stated {
            let meaning = explain(&stated.into()).meaning;
            statements += &format!("  {code}/{subcode}: {meaning}\n");
        }
    }

    let title = if statements.is_empty() {
        ""
    } else {
        "  what most of their reasons state\n"
    };
    output::aligned_table(&rows) + title + &statements
}

fn percent(part: usize, whole: usize) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    format!("{:.0} %", 100.0 * part as f64 / whole as f64)
}
