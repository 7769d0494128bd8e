//! The histories of all jobs → how earlier holds of the same kind and jobs of the same cluster had
//! ended, as far as a given moment knew.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use foldhash::fast::RandomState;
use rayon::prelude::*;

use super::asked_hold::AskedHold;
use super::hold_cycles::{HoldCycle, HoldOutcome, hold_cycles};
use crate::config::LabelKind;
use crate::eventlog::TERMINATED;
use crate::events::{EventStore, JobHistory, StoredJob, StoredJobs};

/// How many ended which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutcomeCounts {
    /// Those that ended well.
    pub successes: u32,
    /// Those that did not.
    pub failures: u32,
}

impl OutcomeCounts {
    fn add(&mut self, label: bool) {
        self.successes += u32::from(label);
        self.failures += u32::from(!label);
    }
}

/// What had become of earlier holds like one, and of the jobs around it, by the moment of asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HoldHistory {
    /// Earlier holds of the same cluster with the same code and subcode.
    pub cluster: OutcomeCounts,
    /// Those of the same owner; none where the owner is unknown.
    pub owner: OutcomeCounts,
    /// Jobs of the same cluster that had terminated: with exit code 0, or not.
    pub ends: OutcomeCounts,
}

/// An access point and the number of a cluster there.
type ClusterId = (u32, i32);
/// A hold code and subcode.
type HoldReason = (i32, i32);
/// When something was decided, and whether it went well.
type DatedOutcomes = Vec<(i64, bool)>;
/// The counts after each outcome, in order of time.
type RunningCounts = Vec<(i64, OutcomeCounts)>;
/// What became of the holds of each owner that is known.
type OwnerOutcomes = HashMap<(u64, HoldReason), DatedOutcomes, RandomState>;

/// So many jobs are looked at by one thread at a time.
const AT_ONCE: usize = 4096;

/// The hold histories of a whole store: for each cluster and owner, how many of its holds had ended
/// which way after each outcome. What was known at a moment is then one search by time.
#[derive(Debug)]
pub struct HoldHistories {
    /// Those of some whole clusters each, in order.
    parts: Vec<ClusterHistories>,
    owners: HashMap<(u64, HoldReason), RunningCounts, RandomState>,
}

/// The histories of neighbouring clusters.
#[derive(Debug)]
struct ClusterHistories {
    first: ClusterId,
    holds: HashMap<(ClusterId, HoldReason), RunningCounts, RandomState>,
    /// The ends of the jobs of clusters that have holds; nobody asks about the others, and they are
    /// many.
    ends: HashMap<ClusterId, RunningCounts, RandomState>,
}

impl HoldHistories {
    /// The histories of the jobs in `store`. Success is that of `label = next`: how a job ends in
    /// the end is known too late.
    pub fn new(store: &EventStore) -> HoldHistories {
        let jobs = store.jobs();
        let cuts = cut_between_clusters(&jobs, AT_ONCE);
        let found: Vec<_> = cuts
            .par_windows(2)
            .map(|cut| ClusterHistories::of_jobs(store, &jobs, cut[0]..cut[1]))
            .collect();

        // An owner has jobs in many clusters, and so in many parts: owners are counted once all
        // parts are there.
        let mut parts = Vec::with_capacity(found.len());
        let mut owner_outcomes = OwnerOutcomes::default();
        for (part, of_owners) in found {
            parts.push(part);
            for (key, mut outcomes) in of_owners {
                owner_outcomes.entry(key).or_default().append(&mut outcomes);
            }
        }
        let owners = owner_outcomes
            .into_iter()
            .map(|(key, outcomes)| (key, running_counts(outcomes)))
            .collect();
        HoldHistories { parts, owners }
    }

    /// What was known when a hold of `job` was asked about.
    pub fn when_asked(&self, job: &StoredJob<'_>, asked: &AskedHold) -> HoldHistory {
        let cluster = cluster_of(job);
        let reason = reason_of(job, &asked.cycle);
        let by_then = |counts: Option<&RunningCounts>| {
            counts.map_or(OutcomeCounts::default(), |counts| {
                counts_by(counts, asked.asked_ms)
            })
        };

        // The part of a cluster is the last one that does not begin after it.
        let after = self.parts.partition_point(|part| part.first <= cluster);
        let part = after.checked_sub(1).map(|at| &self.parts[at]);
        HoldHistory {
            cluster: by_then(part.and_then(|part| part.holds.get(&(cluster, reason)))),
            owner: by_then(self.owners.get(&(job.owner, reason))),
            ends: by_then(part.and_then(|part| part.ends.get(&cluster))),
        }
    }
}

