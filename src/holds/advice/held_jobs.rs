//! Finds the jobs that are held at prediction time, and checks the selection of jobs to advise on.

use anyhow::{Context as _, Result, ensure};

use super::job_advice::JobAdvice;
use crate::events::{EventStore, LogGap, StoredJob};
use crate::tensors::{ExclusionReason, HoldOutcome, QueriedHold, cutoffs_ms, hold_cycles};
use htcondor_eventlog::{ABORTED, HELD, TERMINATED};
use poolcast_base::error::{HintedError, hinted};
use poolcast_base::output;
use poolcast_config::{LabelKind, WindowPosition};

/// A selection of held jobs to advise on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobSelection {
    /// One job, by cluster and proc.
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
                format!("`{text}` is not a job id"),
                "write `123.0` for a job, or `123` for a cluster",
            )
        })
    }
}

impl JobSelection {
    /// Returns true if the selection includes the job `cluster.proc`.
    pub fn has(self, cluster: i32, proc: i32) -> bool {
        match self {
            JobSelection::Job(of, number) => (cluster, proc) == (of, number),
            JobSelection::Cluster(of) => cluster == of,
        }
    }
}

/// A job that is held at prediction time.
pub(super) struct HeldJob<'a> {
    /// The job, with only the events up to the prediction time.
    pub(super) job: StoredJob<'a>,
    /// The current hold of the job, as a sample for the model.
    pub(super) asked: QueriedHold,
    /// True if the log proves that the job is still held, because no events are missing since the
    /// hold.
    pub(super) is_known: bool,
}

impl HeldJob<'_> {
    /// Returns the code and the subcode of the hold.
    pub(super) fn reason(&self) -> (i32, i32) {
        (
            self.job.history.hold_code[self.asked.cycle.hold],
            self.job.history.hold_subcode[self.asked.cycle.hold],
        )
    }

    /// Counts the job's holds with this code and subcode, this one included.
    pub(super) fn holds_for_this_reason(&self) -> usize {
        let history = self.job.history;
        let from_hold = |at: usize| (history.hold_code[at], history.hold_subcode[at]);
        (0..=self.asked.cycle.hold)
            .filter(|&at| history.number[at] == HELD && from_hold(at) == self.reason())
            .count()
    }
}

/// Finds the jobs of `store` that are held at `at_ms`, or else at the end of their access point's
/// log. Only events up to that time count. Each hold gets the prediction time that samples with
/// `window` have.
pub(super) fn held_jobs(
    store: &EventStore,
    window: WindowPosition,
    at_ms: Option<i64>,
) -> Vec<HeldJob<'_>> {
    let jobs = store.jobs();
    let until_ms = cutoffs_ms(store, &jobs);
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
        // A hold followed by a gap may have ended in the gap, but it counts as held if it is the
        // last event.
        let is_held = match cycle.outcome {
            HoldOutcome::LeftOut(ExclusionReason::StillHeld) => true,
            HoldOutcome::LeftOut(ExclusionReason::AcrossGap) => is_last,
            _ => false,
        };
        if is_held {
            let hold_ms = history.time_ms[cycle.hold];
            let has_gap = |gap: &LogGap| hold_ms < gap.to_ms && gap.from_ms <= asked_ms;
            held.push(HeldJob {
                is_known: !store.gaps(job.ap).iter().any(has_gap),
                job: job.with_first_events(known),
                asked: QueriedHold::new(index, &history, cycle, window, asked_ms),
            });
        }
    }
    held
}

/// Checks that each of `selections` matches a job in `advice`, which covers all held jobs of
/// `store`.
///
/// # Errors
/// Fails for a selection that matches no held job. The message reports what the log says about its
/// jobs.
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

/// Explains why no selected job is held: whether the jobs are in the log, and how they ended.
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
            query_words(at_ms),
            last_state(last)
        ),
    };
    hinted(message, "omit the job ids to get advice on every held job")
}

/// Describes the prediction time in words: `at_ms`, or else the end of the log.
pub fn query_words(at_ms: Option<i64>) -> String {
    match at_ms {
        Some(at_ms) => format!("at {}", output::utc_time(at_ms)),
        None => "when the log ends".to_owned(),
    }
}

/// Describes whether and how a job ended.
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
    fn selections_are_job_ids_or_cluster_ids() {
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
