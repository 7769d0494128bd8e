//! The histories of all jobs → how earlier holds of the same kind and jobs of the same cluster had ended, as far as a given
//! moment knew.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use rayon::prelude::*;

use super::cycles::{Cycle, Outcome, cycles};
use crate::config::Label;
use crate::eventlog::{HELD, TERMINATED};
use crate::events::{Job, Jobs, Store};

/// How many ended which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Those that ended well.
    pub successes: u32,
    /// Those that did not.
    pub failures: u32,
}

impl Tally {
    fn add(&mut self, label: bool) {
        self.successes += u32::from(label);
        self.failures += u32::from(!label);
    }
}

/// What had become of the jobs around a held one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Record {
    /// Earlier holds of the same cluster with the same code and subcode.
    pub cluster: Tally,
    /// Those of the same owner; none where the owner is unknown.
    pub owner: Tally,
    /// Jobs of the same cluster that had terminated: with exit code 0, or not.
    pub ends: Tally,
}

/// What is counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    /// The holds of an access point's cluster, with their code and subcode.
    Cluster((u32, i32), (i32, i32)),
    /// The holds of an owner.
    Owner(u64, (i32, i32)),
    /// The ends of the jobs of a cluster.
    Ends((u32, i32)),
}

/// When holds or jobs of each kind ended, and whether well.
type Outcomes = HashMap<Kind, Vec<(i64, bool)>, RandomState>;

/// So many jobs are looked at by one thread at a time.
const AT_ONCE: usize = 4096;

/// The records of a whole store: of each kind, the tally after each outcome, in order of time.
#[derive(Debug)]
pub struct Records {
    tallies: HashMap<Kind, Vec<(i64, Tally)>, RandomState>,
}

impl Records {
    /// The records of the jobs in `store`. Success is that of `label = next`: how a job ends in the end is known too late.
    pub fn new(store: &Store) -> Records {
        let jobs = store.jobs();
        let cuts = cuts(&jobs, AT_ONCE);
        let parts: Vec<Outcomes> = cuts.par_windows(2).map(|cut| outcomes(store, &jobs, cut[0]..cut[1])).collect();
        let mut all = Outcomes::default();
        all.reserve(parts.iter().map(Outcomes::len).sum());
        for (kind, mut part) in parts.into_iter().flatten() {
            all.entry(kind).or_default().append(&mut part);
        }
        Records { tallies: all.into_iter().map(|(kind, outcomes)| (kind, running(outcomes))).collect() }
    }

    /// What was known in the second of a hold.
    pub fn at(&self, job: &Job<'_>, cycle: &Cycle) -> Record {
        let hold_ms = job.history.time_ms[cycle.hold];
        let tally = |kind| {
            let tallies = self.tallies.get(&kind).map_or(&[][..], Vec::as_slice);
            let known = tallies.partition_point(|(decided_ms, _)| *decided_ms <= hold_ms);
            tallies[..known].last().map_or(Tally::default(), |(_, tally)| *tally)
        };
        let owner = if job.owner == 0 { Tally::default() } else { tally(of_owner(job, cycle)) };
        Record { cluster: tally(of_cluster(job, cycle)), owner, ends: tally(ends(job)) }
    }
}

/// Where to cut the jobs, so that the parts have about `at_once` of them and clusters stay whole. Jobs are in order of access
/// point and cluster, so those of a cluster follow each other.
fn cuts(jobs: &Jobs<'_>, at_once: usize) -> Vec<usize> {
    let begins = |&index: &usize| index == 0 || ends(&jobs.get(index)) != ends(&jobs.get(index - 1));
    let next = |from: usize| (from..jobs.len()).find(begins).unwrap_or(jobs.len());
    let mut cuts: Vec<usize> = (0..jobs.len()).step_by(at_once).map(next).collect();
    cuts.push(jobs.len());
    cuts.dedup();
    cuts
}

