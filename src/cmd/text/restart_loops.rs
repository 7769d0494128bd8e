//! The words on jobs that start and are put back into the queue again.

use htcondor_holdreasons::{explain, read_reason};
use poolcast_advice::{RestartLoop, RunEnd};
use poolcast_base::output::{self, LineColour, PageLine};

/// Maximum number of clusters on a page, unless it shows all.
const MAX_CLUSTERS: usize = 5;

/// The attributes that show where the last run of a job was, and why runs ended.
const RUN_ATTRIBUTES: &str = "NumJobStarts LastRemoteHost NumVacatesByReason VacateReason";

/// The settings of the lines on loops.
pub(in crate::cmd) struct LoopLayout<'a> {
    /// Line width in characters.
    pub(in crate::cmd) width: usize,
    /// True if all clusters are shown.
    pub(in crate::cmd) shows_all: bool,
    /// Describes a moment, such as `at 22:14`.
    pub(in crate::cmd) moment_words: &'a dyn Fn(i64) -> String,
}

/// The lines on `loops`: none if there are no loops.
pub(in crate::cmd) fn loop_lines(loops: &[RestartLoop], layout: &LoopLayout<'_>) -> Vec<PageLine> {
    if loops.is_empty() {
        return Vec::new();
    }
    let jobs = |loops: &[RestartLoop]| -> usize { loops.iter().map(|one| one.jobs.len()).sum() };
    let title = format!(
        "STARTED AND PUT BACK AGAIN: {}",
        output::counted(jobs(loops), "job")
    );
    let mut lines = vec![PageLine::of(LineColour::Yellow, title)];
    let shown = if layout.shows_all {
        loops.len()
    } else {
        loops.len().min(MAX_CLUSTERS)
    };
    let has_several_points = loops.iter().any(|one| one.ap != loops[0].ap);
    for one in &loops[..shown] {
        let ap = has_several_points.then(|| one.ap.as_str());
        let words = cluster_words(one, ap, layout);
        lines.extend(folded(
            &format!("  {words}"),
            LineColour::Plain,
            layout.width,
        ));
        for advice in message_words(one).into_iter().chain([cause_words(one)]) {
            let advice = format!("    {advice}");
            lines.extend(folded(&advice, LineColour::Dim, layout.width));
        }
        let command = one.attributes_command(RUN_ATTRIBUTES);
        lines.extend(command.map(|command| PageLine::plain(format!("    {command}"))));
    }
    let hidden = &loops[shown..];
    if !hidden.is_empty() {
        let words = format!(
            "  and {} of {}: --all",
            output::counted(hidden.len(), "more cluster"),
            output::counted(jobs(hidden), "job")
        );
        lines.push(PageLine::of(LineColour::Dim, words));
    }
    lines
}

fn folded(text: &str, colour: LineColour, width: usize) -> Vec<PageLine> {
    let lines = output::wrapped(text, width).into_iter();
    lines.map(|line| PageLine::of(colour, line)).collect()
}

/// Describes the runs of a cluster. `ap` is its access point, if the page has several.
fn cluster_words(one: &RestartLoop, ap: Option<&str>, layout: &LoopLayout<'_>) -> String {
    let (fewest, most) = one.starts;
    let starts = if fewest == most {
        output::counted(most, "start")
    } else {
        format!("{fewest} to {}", output::counted(most, "start"))
    };
    let of_ap = ap.map_or(String::new(), |ap| format!(" of {ap}"));
    let running = match one.running {
        0 => String::new(),
        running => format!(", {} running now", output::with_commas(running as u64)),
    };
    format!(
        "cluster {}{of_ap}: {}, {starts}, {}, {} of runs lost; last {}{running}",
        one.cluster,
        output::counted(one.jobs.len(), "job"),
        ends_words(one),
        output::time_span(one.lost_ms),
        (layout.moment_words)(one.last_ms)
    )
}

/// Describes how the runs were lost.
fn ends_words(one: &RestartLoop) -> String {
    if one.lost_runs.len() == 1 {
        return format!("each {}", end_words(one.last_end));
    }
    let counts: Vec<String> = (one.lost_runs.iter())
        .map(|(end, runs)| format!("{} {}", output::with_commas(*runs as u64), end_words(*end)))
        .collect();
    format!("last {} ({})", end_words(one.last_end), counts.join(", "))
}

