//! Finds jobs that start and are put back into the queue again and again: they are neither held nor
//! ended, and each of their runs was lost.

use std::collections::BTreeMap;

use serde::Serialize;

use super::command_names::program_at;
use super::job_command::JobId;
use htcondor_eventlog::{
    ABORTED, DISCONNECTED, EVICTED, EXECUTE, HELD, RECONNECT_FAILED, RECONNECTED, RELEASED,
    REMOTE_ERROR, SHADOW_EXCEPTION, SUBMIT, TERMINATED,
};
use poolcast_base::shared_text::SharedText;
use poolcast_events::{EventStore, JobHistory, LogGap};

/// Lost runs after which a job is listed.
const MIN_LOST_RUNS: usize = 3;

/// Maximum difference between runs of the same length, as a part of the longest.
const SAME_LENGTH_DIVISOR: i64 = 20;

/// Runs shorter than this end for another reason than their length, ms.
const MIN_LIMIT_MS: i64 = 600_000;

/// The way in which a run was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunEnd {
    /// The job was evicted (004).
    Evicted,
    /// The process that watches the job on the access point failed (007).
    ShadowException,
    /// The connection to the machine was lost (022 or 024).
    ConnectionLost,
    /// The machine reported an error (021).
    RemoteError,
}

/// Jobs of a cluster that start and are put back again, and whose last runs were lost in the same way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestartLoop {
    /// Their access point.
    pub ap: SharedText,
    /// The access point that commands must name; `None` if HTCondor's programs ask it anyway, or if
    /// its name is unknown.
    #[serde(skip)]
    pub schedd: Option<SharedText>,
    /// Their cluster.
    pub cluster: i32,
    /// The jobs, by id.
    pub jobs: Vec<JobId>,
    /// Way in which the last run of each was lost.
    pub last_end: RunEnd,
    /// Lowest and highest number of starts of a job since its submission or its last release.
    pub starts: (usize, usize),
    /// Lost runs of all jobs, by the way in which they were lost.
    pub lost_runs: BTreeMap<RunEnd, usize>,
    /// Time of all lost runs, ms.
    pub lost_ms: i64,
    /// Time after which each run was lost, ms; `None` if the runs differ, or are shorter than 10
    /// minutes.
    pub each_run_ms: Option<i64>,
    /// Jobs that run now.
    pub running: usize,
    /// Time of the last loss of a run, epoch ms.
    pub last_ms: i64,
    /// Message with which the last run of the first of the jobs was lost; absent if none is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A run that was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LostRun {
    end: RunEnd,
    run_ms: i64,
    ended_ms: i64,
}

/// The runs of a job since its submission or its last release; all were lost.
#[derive(Debug, PartialEq, Eq)]
struct LostRuns {
    runs: Vec<LostRun>,
    /// True if the job runs now.
    is_running: bool,
}

/// Finds the jobs of `store` that are in such a loop at `asked_ms`, or at the end of the log if that
/// is earlier, by cluster: those with the most jobs first. Leaves out jobs for which `may_be_in_loop`
/// returns false, because the queue knows better.
pub fn restart_loops(
    store: &EventStore,
    asked_ms: i64,
    may_be_in_loop: impl Fn(JobId) -> bool,
) -> Vec<RestartLoop> {
    let jobs = store.jobs();
    let mut loops: BTreeMap<(u32, i32, RunEnd), RestartLoop> = BTreeMap::new();
    for index in 0..jobs.len() {
        let starts = jobs
            .numbers(index)
            .iter()
            .filter(|&&number| number == EXECUTE);
        if starts.count() < MIN_LOST_RUNS {
            continue;
        }
        let job = jobs.get(index);
        let known = (job.history.time_ms).partition_point(|&time_ms| time_ms <= asked_ms);
        let history = job.history.slice(0..known);
        // The job may have ended in a gap of the log.
        let last_ms = history.time_ms.last().copied().unwrap_or(i64::MAX);
        let is_gap = |gap: &LogGap| last_ms < gap.to_ms && gap.from_ms <= asked_ms;
        if store.gaps(job.ap).iter().any(is_gap) {
            continue;
        }
        let id = JobId {
            cluster: job.cluster,
            proc: job.proc,
        };
        let Some(lost) = LostRuns::of(&history).filter(|_| may_be_in_loop(id)) else {
            continue;
        };
        let last = lost.runs[lost.runs.len() - 1];
        let key = (job.ap, job.cluster, last.end);
        let found = loops.entry(key).or_insert_with(|| RestartLoop {
            ap: store.summary.aps[job.ap as usize].as_str().into(),
            schedd: None,
            cluster: job.cluster,
            jobs: Vec::new(),
            last_end: last.end,
            starts: (usize::MAX, 0),
            lost_runs: BTreeMap::new(),
            lost_ms: 0,
            each_run_ms: Some(lost.runs[0].run_ms),
            running: 0,
            last_ms: i64::MIN,
            message: None,
        });
        found.add(id, &lost);
    }
    let mut loops: Vec<RestartLoop> = loops.into_values().collect();
    loops.sort_by_key(|one| std::cmp::Reverse(one.jobs.len()));
    loops
}