/// The outcomes of some whole clusters.
fn outcomes(store: &Store, jobs: &Jobs<'_>, range: Range<usize>) -> Outcomes {
    let mut outcomes = Outcomes::default();
    let (mut cluster, mut ended, mut was_held) = (None, Vec::new(), false);
    for job in range.map(|index| Some(jobs.get(index))).chain([None]) {
        let own = job.as_ref().map(ends);
        if cluster != own {
            // Nobody asks about clusters without a hold, and they are many.
            let ended = std::mem::take(&mut ended);
            outcomes.extend(cluster.filter(|_| was_held).map(|cluster| (cluster, ended)));
            (cluster, was_held) = (own, false);
        }
        let Some(job) = job else { break };
        let history = job.history;
        for (at, &number) in history.number.iter().enumerate() {
            if number == TERMINATED {
                ended.push((history.time_ms[at], history.normal[at] == 1 && history.value[at] == 0));
            }
            was_held |= number == HELD;
        }
        for cycle in cycles(history, Label::Next, store.gaps(job.ap)) {
            let Outcome::Label(label) = cycle.outcome else { continue };
            let decided_ms = history.time_ms[cycle.decided];
            for kind in [of_cluster(&job, &cycle), of_owner(&job, &cycle)] {
                outcomes.entry(kind).or_default().push((decided_ms, label));
            }
        }
    }
    outcomes
}

fn reason(job: &Job<'_>, cycle: &Cycle) -> (i32, i32) {
    (job.history.hold_code[cycle.hold], job.history.hold_subcode[cycle.hold])
}

fn of_cluster(job: &Job<'_>, cycle: &Cycle) -> Kind {
    Kind::Cluster((job.ap, job.cluster), reason(job, cycle))
}

fn of_owner(job: &Job<'_>, cycle: &Cycle) -> Kind {
    Kind::Owner(job.owner, reason(job, cycle))
}

fn ends(job: &Job<'_>) -> Kind {
    Kind::Ends((job.ap, job.cluster))
}

fn running(mut outcomes: Vec<(i64, bool)>) -> Vec<(i64, Tally)> {
    outcomes.sort_unstable();
    let mut tally = Tally::default();
    let after = |(decided_ms, label)| {
        tally.add(label);
        (decided_ms, tally)
    };
    outcomes.into_iter().map(after).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventlog::Event;
    use crate::events::store_of;

    /// Seconds and numbers of the events of procs 0, 1 and 2 of one cluster, and of another cluster; all held for 13.
    fn record_of(proc: i32) -> Record {
        let held_released_and = |at, end| [(at, 12), (at + 5, 13), (at + 10, end)];
        let lives = [
            (1, 0, held_released_and(0, 5)),
            (1, 1, held_released_and(2, 12)),
            (1, 2, held_released_and(12, 5)),
            (2, 0, held_released_and(0, 5)),
        ];
        let events: Vec<Event> = lives
            .iter()
            .flat_map(|&(cluster, proc, events)| {
                events.map(|(s, number)| Event {
                    cluster,
                    proc,
                    number,
                    time_ms: s * 1000,
                    normal: u8::from(number == 5),
                    hold_code: if number == 12 { 13 } else { 0 },
                    ..Event::default()
                })
            })
            .collect();
        let store = store_of(&events);
        let jobs = store.jobs();
        let job = jobs.iter().find(|job| (job.cluster, job.proc) == (1, proc)).expect("the job");
        let cycle = cycles(job.history, Label::Next, &[])[0];
        Records::new(&store).at(&job, &cycle)
    }

    #[test]
    fn clusters_stay_whole() {
        let event = |(cluster, proc)| Event { cluster, proc, ..Event::default() };
        let store = store_of(&[(1, 0), (2, 0), (2, 1), (2, 2), (2, 3), (3, 0), (4, 0), (4, 1)].map(event));
        assert_eq!(cuts(&store.jobs(), 1), [0, 1, 5, 6, 8]);
        assert_eq!(cuts(&store.jobs(), 3), [0, 5, 6, 8]);
        assert_eq!(cuts(&store.jobs(), 100), [0, 8]);
    }

    #[test]
    fn only_what_was_decided_by_then_counts() {
        assert_eq!(record_of(0), Record::default());
        assert_eq!(record_of(1), Record::default());
        // Proc 0 ended at 10, and proc 1 was held again in the very second of the hold.
        assert_eq!(record_of(2).cluster, Tally { successes: 1, failures: 1 });
        assert_eq!(record_of(2).owner, Tally::default(), "the owner is unknown");
        assert_eq!(record_of(2).ends, Tally { successes: 1, failures: 0 });
    }
}
