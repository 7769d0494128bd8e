//! Jobs that share most with a held one: its cluster, batch, hold reason, owner, execution point or
//! hold code.

use std::cmp::Reverse;

use htcondor_eventlog::{ABORTED, EXECUTE, ExecutionHost, HELD, RELEASED, SUBMIT, TERMINATED};
use rayon::prelude::*;
use twox_hash::XxHash3_64;

use crate::cycles::QueriedHold;
use crate::history::{FirstRunKind, HoldRecordKind, KeyGroups, NO_KEY, execution_host_before};
use poolcast_events::{JobHistory, StoredJob, StoredJobs};

/// Number of things that two jobs may share, with a bit for each.
pub(crate) const SHARED_BITS: usize = 6;

/// State changes that are looked at for each key of a sample, per context job. Jobs change their
/// state several times, so there are more changes than jobs.
const CHANGES_PER_JOB: usize = 2;

/// The keys of a job as of some event, from the one that says least to the one that says most: code,
/// execution point, owner, reason, batch, cluster. Only their equality counts.
#[derive(Debug, Clone, Copy)]
struct JobKeys([u64; SHARED_BITS]);

const OWNER: usize = 2;
const REASON: usize = 3;
const CLUSTER: usize = 5;

impl JobKeys {
    /// Returns the keys of `job` after its first `events` events.
    fn after(job: &StoredJob<'_>, events: usize) -> JobKeys {
        let numbers = &job.history.number[..events];
        let hold = numbers.iter().rposition(|&number| number == HELD);
        let ran = numbers
            .iter()
            .rposition(|&number| matches!(number, EXECUTE | HELD));
        let place = match ran {
            Some(at) if numbers[at] == EXECUTE => job.execution_place(at),
            Some(at) => execution_host_before(job, at),
            None => ExecutionHost::default(),
        };
        let of_hold = |kind: HoldRecordKind| hold.map_or(NO_KEY, |hold| kind.key(job, hold, place));
        JobKeys([
            of_hold(HoldRecordKind::Code),
            FirstRunKind::Host.key(job, place),
            job.owner,
            of_hold(HoldRecordKind::Reason),
            FirstRunKind::Batch.key(job, place),
            FirstRunKind::Cluster.key(job, place),
        ])
    }

    /// Returns a bit for each key that both have.
    fn shared(&self, other: &JobKeys) -> u8 {
        let pairs = self.0.iter().zip(&other.0);
        pairs.enumerate().fold(0, |bits, (bit, (own, other))| {
            bits | u8::from(*own != NO_KEY && own == other) << bit
        })
    }

    /// The keys under which the jobs are found: each key, and the cluster with the reason.
    fn searched(self) -> impl Iterator<Item = u64> {
        let JobKeys(keys) = self;
        let single = keys.into_iter().enumerate();
        let single = single.map(|(bit, key)| (key != NO_KEY).then(|| search_key(bit, key, 0)));
        let both = (keys[CLUSTER] != NO_KEY && keys[REASON] != NO_KEY)
            .then(|| search_key(SHARED_BITS, keys[CLUSTER], keys[REASON]));
        single.flatten().chain(both)
    }

    /// Like [`JobKeys::searched`], but an owner's jobs are only found if they were held. Owners have
    /// too many others.
    fn listed(mut self) -> impl Iterator<Item = u64> {
        if self.0[0] == NO_KEY {
            self.0[OWNER] = NO_KEY;
        }
        self.searched()
    }
}

fn search_key(kind: usize, first: u64, second: u64) -> u64 {
    let mut bytes = [0; 17];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..16].copy_from_slice(&second.to_le_bytes());
    bytes[16] = kind as u8;
    XxHash3_64::oneshot(&bytes).max(NO_KEY + 1)
}

/// A state change of a job, among the jobs with the same key. Sorts by key, then by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct KeyedChange {
    group: u32,
    job: u32,
    time_ms: i64,
}

/// Finds the jobs that share something with a held one, by an index of the state changes under the
/// keys of all holds.
#[derive(Debug)]
pub(crate) struct RelatedJobs {
    keys: KeyGroups,
    /// State changes, sorted by group, time and job.
    changes: Vec<KeyedChange>,
}