/// The counts of what was decided by `time_ms`. An outcome of the very millisecond counts: it has
/// been written.
fn counts_by(counts: &RunningCounts, time_ms: i64) -> OutcomeCounts {
    let known = counts.partition_point(|(decided_ms, _)| *decided_ms <= time_ms);
    counts[..known]
        .last()
        .map_or(OutcomeCounts::default(), |(_, counts)| *counts)
}

/// Where to cut the jobs, so that the parts have about `at_once` of them and clusters stay whole.
/// Jobs are in order of access point and cluster, so those of a cluster follow each other.
fn cut_between_clusters(jobs: &StoredJobs<'_>, at_once: usize) -> Vec<usize> {
    let begins_cluster = |&index: &usize| {
        index == 0 || cluster_of(&jobs.get(index)) != cluster_of(&jobs.get(index - 1))
    };

    let mut cuts = Vec::new();
    for from in (0..jobs.len()).step_by(at_once) {
        let cut = (from..jobs.len()).find(begins_cluster);
        cuts.push(cut.unwrap_or(jobs.len()));
    }
    cuts.push(jobs.len());
    // A cluster with more jobs than a part has several cuts at its end.
    cuts.dedup();
    cuts
}

impl ClusterHistories {
    /// The histories of the whole clusters of the jobs in `range`, and what became of the holds of
    /// their owners.
    fn of_jobs(
        store: &EventStore,
        jobs: &StoredJobs<'_>,
        range: Range<usize>,
    ) -> (ClusterHistories, OwnerOutcomes) {
        let jobs: Vec<StoredJob<'_>> = range.map(|index| jobs.get(index)).collect();
        let mut histories = ClusterHistories {
            first: cluster_of(&jobs[0]),
            holds: HashMap::default(),
            ends: HashMap::default(),
        };
        let mut owners = OwnerOutcomes::default();
        for cluster in jobs.chunk_by(|a, b| cluster_of(a) == cluster_of(b)) {
            histories.add_cluster(store, cluster, &mut owners);
        }
        (histories, owners)
    }

