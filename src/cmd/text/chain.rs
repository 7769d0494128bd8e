//! The notes on a job chain and the table of its links, for people.

use super::submission::no_advice_words;
use poolcast_base::output;
use poolcast_provision::trace::TraceZone;
use poolcast_slurm::chain::{ChainLink, ChainNote, LinkEvent};
use poolcast_slurm::live::{NoAdviceReason, SubmissionAdvice};

/// Describes an event of the chain in one line.
pub(in crate::cmd) fn note(note: &ChainNote<'_>) -> String {
    match note {
        ChainNote::Away(said) => format!("Slurm does not answer, and is queried again: {said}"),
        ChainNote::Back => "Slurm answers again".to_owned(),
        ChainNote::Submitted(link, advice) => {
            format!("{} is submitted{}", named(link), expected(*advice))
        }
        ChainNote::Refused(number, said) => {
            format!("Slurm rejects link {number}, which is submitted again: {said}")
        }
        ChainNote::Unclear(number, said) => {
            format!("it is not yet known whether link {number} was submitted: {said}")
        }
        ChainNote::NotReleased(link, said) => format!("{} is still held: {said}", named(link)),
        ChainNote::RefusedBehind(number, said) => format!(
            "Slurm rejects link {number}, which is submitted once the link before it has ended: {said}"
        ),
        ChainNote::NoAdvice(link, reason @ NoAdviceReason::UnheardNodes(_)) => format!(
            "the successor of {} has no advice yet: {}",
            named(link),
            no_advice_words(reason)
        ),
        ChainNote::NoAdvice(link, reason) => format!(
            "no advice on the successor of {} which is submitted after its end: {}",
            named(link),
            no_advice_words(reason)
        ),
        ChainNote::WithoutForecast(reason) => format!(
            "no forecast: {}; each link is submitted with a dependency on the end of the one before",
            no_advice_words(reason)
        ),
        ChainNote::EarlyStart(link) => format!(
            "{}; each link is submitted with a dependency on the end of the one before",
            early_start(link)
        ),
        ChainNote::Needless(link) => format!(
            "{} is cancelled, because the work was done before it",
            named(link)
        ),
        ChainNote::NotCancelled(link, said) => format!(
            "{} is no longer needed, but could not be cancelled, which is tried again: {said}",
            named(link)
        ),
        ChainNote::Absent(link) => format!(
            "{} is missing in a listing of `squeue`; it counts as alive until `sacct` reports its end, or several listings lack it",
            named(link)
        ),
        ChainNote::Found(link) => format!("{} was already submitted", named(link)),
        ChainNote::StrayCancelled(id) => {
            format!("cancelled job {id}, a held duplicate submission")
        }
        ChainNote::Link(link, event, gap_s) => event_line(link, event, *gap_s),
    }
}

/// Describes a link that started far earlier than forecast.
pub(in crate::cmd) fn early_start(link: &ChainLink) -> String {
    let span = |s: i64| output::time_span(s * 1000);
    let wait_s = link.start_s.map_or(0, |start_s| start_s - link.submit_s);
    format!(
        "{} has started after {}, but 90 % of the draws were longer than {}: the forecast has a wrong picture of this cluster",
        named(link),
        span(wait_s.max(0)),
        span(link.expected_wait_s.unwrap_or(0))
    )
}

fn named(link: &ChainLink) -> String {
    match link.job {
        Some(job) => format!("link {}, job {job},", link.number),
        None => format!("link {}", link.number),
    }
}

fn expected(advice: Option<&SubmissionAdvice>) -> String {
    let Some(expected) = advice.and_then(|advice| advice.expected.as_ref()) else {
        return String::new();
    };
    let span = |s: i64| output::time_span(s * 1000);
    format!(
        "; it is expected to wait {}, and longer than {} in 10 % of draws",
        span(expected.wait_p50_s),
        span(expected.wait_p90_s)
    )
}

fn event_line(link: &ChainLink, event: &LinkEvent, gap_s: Option<i64>) -> String {
    let what = match event {
        LinkEvent::Started => "has started".to_owned(),
        LinkEvent::Requeued => "waits again".to_owned(),
        LinkEvent::Ended => link
            .outcome
            .map_or("has ended", |outcome| outcome.describe())
            .to_owned(),
        LinkEvent::Forgotten => match link.outcome {
            Some(outcome) => format!("{} (`sacct`)", outcome.describe()),
            None => "was missing in several listings: it is assumed to have ended".to_owned(),
        },
    };
    let gap = gap_s.map_or(String::new(), |gap_s| format!(": {}", gap_words(gap_s)));
    format!("{} {what}{gap}", named(link))
}

fn gap_words(gap_s: i64) -> String {
    let span = output::time_span(gap_s.abs() * 1000);
    if gap_s >= 0 {
        format!("{span} without a job")
    } else {
        format!("{span} with two jobs")
    }
}

/// A time in the zone of the cluster, to the second.
fn wall_second(moment_s: i64, zone: &TraceZone) -> String {
    let wall = jiff::Timestamp::from_second(zone.wall_s(moment_s)).unwrap_or_default();
    wall.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// A table of the links. `gaps_s` has the time from the end of the previous link to the start of
/// each, in seconds.
pub(in crate::cmd) fn links(
    links: &[ChainLink],
    gaps_s: &[Option<i64>],
    zone: &TraceZone,
) -> String {
    let head = [
        "link",
        "job",
        "submitted",
        "started",
        "ended",
        "without a job",
        "with two",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for (link, gap_s) in links.iter().zip(gaps_s) {
        let moment = |moment_s: Option<i64>| match moment_s {
            Some(moment_s) => wall_second(moment_s, zone),
            None => "-".to_owned(),
        };
        let span = |s: Option<i64>| match s {
            Some(s) => output::time_span(s * 1000),
            None => "-".to_owned(),
        };
        rows.push(vec![
            link.number.to_string(),
            link.job.map_or("-".to_owned(), |job| job.to_string()),
            moment(Some(link.submit_s)),
            moment(link.start_s),
            moment(link.end_s),
            span(gap_s.map(|gap_s| gap_s.max(0))),
            span(gap_s.map(|gap_s| (-gap_s).max(0))),
        ]);
    }
    output::aligned_table(&rows)
}
