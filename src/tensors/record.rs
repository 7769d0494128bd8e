//! The histories of all jobs → how earlier holds of the same kind and jobs of the same cluster had ended, as far as a given
//! moment knew.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use foldhash::fast::RandomState;
use rayon::prelude::*;

use super::cycles::{HoldCycle, HoldOutcome, hold_cycles};
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

/// What had become of the jobs around a held one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HoldHistory {
    /// Earlier holds of the same cluster with the same code and subcode.
    pub cluster: OutcomeCounts,
    /// Those of the same owner; none where the owner is unknown.
    pub owner: OutcomeCounts,
    /// Jobs of the same cluster that had terminated: with exit code 0, or not.
    pub ends: OutcomeCounts,
}

/// A hold code and subcode.
type Reason = (i32, i32);
/// When something ended, and whether well.
type Outcomes = Vec<(i64, bool)>;
/// What became of the holds of each owner that is known.
type Owners = HashMap<(u64, Reason), Outcomes, RandomState>;
/// The tally after each outcome, in order of time.
type Tallies = Vec<(i64, OutcomeCounts)>;

/// So many jobs are looked at by one thread at a time.
const AT_ONCE: usize = 4096;

/// The records of a whole store.
#[derive(Debug)]
pub struct HoldHistories {
    /// Those of some whole clusters each, in order.
    clusters: Vec<Clusters>,
    owners: HashMap<(u64, Reason), Tallies, RandomState>,
}

/// The records of neighbouring clusters.
#[derive(Debug)]
struct Clusters {
    /// The access point and number of the first.
    first: (u32, i32),
    holds: HashMap<((u32, i32), Reason), Tallies, RandomState>,
    /// The ends of the jobs of clusters that have holds; nobody asks about the others, and they are many.
    ends: HashMap<(u32, i32), Tallies, RandomState>,
}

impl HoldHistories {
    /// The records of the jobs in `store`. Success is that of `label = next`: how a job ends in the end is known too late.
    pub fn new(store: &EventStore) -> HoldHistories {
        let jobs = store.jobs();
        let cuts = cuts(&jobs, AT_ONCE);
        let parts: Vec<_> = cuts
            .par_windows(2)
            .map(|cut| Clusters::of(store, &jobs, cut[0]..cut[1]))
            .collect();
        let mut clusters = Vec::with_capacity(parts.len());
        let mut owners = Owners::default();
        for (part, of_owners) in parts {
            clusters.push(part);
            for (key, mut outcomes) in of_owners {
                owners.entry(key).or_default().append(&mut outcomes);
            }
        }
        HoldHistories {
            clusters,
            owners: owners
                .into_iter()
                .map(|(key, outcomes)| (key, running(outcomes)))
                .collect(),
        }
    }

    /// What was known in the second of a hold.
    pub fn at(&self, job: &StoredJob<'_>, cycle: &HoldCycle) -> HoldHistory {
        let hold_ms = job.history.time_ms[cycle.hold];
        let tally = |tallies: Option<&Tallies>| {
            let tallies = tallies.map_or(&[][..], Vec::as_slice);
            let known = tallies.partition_point(|(decided_ms, _)| *decided_ms <= hold_ms);
            tallies[..known]
                .last()
                .map_or(OutcomeCounts::default(), |(_, tally)| *tally)
        };
        let (cluster, reason) = (cluster(job), reason(job, cycle));
        let part = self
            .clusters
            .partition_point(|part| part.first <= cluster)
            .checked_sub(1);
        let part = part.map(|part| &self.clusters[part]);
        HoldHistory {
            cluster: tally(part.and_then(|part| part.holds.get(&(cluster, reason)))),
            owner: tally(self.owners.get(&(job.owner, reason))),
            ends: tally(part.and_then(|part| part.ends.get(&cluster))),
        }
    }
}

/// Where to cut the jobs, so that the parts have about `at_once` of them and clusters stay whole. Jobs are in order of access
/// point and cluster, so those of a cluster follow each other.
fn cuts(jobs: &StoredJobs<'_>, at_once: usize) -> Vec<usize> {
    let begins =
        |&index: &usize| index == 0 || cluster(&jobs.get(index)) != cluster(&jobs.get(index - 1));
    let next = |from: usize| (from..jobs.len()).find(begins).unwrap_or(jobs.len());
    let mut cuts: Vec<usize> = (0..jobs.len()).step_by(at_once).map(next).collect();
    cuts.push(jobs.len());
    cuts.dedup();
    cuts
}