impl RestartLoop {
    /// Returns the command that prints `attributes` of the jobs; `None` if the access point has no
    /// plain name.
    pub fn attributes_command(&self, attributes: &str) -> Option<String> {
        let program = program_at("condor_q", self.schedd.as_deref())?;
        let jobs = match self.jobs[..] {
            [only] => only.to_string(),
            _ => self.cluster.to_string(),
        };
        Some(format!("{program} {jobs} -af:j {attributes}"))
    }

    fn add(&mut self, job: JobId, lost: &LostRuns) {
        let starts = lost.runs.len() + usize::from(lost.is_running);
        self.starts = (self.starts.0.min(starts), self.starts.1.max(starts));
        self.running += usize::from(lost.is_running);
        for run in &lost.runs {
            *self.lost_runs.entry(run.end).or_default() += 1;
            self.lost_ms = self.lost_ms.saturating_add(run.run_ms);
            self.last_ms = self.last_ms.max(run.ended_ms);
            let same_ms = self
                .each_run_ms
                .filter(|&ms| is_same_length(ms, run.run_ms));
            self.each_run_ms = same_ms.map(|ms| ms.max(run.run_ms));
        }
        // A log may have several jobs of one number.
        if self.jobs.last() != Some(&job) {
            self.jobs.push(job);
        }
    }
}

fn is_same_length(a_ms: i64, b_ms: i64) -> bool {
    let (short_ms, long_ms) = (a_ms.min(b_ms), a_ms.max(b_ms));
    short_ms >= MIN_LIMIT_MS && long_ms - short_ms <= long_ms / SAME_LENGTH_DIVISOR
}