impl RelatedJobs {
    pub(crate) fn new(jobs: &StoredJobs<'_>) -> RelatedJobs {
        let searched = in_blocks(jobs, |index, found: &mut Vec<u64>| {
            if jobs.was_held(index) {
                let job = jobs.get(index);
                for at in events_at(job.history, |number| number == HELD) {
                    found.extend(JobKeys::after(&job, at + 1).searched());
                }
            }
        });
        let (keys, _) = KeyGroups::from_keys(searched.into_iter());

        let mut changes =
            in_blocks(jobs, |index, found: &mut Vec<KeyedChange>| {
                let job = jobs.get(index);
                for at in events_at(job.history, changes_state) {
                    let groups = JobKeys::after(&job, at + 1).listed();
                    found.extend(groups.filter_map(|key| keys.group(key)).map(|group| {
                        KeyedChange {
                            group,
                            job: index as u32,
                            time_ms: job.history.time_ms[at],
                        }
                    }));
                }
            });
        changes.par_sort_unstable_by_key(|change| (change.group, change.time_ms, change.job));
        RelatedJobs { keys, changes }
    }

    /// Adds the jobs that share most with the job of `hold`, the one with the latest state change
    /// first among equals, until `chosen` has `count` jobs. `chosen` must already hold the job.
    /// Events after prediction time have no influence.
    pub(crate) fn add_closest(
        &self,
        jobs: &StoredJobs<'_>,
        hold: &QueriedHold,
        count: usize,
        chosen: &mut Vec<u32>,
    ) {
        let held = keys_of_held(jobs, hold);
        let mut candidates: Vec<u32> = Vec::new();
        for key in held.searched() {
            let changes = self.latest_changes(key, hold.asked_ms);
            candidates.extend(changes.take(CHANGES_PER_JOB * count));
        }
        candidates.sort_unstable();
        candidates.dedup();

        let mut ranked = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            if candidate != hold.job {
                let job = jobs.get(candidate as usize);
                let known = known_events(job.history, hold.asked_ms);
                let shared = held.shared(&JobKeys::after(&job, known));
                let changed = last_change_ms(job.history, known);
                ranked.push((Reverse(shared), Reverse(changed), candidate));
            }
        }
        ranked.sort_unstable();
        let missing = count.saturating_sub(chosen.len());
        chosen.extend(ranked.iter().take(missing).map(|(.., job)| job));
    }

    /// The jobs of the state changes with `key` until `asked_ms`, the latest first.
    fn latest_changes(&self, key: u64, asked_ms: i64) -> impl Iterator<Item = u32> {
        let group = self.keys.group(key);
        let end = group.map_or(0, |group| {
            (self.changes)
                .partition_point(|change| (change.group, change.time_ms) <= (group, asked_ms))
        });
        let latest = self.changes[..end].iter().rev();
        latest
            .take_while(move |change| Some(change.group) == group)
            .map(|change| change.job)
    }
}

/// Writes what each of `chosen` shares with the job of `hold`, the first of them, as bits `[j]`.
/// Nothing is shared by jobs that are missing.
pub(crate) fn write_shared(
    jobs: &StoredJobs<'_>,
    hold: &QueriedHold,
    chosen: &[u32],
    shared: &mut [u8],
) {
    let held = keys_of_held(jobs, hold);
    shared.fill(0);
    for (shared, &job) in shared.iter_mut().zip(chosen) {
        let job = jobs.get(job as usize);
        let known = known_events(job.history, hold.asked_ms);
        *shared = held.shared(&JobKeys::after(&job, known));
    }
    if let Some(own) = shared.first_mut() {
        *own = held.shared(&held);
    }
}

fn keys_of_held(jobs: &StoredJobs<'_>, hold: &QueriedHold) -> JobKeys {
    JobKeys::after(&jobs.get(hold.job as usize), hold.cycle.hold + 1)
}

/// Returns the number of events of a job until `asked_ms`.
fn known_events(history: JobHistory<'_>, asked_ms: i64) -> usize {
    history
        .time_ms
        .partition_point(|&time_ms| time_ms <= asked_ms)
}

/// Returns the time of the last state change among the first `known` events of a job.
fn last_change_ms(history: JobHistory<'_>, known: usize) -> i64 {
    let numbers = &history.number[..known];
    let last = numbers.iter().rposition(|&number| changes_state(number));
    last.map_or(i64::MIN, |at| history.time_ms[at])
}

fn changes_state(number: u16) -> bool {
    matches!(
        number,
        SUBMIT | EXECUTE | TERMINATED | ABORTED | HELD | RELEASED
    )
}

fn events_at<'a>(
    history: JobHistory<'a>,
    is_wanted: impl Fn(u16) -> bool + 'a,
) -> impl Iterator<Item = usize> + 'a {
    let numbers = history.number.iter().enumerate();
    numbers.filter_map(move |(at, &number)| is_wanted(number).then_some(at))
}

