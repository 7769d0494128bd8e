//! Counts of a cluster's jobs by state, at any time.

use std::ops::Range;

use super::cluster_parts::{JOBS_PER_BLOCK, cuts_between_clusters};
use htcondor_eventlog::{ABORTED, EXECUTE, HELD, RELEASED, SUBMIT, TERMINATED};
use poolcast_base::parallel::map_items;
use poolcast_events::{EventStore, JobHistory, StoredJob, StoredJobs};

/// Events after which a job is idle again. Numbers 4, 7 and 24 are evicted, shadow exception and
/// reconnect failed.
const EVENTS_TO_IDLE: [u16; 5] = [SUBMIT, RELEASED, 4, 7, 24];

/// State changes between two stored cluster states.
const CHANGES_PER_STATE: usize = 32;

/// Number of a cluster's jobs in each state. The states are HTCondor's `JobStatus`, 1 to 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the words are HTCondor's")]
pub struct ClusterState {
    pub idle: u32,
    pub running: u32,
    pub held: u32,
    /// Terminated jobs.
    pub done: u32,
    pub removed: u32,
}

impl ClusterState {
    /// The number of jobs in any state.
    pub fn jobs(self) -> u32 {
        self.idle + self.running + self.held + self.done + self.removed
    }

    fn count_mut(&mut self, state: JobState) -> Option<&mut u32> {
        match state {
            JobState::Unknown => None,
            JobState::Idle => Some(&mut self.idle),
            JobState::Running => Some(&mut self.running),
            JobState::Held => Some(&mut self.held),
            JobState::Done => Some(&mut self.done),
            JobState::Removed => Some(&mut self.removed),
        }
    }

