//! The jobs that are held at the moment of asking, and which of them advice is wanted on.

use anyhow::{Context as _, Result, ensure};

use super::job_advice::JobAdvice;
use poolcast_config::{LabelKind, WindowPlace};
use poolcast_base::error::{HintedError, hinted};
use htcondor_eventlog::{ABORTED, HELD, TERMINATED};
use crate::events::{EventStore, LogGap, StoredJob};
use poolcast_base::output;
use crate::tensors::{AskedHold, HoldOutcome, LeftOutReason, hold_cycles, known_until_ms};

/// Which held jobs to advise on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobSelection {
    /// One job.
    Job(i32, i32),
    /// The held jobs of a cluster.
    Cluster(i32),
}

impl std::str::FromStr for JobSelection {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<JobSelection> {
        let number = |part: &str| part.parse::<i32>().ok().filter(|n| *n >= 0);
        let parsed = match text.split_once('.') {
            Some((cluster, proc)) => number(cluster)
                .zip(number(proc))
                .map(|(c, p)| JobSelection::Job(c, p)),
            None => number(text).map(JobSelection::Cluster),
        };
        parsed.with_context(|| {
            hinted(
                format!("`{text}` is no job id"),
                "write `123.0` for a job, or `123` for a cluster",
            )
        })
    }
}

impl JobSelection {
    /// Whether the job `cluster.proc` is one of these.
    pub fn has(self, cluster: i32, proc: i32) -> bool {
        match self {
            JobSelection::Job(of, number) => (cluster, proc) == (of, number),
            JobSelection::Cluster(of) => cluster == of,
        }
    }
}

/// A job that is held at the moment of asking.
pub(super) struct HeldJob<'a> {
    /// With the events that are known then.
    pub(super) job: StoredJob<'a>,
    /// The hold it is in.
    pub(super) asked: AskedHold,
    /// Whether the log tells that it is still held: no events are missing since.
    pub(super) is_known: bool,
}

impl HeldJob<'_> {
    /// The code and the subcode of its hold.
    pub(super) fn reason(&self) -> (i32, i32) {
        (
            self.job.history.hold_code[self.asked.cycle.hold],
            self.job.history.hold_subcode[self.asked.cycle.hold],
        )
    }

    /// How often it was held with this code and subcode, this hold included.
    pub(super) fn holds_for_this_reason(&self) -> usize {
        let history = self.job.history;
        let of_hold = |at: usize| (history.hold_code[at], history.hold_subcode[at]);
        (0..=self.asked.cycle.hold)
            .filter(|&at| history.number[at] == HELD && of_hold(at) == self.reason())
            .count()
    }
}

/// The jobs of `store` that are held at `at_ms`, or when the log of their access point ends, by
/// what is known then, and asked about as the samples with `window` are.
pub(super) fn held_jobs(
    store: &EventStore,
    window: WindowPlace,
    at_ms: Option<i64>,
) -> Vec<HeldJob<'_>> {
    let jobs = store.jobs();
    let until_ms = known_until_ms(store, &jobs);
    let mut held = Vec::new();
    for (index, job) in (0..).zip(jobs.iter()) {
        let until_ms = until_ms[job.ap as usize];
        let asked_ms = at_ms.map_or(until_ms, |at_ms| at_ms.min(until_ms));
        let known = (job.history.time_ms).partition_point(|&time_ms| time_ms <= asked_ms);
        let history = job.history.slice(0..known);

        let cycles = hold_cycles(history, LabelKind::Next, store.gaps(job.ap));
        let Some(cycle) = cycles.last().copied() else {
            continue;
        };
        let is_last = cycle.hold + 1 == known;
        let is_held = match cycle.outcome {
            HoldOutcome::LeftOut(LeftOutReason::StillHeld) => true,
            HoldOutcome::LeftOut(LeftOutReason::AcrossGap) => is_last,
            _ => false,
        };
        if is_held {
            let hold_ms = history.time_ms[cycle.hold];
            let has_gap = |gap: &LogGap| hold_ms < gap.to_ms && gap.from_ms <= asked_ms;
            held.push(HeldJob {
                is_known: !store.gaps(job.ap).iter().any(has_gap),
                job: job.with_first_events(known),
                asked: AskedHold::new(index, &history, cycle, window, asked_ms),
            });
        }
    }
    held
}

/// Checks that each of `selections` names a job of `advice`, which is all there is on `store`.
///
/// # Errors
/// Fails for one that does not, and says what is known of it.
pub fn check_selections(
    store: &EventStore,
    advice: &[JobAdvice],
    selections: &[JobSelection],
    at_ms: Option<i64>,
) -> Result<()> {
    for selection in selections {
        ensure!(
            advice
                .iter()
                .any(|one| selection.has(one.cluster, one.proc)),
            why_not_held(store, *selection, at_ms)
        );
    }
    Ok(())
}

/// What is known of jobs that are not held: whether they are in the log, and how they ended.
fn why_not_held(store: &EventStore, selection: JobSelection, at_ms: Option<i64>) -> HintedError {
    let jobs: Vec<StoredJob<'_>> = store
        .jobs()
        .iter()
        .filter(|job| selection.has(job.cluster, job.proc))
        .collect();

    let message = match (selection, jobs.last()) {
        (JobSelection::Job(cluster, proc), None) => {
            format!("job {cluster}.{proc} is not in the log")
        }
        (JobSelection::Cluster(cluster), None) => format!("cluster {cluster} is not in the log"),
        (JobSelection::Cluster(cluster), Some(_)) => format!(
            "cluster {cluster} has {}, and none is held",
            output::counted(jobs.len(), "job")
        ),
        (JobSelection::Job(..), Some(last)) => format!(
            "job {} is not held {}: {}",
            last.id(),
            asking_words(at_ms),
            last_state(last)
        ),
    };
    hinted(
        message,
        "leave out the job ids to get advice on every held job",
    )
}

/// The moment of asking in words: the end of the log, unless another was named.
pub fn asking_words(at_ms: Option<i64>) -> String {
    match at_ms {
        Some(at_ms) => format!("at {}", output::utc_time(at_ms)),
        None => "when the log ends".to_owned(),
    }
}

/// Whether and how a job ended.
fn last_state(job: &StoredJob<'_>) -> String {
    let history = job.history;
    let end =
        (0..history.number.len()).rfind(|&at| matches!(history.number[at], TERMINATED | ABORTED));
    match end {
        Some(at) if history.number[at] == ABORTED => {
            format!(
                "it was removed at {}",
                output::utc_time(history.time_ms[at])
            )
        }
        Some(at) => format!("it terminated at {}", output::utc_time(history.time_ms[at])),
        None => "it is queued or running".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_jobs_or_clusters() {
        assert_eq!(
            "12.3".parse::<JobSelection>().expect("a job"),
            JobSelection::Job(12, 3)
        );
        assert_eq!(
            "12".parse::<JobSelection>().expect("a cluster"),
            JobSelection::Cluster(12)
        );
        for text in [
            "",
            "12.",
            ".3",
            "12.3.4",
            "-1",
            "twelve",
            "1.-1",
            "99999999999",
        ] {
            assert!(text.parse::<JobSelection>().is_err(), "{text}");
        }
    }
}