impl LostRuns {
    /// Returns the runs in `history`; `None` if the job is held or has ended, or if too few runs were
    /// lost, or one in an unknown way.
    fn of(history: &JobHistory<'_>) -> Option<LostRuns> {
        let is_begin = |number: &u16| matches!(*number, SUBMIT | RELEASED);
        let begin = history.number.iter().rposition(is_begin).unwrap_or(0);
        let mut runs = Vec::new();
        let mut open: Option<(i64, Option<LostRun>)> = None;
        for at in begin..history.number.len() {
            let time_ms = history.time_ms[at];
            let end = match history.number[at] {
                HELD | TERMINATED | ABORTED => return None,
                EXECUTE => {
                    if let Some((_, lost)) = open.take() {
                        runs.push(lost?);
                    }
                    open = Some((time_ms, None));
                    continue;
                }
                RECONNECTED => {
                    open = open.map(|(started_ms, _)| (started_ms, None));
                    continue;
                }
                EVICTED => RunEnd::Evicted,
                SHADOW_EXCEPTION => RunEnd::ShadowException,
                DISCONNECTED | RECONNECT_FAILED => RunEnd::ConnectionLost,
                REMOTE_ERROR => RunEnd::RemoteError,
                _ => continue,
            };
            open = open.map(|(started_ms, _)| {
                let run_ms = time_ms.saturating_sub(started_ms).max(0);
                let ended_ms = time_ms;
                (
                    started_ms,
                    Some(LostRun {
                        end,
                        run_ms,
                        ended_ms,
                    }),
                )
            });
        }
        let (_, last) = open?;
        let is_running = last.is_none();
        runs.extend(last);
        (runs.len() >= MIN_LOST_RUNS).then_some(LostRuns { runs, is_running })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::JobEvent;
    use test_stores::store_of;

    const HOUR_S: i64 = 3600;

    /// Returns the loops in a log of one cluster: the events of each job, as seconds and number.
    fn loops(jobs: &[&[(i64, u16)]]) -> Vec<RestartLoop> {
        let events = (0..).zip(jobs).flat_map(|(proc, events)| {
            events.iter().map(move |&(s, number)| JobEvent {
                cluster: 7,
                proc,
                number,
                time_ms: 1000 * s,
                ..JobEvent::default()
            })
        });
        let events: Vec<JobEvent> = events.collect();
        restart_loops(&store_of(&events), i64::MAX, |_| true)
    }

    /// Returns a submission and `count` runs of an hour that end with `number`.
    fn lost_runs(count: i64, number: u16) -> Vec<(i64, u16)> {
        let run = |at: i64| [(2 * at * HOUR_S, EXECUTE), ((2 * at + 1) * HOUR_S, number)];
        let runs = (1..=count).flat_map(run);
        std::iter::once((0, SUBMIT)).chain(runs).collect()
    }

    #[test]
    fn jobs_of_a_cluster_are_one_finding() {
        let (three, five) = (lost_runs(3, EVICTED), lost_runs(5, EVICTED));
        let found = loops(&[&three, &five]);
        let [one] = &found[..] else {
            panic!("one loop: {found:?}")
        };
        assert_eq!((one.jobs.len(), one.starts), (2, (3, 5)));
        assert_eq!(one.lost_runs, [(RunEnd::Evicted, 8)].into());
        assert_eq!(
            (one.lost_ms, one.each_run_ms),
            (8 * 3_600_000, Some(3_600_000))
        );
        assert_eq!((one.last_ms, one.running), (11 * 3_600_000, 0));
    }

    #[test]
    fn the_last_run_names_the_loop() {
        let mut job = lost_runs(3, EVICTED);
        job.extend([(10 * HOUR_S, EXECUTE), (10 * HOUR_S + 60, DISCONNECTED)]);
        job.extend([(10 * HOUR_S + 90, RECONNECT_FAILED), (11 * HOUR_S, EXECUTE)]);
        let found = loops(&[&job]);
        assert_eq!(found[0].last_end, RunEnd::ConnectionLost);
        assert_eq!((found[0].starts, found[0].running), ((5, 5), 1));
        assert_eq!(found[0].each_run_ms, None, "the runs differ");
    }

    #[test]
    fn jobs_that_are_held_end_or_get_on_are_in_no_loop() {
        let lost = |count| lost_runs(count, EVICTED);
        assert_eq!(loops(&[&lost(2)]), []);
        for last in [HELD, TERMINATED, ABORTED, RELEASED] {
            let mut job = lost(3);
            job.push((90 * HOUR_S, last));
            assert_eq!(loops(&[&job]), [], "{last}");
        }
        // A connection that came back loses no run, and neither does a start after an unknown end.
        for last in [RECONNECTED, 6] {
            let mut job = lost(2);
            job.extend([(10 * HOUR_S, EXECUTE), (11 * HOUR_S, DISCONNECTED)]);
            job.push((12 * HOUR_S, last));
            assert_eq!(loops(&[&job]).len(), usize::from(last == 6), "{last}");
        }
        let mut job = lost(3);
        job.splice(4..4, [(3 * HOUR_S + 1, EXECUTE)]);
        assert_eq!(loops(&[&job]), []);
    }
}