impl Clusters {
    /// The records of the whole clusters of the jobs in `range`, and what became of the holds of their owners.
    fn of(store: &EventStore, jobs: &StoredJobs<'_>, range: Range<usize>) -> (Clusters, Owners) {
        let jobs: Vec<StoredJob<'_>> = range.map(|index| jobs.get(index)).collect();
        let first = cluster(&jobs[0]);
        let mut clusters = Clusters {
            first,
            holds: HashMap::default(),
            ends: HashMap::default(),
        };
        let mut owners = Owners::default();
        for own in jobs.chunk_by(|a, b| cluster(a) == cluster(b)) {
            clusters.add(store, own, &mut owners);
        }
        (clusters, owners)
    }

    /// Adds the jobs of one cluster.
    fn add(&mut self, store: &EventStore, jobs: &[StoredJob<'_>], owners: &mut Owners) {
        let mut holds: BTreeMap<Reason, Outcomes> = BTreeMap::new();
        let (mut ended, mut was_held) = (Outcomes::new(), false);
        for job in jobs {
            add_ends(&job.history, &mut ended);
            for cycle in hold_cycles(job.history, LabelKind::Next, store.gaps(job.ap)) {
                was_held = true;
                let HoldOutcome::Label(label) = cycle.outcome else {
                    continue;
                };
                let (reason, outcome) = (
                    reason(job, &cycle),
                    (job.history.time_ms[cycle.decided], label),
                );
                holds.entry(reason).or_default().push(outcome);
                if job.owner != 0 {
                    owners.entry((job.owner, reason)).or_default().push(outcome);
                }
            }
        }
        let own = cluster(&jobs[0]);
        self.holds.extend(
            holds
                .into_iter()
                .map(|(reason, outcomes)| ((own, reason), running(outcomes))),
        );
        self.ends.extend(was_held.then(|| (own, running(ended))));
    }
}

/// Adds how a job terminated, each time it did.
fn add_ends(history: &JobHistory<'_>, ended: &mut Outcomes) {
    for (at, &number) in history.number.iter().enumerate() {
        if number == TERMINATED {
            ended.push((
                history.time_ms[at],
                history.normal[at] == 1 && history.value[at] == 0,
            ));
        }
    }
}

/// The access point and number of a job's cluster.
fn cluster(job: &StoredJob<'_>) -> (u32, i32) {
    (job.ap, job.cluster)
}

fn reason(job: &StoredJob<'_>, cycle: &HoldCycle) -> Reason {
    (
        job.history.hold_code[cycle.hold],
        job.history.hold_subcode[cycle.hold],
    )
}

fn running(mut outcomes: Outcomes) -> Tallies {
    outcomes.sort_unstable();
    let mut tally = OutcomeCounts::default();
    let after = |(decided_ms, label)| {
        tally.add(label);
        (decided_ms, tally)
    };
    outcomes.into_iter().map(after).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventlog::JobEvent;
    use crate::events::store_of;

    /// Seconds and numbers of the events of procs 0, 1 and 2 of one cluster, and of another cluster; all held for 13.
    fn record_of(proc: i32) -> HoldHistory {
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
        let cycle = hold_cycles(job.history, LabelKind::Next, &[])[0];
        HoldHistories::new(&store).at(&job, &cycle)
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
        assert_eq!(cuts(&store.jobs(), 1), [0, 1, 5, 6, 8]);
        assert_eq!(cuts(&store.jobs(), 3), [0, 5, 6, 8]);
        assert_eq!(cuts(&store.jobs(), 100), [0, 8]);
    }

    #[test]
    fn clusters_far_apart_have_records() {
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
        let (jobs, records) = (store.jobs(), HoldHistories::new(&store));
        assert!(jobs.len() > AT_ONCE);
        for job in jobs.iter().filter(|job| job.proc == 1) {
            let record = records.at(&job, &hold_cycles(job.history, LabelKind::Next, &[])[0]);
            let one = OutcomeCounts {
                successes: 1,
                failures: 0,
            };
            assert_eq!((record.cluster, record.ends), (one, one), "{}", job.id());
        }
    }

    #[test]
    fn only_what_was_decided_by_then_counts() {
        assert_eq!(record_of(0), HoldHistory::default());
        assert_eq!(record_of(1), HoldHistory::default());
        // Proc 0 ended at 10, and proc 1 was held again in the very second of the hold.
        assert_eq!(
            record_of(2).cluster,
            OutcomeCounts {
                successes: 1,
                failures: 1
            }
        );
        assert_eq!(
            record_of(2).owner,
            OutcomeCounts::default(),
            "the owner is unknown"
        );
        assert_eq!(
            record_of(2).ends,
            OutcomeCounts {
                successes: 1,
                failures: 0
            }
        );
    }
}