    /// Adds the jobs of one cluster.
    fn add_cluster(
        &mut self,
        store: &EventStore,
        jobs: &[StoredJob<'_>],
        owners: &mut OwnerOutcomes,
    ) {
        let mut holds: BTreeMap<HoldReason, DatedOutcomes> = BTreeMap::new();
        let mut ends = DatedOutcomes::new();
        let mut was_held = false;

        for job in jobs {
            add_ends(&job.history, &mut ends);
            for cycle in hold_cycles(job.history, LabelKind::Next, store.gaps(job.ap)) {
                was_held = true;
                let HoldOutcome::Label(label) = cycle.outcome else {
                    continue;
                };
                let reason = reason_of(job, &cycle);
                // An outcome is known when it is decided, which may be long after the hold.
                let outcome = (job.history.time_ms[cycle.decided], label);
                holds.entry(reason).or_default().push(outcome);
                if job.owner != 0 {
                    owners.entry((job.owner, reason)).or_default().push(outcome);
                }
            }
        }

        let cluster = cluster_of(&jobs[0]);
        for (reason, outcomes) in holds {
            self.holds
                .insert((cluster, reason), running_counts(outcomes));
        }
        if was_held {
            self.ends.insert(cluster, running_counts(ends));
        }
    }
}

/// Adds how a job terminated, each time it did.
fn add_ends(history: &JobHistory<'_>, ends: &mut DatedOutcomes) {
    for (at, &number) in history.number.iter().enumerate() {
        if number == TERMINATED {
            let is_success = history.normal[at] == 1 && history.value[at] == 0;
            ends.push((history.time_ms[at], is_success));
        }
    }
}

fn cluster_of(job: &StoredJob<'_>) -> ClusterId {
    (job.ap, job.cluster)
}

fn reason_of(job: &StoredJob<'_>, cycle: &HoldCycle) -> HoldReason {
    (
        job.history.hold_code[cycle.hold],
        job.history.hold_subcode[cycle.hold],
    )
}

/// The counts after each of `outcomes`. Those of one time are sorted by outcome, but only the last
/// count of a time is ever looked up.
fn running_counts(mut outcomes: DatedOutcomes) -> RunningCounts {
    outcomes.sort_unstable();
    let mut counts = OutcomeCounts::default();
    outcomes
        .into_iter()
        .map(|(decided_ms, label)| {
            counts.add(label);
            (decided_ms, counts)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::WindowPlace;
    use crate::eventlog::JobEvent;
    use crate::events::store_of;

    /// The first hold of `job`, asked about in its second.
    fn first_hold(job: &StoredJob<'_>) -> AskedHold {
        let cycle = hold_cycles(job.history, LabelKind::Next, &[])[0];
        AskedHold::new(0, &job.history, cycle, WindowPlace::Hold, 0)
    }

    /// Seconds and numbers of the events of procs 0, 1 and 2 of one cluster, and of another
    /// cluster; all held for 13.
    fn history_of(proc: i32) -> HoldHistory {
        let held_released_and = |at, end| [(at, 12), (at + 5, 13), (at + 10, end)];
        let lives = [
            (1, 0, held_released_and(0, 5)),
            (1, 1, held_released_and(2, 12)),
            (1, 2, held_released_and(12, 5)),
            (2, 0, held_released_and(0, 5)),
        ];
        let events: Vec<JobEvent> = lives
            .iter()
            .flat_map(|&(cluster, proc, events)| {
                events.map(|(s, number)| JobEvent {
                    cluster,
                    proc,
                    number,
                    time_ms: s * 1000,
                    normal: u8::from(number == 5),
                    hold_code: if number == 12 { 13 } else { 0 },
                    ..JobEvent::default()
                })
            })
            .collect();
        let store = store_of(&events);
        let jobs = store.jobs();
        let job = jobs
            .iter()
            .find(|job| (job.cluster, job.proc) == (1, proc))
            .expect("the job");
        HoldHistories::new(&store).when_asked(&job, &first_hold(&job))
    }

    #[test]
    fn clusters_stay_whole() {
        let event = |(cluster, proc)| JobEvent {
            cluster,
            proc,
            ..JobEvent::default()
        };
        let store = store_of(
            &[
                (1, 0),
                (2, 0),
                (2, 1),
                (2, 2),
                (2, 3),
                (3, 0),
                (4, 0),
                (4, 1),
            ]
            .map(event),
        );
        assert_eq!(cut_between_clusters(&store.jobs(), 1), [0, 1, 5, 6, 8]);
        assert_eq!(cut_between_clusters(&store.jobs(), 3), [0, 5, 6, 8]);
        assert_eq!(cut_between_clusters(&store.jobs(), 100), [0, 8]);
    }

    #[test]
    fn clusters_far_apart_have_histories() {
        let event = |cluster, proc, s: i64, number| JobEvent {
            cluster,
            proc,
            number,
            time_ms: s * 1000,
            normal: 1,
            ..JobEvent::default()
        };
        let first =
            |cluster| [(0, 12), (5, 13), (9, 5)].map(|(s, number)| event(cluster, 0, s, number));
        let events: Vec<JobEvent> = (0..AT_ONCE as i32)
            .flat_map(|cluster| [&first(cluster)[..], &[event(cluster, 1, 20, 12)]].concat())
            .collect();
        let store = store_of(&events);
        let (jobs, histories) = (store.jobs(), HoldHistories::new(&store));
        assert!(jobs.len() > AT_ONCE);
        for job in jobs.iter().filter(|job| job.proc == 1) {
            let history = histories.when_asked(&job, &first_hold(&job));
            let one = OutcomeCounts {
                successes: 1,
                failures: 0,
            };
            assert_eq!((history.cluster, history.ends), (one, one), "{}", job.id());
        }
    }

    #[test]
    fn only_what_was_decided_by_then_counts() {
        assert_eq!(history_of(0), HoldHistory::default());
        assert_eq!(history_of(1), HoldHistory::default());
        // Proc 0 ended at 10, and proc 1 was held again in the very second of the hold.
        assert_eq!(
            history_of(2).cluster,
            OutcomeCounts {
                successes: 1,
                failures: 1
            }
        );
        assert_eq!(
            history_of(2).owner,
            OutcomeCounts::default(),
            "the owner is unknown"
        );
        assert_eq!(
            history_of(2).ends,
            OutcomeCounts {
                successes: 1,
                failures: 0
            }
        );
    }
}