/// Collects what `add` finds for each job, in the order of the jobs.
fn in_blocks<T: Send>(jobs: &StoredJobs<'_>, add: impl Fn(usize, &mut Vec<T>) + Sync) -> Vec<T> {
    let parts = jobs.map_ranges(|range| {
        let mut found = Vec::new();
        for index in range {
            add(index, &mut found);
        }
        found
    });
    parts.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles::hold_cycles;
    use crate::history::tests::facts_of;
    use htcondor_eventlog::JobEvent;
    use poolcast_config::{LabelKind, WindowPosition};
    use poolcast_events::EventStore;
    use proptest::prelude::*;
    use test_stores::store_of;

    type Event = (i32, i32, i64, u16);

    /// Events of even procs have other reasons than events of odd ones.
    fn store(events: &[Event]) -> EventStore {
        let event = |&(cluster, proc, s, number): &Event| JobEvent {
            cluster,
            proc,
            time_ms: s * 1000,
            number,
            hold_code: i32::from(number == HELD) * 13,
            facts: facts_of(number, 1 + proc.cast_unsigned() % 2),
            ..JobEvent::default()
        };
        store_of(&events.iter().map(event).collect::<Vec<_>>())
    }

    /// Returns the jobs, and what they share, beside the first job of the store at its first hold.
    fn related(store: &EventStore, count: usize) -> Vec<((i32, i32), u8)> {
        let jobs = store.jobs();
        let history = jobs.history(0);
        let cycle = hold_cycles(history, LabelKind::Next, &[])[0];
        let hold = QueriedHold::new(0, &history, cycle, WindowPosition::Release, 90_000);
        let mut chosen = vec![0];
        RelatedJobs::new(&jobs).add_closest(&jobs, &hold, count, &mut chosen);
        let mut shared = vec![0; chosen.len()];
        write_shared(&jobs, &hold, &chosen, &mut shared);
        let ids = chosen.iter().map(|&job| {
            let job = jobs.get(job as usize);
            (job.cluster, job.proc)
        });
        ids.zip(shared).skip(1).collect()
    }

    #[test]
    fn jobs_that_share_more_come_first_and_then_later_changes() {
        let submitted = [(1, 0), (1, 1), (1, 2), (1, 4), (2, 0), (2, 1), (3, 0)];
        let submitted = submitted.map(|(cluster, proc)| (cluster, proc, 0, SUBMIT));
        let held = [
            (1, 0, 50, HELD),
            (1, 2, 10, HELD),
            (1, 4, 20, HELD),
            (2, 0, 30, HELD),
            (2, 1, 40, HELD),
        ];
        let store = store(&[&submitted[..], &held].concat());
        let order: Vec<(i32, i32)> = related(&store, 9).into_iter().map(|(id, _)| id).collect();
        assert_eq!(order, [(1, 4), (1, 2), (1, 1), (2, 0), (2, 1)]);
        assert_eq!(related(&store, 3).len(), 2);
    }

    proptest! {
        /// Jobs are chosen and their bits set without a look at what happens from prediction time on.
        #[test]
        fn later_events_change_nothing(
            past in proptest::collection::vec((1..6i32, 0..6i32, 0..54i64, 0..14u16), 0..80),
            future in proptest::collection::vec((1..9i32, 0..6i32, 55..200i64, 0..14u16), 0..80),
            count in 1..9usize,
        ) {
            let own = [(0, 0, 0, SUBMIT), (0, 0, 5, EXECUTE), (0, 0, 40, HELD)];
            let known = [&own[..], &past].concat();
            let ended = [&known[..], &[(0, 0, 55, RELEASED)]].concat();
            let later = [&ended[..], &[(0, 0, 60, HELD)], &future].concat();
            prop_assert_eq!(related(&store(&ended), count), related(&store(&later), count));
        }

        /// Every job shares what a comparison of all keys says, and no job that was left out of a
        /// small pool shares more.
        #[test]
        fn closest_jobs_of_a_sweep_over_all_are_found(
            events in proptest::collection::vec((0..4i32, 0..4i32, 0..54i64, 0..14u16), 0..60),
        ) {
            let own = [(0, 0, 0, SUBMIT), (0, 0, 5, EXECUTE), (0, 0, 40, HELD), (0, 0, 55, RELEASED)];
            let others = events.into_iter().filter(|event| (event.0, event.1) != (0, 0));
            let store = store(&own.into_iter().chain(others).collect::<Vec<_>>());
            let jobs = store.jobs();
            let held = JobKeys::after(&jobs.get(0), 3);
            let mut all = Vec::new();
            for job in jobs.iter().skip(1) {
                let known = known_events(job.history, 54_999);
                let shared = held.shared(&JobKeys::after(&job, known));
                if shared > 0 && last_change_ms(job.history, known) > i64::MIN {
                    all.push(shared);
                }
            }
            all.sort_unstable_by_key(|shared| Reverse(*shared));
            let found: Vec<u8> = related(&store, 999).into_iter().map(|(_, shared)| shared).filter(|shared| *shared > 0).collect();
            prop_assert_eq!(found, all);
        }
    }
}