fn end_words(end: RunEnd) -> &'static str {
    match end {
        RunEnd::Evicted => "evicted",
        RunEnd::ShadowException => "lost by a shadow exception",
        RunEnd::ConnectionLost => "lost with the connection to the machine",
        RunEnd::RemoteError => "ended by an error of the machine",
    }
}

/// Quotes the message of a lost run.
fn message_words(one: &RestartLoop) -> Option<String> {
    let message = one.message.as_deref()?;
    Some(format!(
        "the last run of {} ended with: {message}",
        one.jobs[0]
    ))
}

/// Says what may be the cause, and what helps, by the length of the runs, the message or the events.
fn cause_words(one: &RestartLoop) -> String {
    if let Some(each_run_ms) = one.each_run_ms {
        return format!(
            "each run ends after {}: a limit of time, or a slot that goes away; only shorter jobs, or checkpoints, end",
            output::time_span(each_run_ms)
        );
    }
    let message = one.message.as_deref();
    if let Some(mend) = message.and_then(|text| explain(&read_reason(text, None)).mend) {
        return mend;
    }
    let words = match one.last_end {
        RunEnd::Evicted => {
            "the pool takes their slots back before they end: shorter jobs, or checkpoints, lose less"
        }
        RunEnd::ShadowException => {
            "the access point or the machine fails while they run: the log of a job has the message"
        }
        RunEnd::ConnectionLost => {
            "their machines do not answer any more: the log of a job names them"
        }
        RunEnd::RemoteError => "their machines report errors: the log of a job has the message",
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use poolcast_advice::JobId;

    fn evicted(cluster: i32, jobs: i32) -> RestartLoop {
        RestartLoop {
            ap: "ap".into(),
            schedd: None,
            cluster,
            jobs: (0..jobs).map(|proc| JobId { cluster, proc }).collect(),
            last_end: RunEnd::Evicted,
            starts: (5, 9),
            lost_runs: [(RunEnd::Evicted, 70)].into(),
            lost_ms: 41 * 3_600_000,
            each_run_ms: None,
            running: 0,
            last_ms: 0,
            message: None,
        }
    }

    fn text(loops: &[RestartLoop], shows_all: bool) -> Vec<String> {
        let layout = LoopLayout {
            width: 120,
            shows_all,
            moment_words: &|_| "at 22:14".to_owned(),
        };
        let lines = loop_lines(loops, &layout);
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn clusters_are_described_with_a_command() {
        let mixed = RestartLoop {
            lost_runs: [(RunEnd::Evicted, 2), (RunEnd::ConnectionLost, 1)].into(),
            each_run_ms: Some(3_600_000),
            starts: (4, 4),
            running: 1,
            ..evicted(392, 1)
        };
        assert_eq!(
            text(&[evicted(391, 12), mixed], false),
            [
                "STARTED AND PUT BACK AGAIN: 13 jobs",
                "  cluster 391: 12 jobs, 5 to 9 starts, each evicted, 1 d 17 h of runs lost; last at 22:14",
                "    the pool takes their slots back before they end: shorter jobs, or checkpoints, lose less",
                "    condor_q 391 -af:j NumJobStarts LastRemoteHost NumVacatesByReason VacateReason",
                "  cluster 392: 1 job, 4 starts, last evicted (2 evicted, 1 lost with the connection to the machine), 1 d 17 h of runs",
                "    lost; last at 22:14, 1 running now",
                "    each run ends after 1 h 0 min: a limit of time, or a slot that goes away; only shorter jobs, or checkpoints, end",
                "    condor_q 392.0 -af:j NumJobStarts LastRemoteHost NumVacatesByReason VacateReason",
            ]
        );
        assert_eq!(text(&[], false), [""; 0]);
    }

    #[test]
    fn the_message_of_a_lost_run_is_quoted_in_place_of_a_guess() {
        let quoted = RestartLoop {
            message: Some("container test failed: image format not recognized".to_owned()),
            ..evicted(391, 1)
        };
        let lines = text(&[quoted], false).join("\n");
        let message =
            "the last run of 391.0 ended with: container test failed: image format not recognized";
        assert!(lines.contains(message), "{lines}");
        assert!(!lines.contains("takes their slots back"), "{lines}");
    }

    #[test]
    fn many_clusters_are_counted() {
        let loops: Vec<RestartLoop> = (1..=8).map(|cluster| evicted(cluster, 2)).collect();
        let short = text(&loops, false);
        assert_eq!(
            short.last().map(String::as_str),
            Some("  and 3 more clusters of 6 jobs: --all")
        );
        assert_eq!(text(&loops, true).len(), 1 + 3 * 8);
    }
}