    /// Counts a change. Changes of one time may come in any order, so a count may temporarily wrap
    /// below 0.
    fn change(&mut self, change: StateChange) {
        if let Some(count) = self.count_mut(change.from()) {
            *count = count.wrapping_sub(1);
        }
        if let Some(count) = self.count_mut(change.to()) {
            *count = count.wrapping_add(1);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobState {
    /// Before its first event.
    Unknown,
    Idle,
    Running,
    Held,
    Done,
    Removed,
}

impl JobState {
    /// Returns the state after event `number`.
    fn after(self, number: u16) -> JobState {
        match number {
            EXECUTE => JobState::Running,
            HELD => JobState::Held,
            TERMINATED => JobState::Done,
            ABORTED => JobState::Removed,
            _ if EVENTS_TO_IDLE.contains(&number) || self == JobState::Unknown => JobState::Idle,
            _ => self,
        }
    }
}

impl JobState {
    const ALL: [JobState; 6] = [
        JobState::Unknown,
        JobState::Idle,
        JobState::Running,
        JobState::Held,
        JobState::Done,
        JobState::Removed,
    ];
}

/// The time of a state change, with the states before and after it. It is packed into one number
/// that sorts by time, because there are millions of changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct StateChange(i64);

impl StateChange {
    fn new(time_ms: i64, from: JobState, to: JobState) -> StateChange {
        StateChange(time_ms << 6 | (from as i64) << 3 | to as i64)
    }

    fn time_ms(self) -> i64 {
        self.0 >> 6
    }

    fn from(self) -> JobState {
        JobState::ALL[(self.0 >> 3 & 7) as usize]
    }

    fn to(self) -> JobState {
        JobState::ALL[(self.0 & 7) as usize]
    }
}

/// The states of the jobs of all clusters that have a hold. The other clusters are many, and no
/// prediction needs them.
#[derive(Debug)]
pub(crate) struct ClusterStates {
    /// Blocks of neighboring clusters, sorted by access point and cluster id.
    parts: Vec<ClusterPart>,
}

/// The state changes of some clusters: one cluster after another, each sorted by time.
#[derive(Debug, Default)]
struct ClusterPart {
    clusters: Vec<(u32, i32)>,
    /// The index of the first change of each cluster, and the end of the last cluster.
    bounds: Vec<usize>,
    changes: Vec<StateChange>,
    /// The state of the cluster before every [`CHANGES_PER_STATE`]th change.
    states: Vec<ClusterState>,
}

impl ClusterStates {
    pub(crate) fn new(store: &EventStore) -> ClusterStates {
        let jobs = store.jobs();
        let cuts = cuts_between_clusters(&jobs, JOBS_PER_BLOCK);
        let blocks: Vec<&[usize]> = cuts.windows(2).collect();
        let parts = map_items(&blocks, |cut| ClusterPart::from_jobs(&jobs, cut[0]..cut[1]));
        ClusterStates {
            parts: (parts.into_iter())
                .filter(|part| !part.clusters.is_empty())
                .collect(),
        }
    }

    /// Returns the states of the jobs in the cluster of `job` at `asked_ms`.
    pub(crate) fn at_prediction_time(&self, job: &StoredJob<'_>, asked_ms: i64) -> ClusterState {
        let cluster = (job.ap, job.cluster);
        // A cluster belongs to the last block that does not begin after it.
        let after = (self.parts).partition_point(|part| part.clusters[0] <= cluster);
        let part = after.checked_sub(1).map(|at| &self.parts[at]);
        part.map_or(ClusterState::default(), |part| {
            part.at_prediction_time(cluster, asked_ms)
        })
    }
}

impl ClusterPart {
    fn from_jobs(jobs: &StoredJobs<'_>, range: Range<usize>) -> ClusterPart {
        let mut part = ClusterPart {
            bounds: vec![0],
            ..ClusterPart::default()
        };
        let mut first = range.start;
        while first < range.end {
            let cluster = jobs.cluster(first);
            let rest = first..range.end;
            let end = (rest.clone().find(|&at| jobs.cluster(at) != cluster)).unwrap_or(rest.end);
            if (first..end).any(|at| jobs.was_held(at)) {
                part.add_cluster(cluster, jobs, first..end);
            }
            first = end;
        }
        part.changes.shrink_to_fit();
        part
    }

    fn add_cluster(&mut self, cluster: (u32, i32), jobs: &StoredJobs<'_>, range: Range<usize>) {
        let begin = self.changes.len();
        for index in range {
            self.add_job(jobs.history(index));
        }

        self.changes[begin..].sort_unstable();
        let mut state = ClusterState::default();
        for (at, change) in self.changes.iter().enumerate().skip(begin) {
            if at % CHANGES_PER_STATE == 0 {
                self.states.push(state);
            }
            state.change(*change);
        }
        self.clusters.push(cluster);
        self.bounds.push(self.changes.len());
    }

    /// Appends the state changes of a job.
    fn add_job(&mut self, history: JobHistory<'_>) {
        let mut from = JobState::Unknown;
        for (&number, &time_ms) in history.number.iter().zip(history.time_ms) {
            let to = from.after(number);
            if to != from {
                self.changes.push(StateChange::new(time_ms, from, to));
            }
            from = to;
        }
    }

    fn at_prediction_time(&self, cluster: (u32, i32), asked_ms: i64) -> ClusterState {
        let Ok(at) = self.clusters.binary_search(&cluster) else {
            return ClusterState::default();
        };
        let begin = self.bounds[at];
        let changes = &self.changes[begin..self.bounds[at + 1]];
        let known = begin + changes.partition_point(|change| change.time_ms() <= asked_ms);

        // Start from the last stored state of this cluster, if there is one.
        let kept = known.saturating_sub(1) / CHANGES_PER_STATE;
        let kept_at = kept * CHANGES_PER_STATE;
        let (from, mut state) = if known > begin && kept_at >= begin {
            (kept_at, self.states[kept])
        } else {
            (begin, ClusterState::default())
        };
        for change in &self.changes[from..known] {
            state.change(*change);
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::JobEvent;
    use test_stores::store_of;

    /// The states equal a count over all changes, for any number of changes.
    #[test]
    fn states_equal_a_count_over_all_changes() {
        let event = |cluster, proc, s: i64, number| JobEvent {
            cluster,
            proc,
            time_ms: s * 1000,
            number,
            ..JobEvent::default()
        };
        let mut events = Vec::new();
        for cluster in 1..=4 {
            for proc in 0..30 {
                let s = i64::from(proc);
                let life = [
                    (s, SUBMIT),
                    (s + 10, EXECUTE),
                    (s + 20, HELD),
                    (s + 30, ABORTED),
                ];
                // Cluster 2 has no hold.
                let life = life
                    .into_iter()
                    .filter(|(_, number)| cluster != 2 || *number != HELD);
                events.extend(life.map(|(s, number)| event(cluster, proc, s, number)));
            }
        }
        let store = store_of(&events);
        let (jobs, states) = (store.jobs(), ClusterStates::new(&store));
        for job in jobs.iter() {
            for s in -1..65 {
                let found = states.at_prediction_time(&job, s * 1000);
                let between =
                    |from: i64, to: i64| (0..30).filter(|at| from < *at && *at <= to).count();
                let expected = ClusterState {
                    idle: between(s - 10, s) as u32,
                    running: between(s - 20, s - 10) as u32,
                    held: between(s - 30, s - 20) as u32,
                    done: 0,
                    removed: between(-1, s - 30) as u32,
                };
                if job.cluster == 2 {
                    assert_eq!(found, ClusterState::default());
                } else {
                    assert_eq!(found, expected, "cluster {}, second {s}", job.cluster);
                }
            }
        }
    }
}
