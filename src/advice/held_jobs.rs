//! Finds the jobs that are held at prediction time, and checks the selection of jobs to advise on.

use std::collections::HashMap;
use std::fmt;

use anyhow::{Context as _, Result};
use serde::Serialize;

use super::job_advice::JobAdvice;
use super::job_command::JobId;
use htcondor_eventlog::{ABORTED, HELD, TERMINATED};
use poolcast_base::error::{HintedError, hinted};
use poolcast_base::output;
use poolcast_config::{LabelKind, WindowPosition};
use poolcast_events::{EventStore, LogGap, StoredJob};
use poolcast_tensors::{ExclusionReason, HoldOutcome, QueriedHold, cutoffs_ms, hold_cycles};

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

impl fmt::Display for JobSelection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            JobSelection::Job(cluster, proc) => write!(f, "job {cluster}.{proc}"),
            JobSelection::Cluster(cluster) => write!(f, "cluster {cluster}"),
        }
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
    /// The job.
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

/// Finds the jobs of `store` that are held at the end of their access point's log, which is the prediction time.
pub(super) fn held_jobs(store: &EventStore) -> Vec<HeldJob<'_>> {
    let jobs = store.jobs();
    let until_ms = cutoffs_ms(store, &jobs);
    let mut held = Vec::new();
    for (index, job) in (0..).zip(jobs.iter()) {
        let asked_ms = until_ms[job.ap as usize];
        let history = job.history;
        let cycles = hold_cycles(history, LabelKind::Next, store.gaps(job.ap));
        let Some(cycle) = cycles.last().copied() else {
            continue;
        };
        let is_last = cycle.hold + 1 == history.number.len();
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
                job,
                asked: QueriedHold::new(index, &history, cycle, WindowPosition::Release, asked_ms),
            });
        }
    }
    held
}

/// The end of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobEnd {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Signalled(i32),
    /// It was removed from the queue.
    Removed,
}

/// A job that a user asked about, and that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EndedJob {
    /// Cluster and proc of the job.
    pub job: JobId,
    /// How it ended.
    pub end: JobEnd,
    /// When it ended, epoch ms.
    pub ended_ms: i64,
    /// Number of its holds.
    pub holds: usize,
}

impl EndedJob {
    /// Returns the end of `job`; `None` if the log does not show that it has ended.
    fn of(job: &StoredJob<'_>) -> Option<EndedJob> {
        let history = job.history;
        let at = (0..history.number.len())
            .rfind(|&at| matches!(history.number[at], TERMINATED | ABORTED))?;
        let end = match (history.number[at], history.normal[at]) {
            (ABORTED, _) => JobEnd::Removed,
            (_, 0) => JobEnd::Signalled(history.value[at]),
            _ => JobEnd::Exited(history.value[at]),
        };
        Some(EndedJob {
            job: JobId {
                cluster: job.cluster,
                proc: job.proc,
            },
            end,
            ended_ms: history.time_ms[at],
            holds: history
                .number
                .iter()
                .filter(|&&number| number == HELD)
                .count(),
        })
    }

    /// Describes the end as a sentence.
    pub fn words(&self) -> String {
        let end = match self.end {
            JobEnd::Exited(0) => "succeeded: it terminated with exit code 0".to_owned(),
            JobEnd::Exited(code) => format!("failed: it terminated with exit code {code}"),
            JobEnd::Signalled(signal) => format!("failed: it was ended by signal {signal}"),
            JobEnd::Removed => "was removed".to_owned(),
        };
        let holds = match self.holds {
            0 => String::new(),
            holds => format!(", after {}", output::counted(holds, "hold")),
        };
        let ended = output::utc_time(self.ended_ms);
        format!("job {} {end} at {ended}{holds}", self.job)
    }
}

/// Finds the ends of `jobs`, each with its access point, in `store`: `None` for a job that has not
/// ended. A job that the log does not have is left out.
pub fn find_ends<'k>(
    store: &EventStore,
    jobs: impl Iterator<Item = &'k (String, JobId)>,
) -> HashMap<&'k (String, JobId), Option<JobEnd>> {
    let aps = &store.summary.aps;
    let by_number = |job: &'k (String, JobId)| {
        let ap = aps.iter().position(|ap| *ap == job.0)?;
        Some(((ap as u32, job.1.cluster, job.1.proc), job))
    };
    let wanted: HashMap<(u32, i32, i32), _> = jobs.filter_map(by_number).collect();
    let stored = store.jobs();
    let end = |job: StoredJob<'_>| {
        let found = *wanted.get(&(job.ap, job.cluster, job.proc))?;
        Some((found, EndedJob::of(&job).map(|ended| ended.end)))
    };
    stored.iter().filter_map(end).collect()
}

/// Checks that each of `selections` matches a job in `advice`, which covers all held jobs of
/// `store`. Returns the jobs of those that match none, as all of them have ended.
///
/// # Errors
/// Fails for a selection that matches no held job, and not only jobs that have ended. The message
/// reports what the log says about its jobs.
pub fn check_selections(
    store: &EventStore,
    advice: &[JobAdvice],
    selections: &[JobSelection],
    at_ms: Option<i64>,
) -> Result<Vec<EndedJob>> {
    let mut ended = Vec::new();
    for selection in selections {
        if advice
            .iter()
            .any(|one| selection.has(one.job.id.cluster, one.job.id.proc))
        {
            continue;
        }
        let jobs = selected_jobs(store, *selection);
        let ends: Option<Vec<EndedJob>> = jobs.iter().map(EndedJob::of).collect();
        // At an earlier time, the job had not ended yet.
        let ends = ends.filter(|ends| !ends.is_empty() && at_ms.is_none());
        ended.extend(ends.ok_or_else(|| why_not_held(&jobs, *selection, at_ms))?);
    }
    Ok(ended)
}

fn selected_jobs(store: &EventStore, selection: JobSelection) -> Vec<StoredJob<'_>> {
    let jobs = store.jobs();
    jobs.iter()
        .filter(|job| selection.has(job.cluster, job.proc))
        .collect()
}

/// Explains why no selected job is held: whether the jobs are in the log, and how they ended.
fn why_not_held(
    jobs: &[StoredJob<'_>],
    selection: JobSelection,
    at_ms: Option<i64>,
) -> HintedError {
    let message = match (selection, jobs.last()) {
        (_, None) => format!("{selection} is not in the log"),
        (JobSelection::Cluster(_), Some(_)) => format!(
            "{selection} has {}, and none is held",
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
