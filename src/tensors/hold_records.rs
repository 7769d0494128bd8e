//! The histories of all jobs → what had become, by a moment, of holds that have something in common
//! with one that is asked about, and of first runs.

use rayon::prelude::*;
use twox_hash::XxHash3_64;

use super::asked_hold::AskedHold;
use super::cluster_parts::{cluster_of, cut_between_clusters};
use super::hold_cycles::{HoldCycle, HoldOutcome, hold_cycles};
use super::keyed_outcomes::{KeyLists, KeyedOutcomes, NO_KEY, TimedOutcomes};
use super::last_run::place_before;
use super::outcome_record::{DatedOutcome, OutcomeRecord};
use crate::config::LabelKind;
use crate::eventlog::{EXECUTE, ExecutionPlace, HELD, SubmissionNames, TERMINATED};
use crate::events::{EventStore, StoredJob};

/// So many jobs are looked at by one thread at a time.
const AT_ONCE: usize = 4096;

/// What holds have in common whose outcomes are one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldRecordKind {
    /// All holds.
    Pool,
    /// Code and subcode.
    Code,
    /// The owner, and code and subcode.
    Owner,
    /// The owner and the name of the batch; of a node of a DAG also its name without numbers.
    Batch,
    /// The cluster.
    Cluster,
    /// The hold reason without what varies from job to job, and code and subcode.
    Reason,
    /// The machine that the last run was on.
    Host,
    /// The slot of that machine.
    Slot,
}

impl HoldRecordKind {
    /// All, each after what it is a part of.
    pub const ALL: [HoldRecordKind; 8] = [
        HoldRecordKind::Pool,
        HoldRecordKind::Code,
        HoldRecordKind::Owner,
        HoldRecordKind::Batch,
        HoldRecordKind::Cluster,
        HoldRecordKind::Reason,
        HoldRecordKind::Host,
        HoldRecordKind::Slot,
    ];

    /// As columns name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            HoldRecordKind::Pool => "pool",
            HoldRecordKind::Code => "code",
            HoldRecordKind::Owner => "owner",
            HoldRecordKind::Batch => "batch",
            HoldRecordKind::Cluster => "cluster",
            HoldRecordKind::Reason => "reason",
            HoldRecordKind::Host => "host",
            HoldRecordKind::Slot => "slot",
        }
    }

    /// What it is a part of: where a record of this kind is small, the rate of that one is used.
    pub(super) fn parent(self) -> Option<HoldRecordKind> {
        match self {
            HoldRecordKind::Pool => None,
            HoldRecordKind::Code | HoldRecordKind::Host => Some(HoldRecordKind::Pool),
            HoldRecordKind::Owner | HoldRecordKind::Reason => Some(HoldRecordKind::Code),
            HoldRecordKind::Batch | HoldRecordKind::Cluster => Some(HoldRecordKind::Owner),
            HoldRecordKind::Slot => Some(HoldRecordKind::Host),
        }
    }

    /// What stands for the record of this kind that a hold belongs to, whose last run was in
    /// `place`; [`NO_KEY`] if it is not known.
    fn key(self, job: &StoredJob<'_>, hold: usize, place: ExecutionPlace) -> u64 {
        let code = job.history.hold_code[hold];
        let subcode = job.history.hold_subcode[hold];
        match self {
            HoldRecordKind::Pool => POOL_KEY,
            HoldRecordKind::Code => hashed_key(0, code, subcode),
            HoldRecordKind::Owner if job.owner == 0 => NO_KEY,
            HoldRecordKind::Owner => hashed_key(job.owner, code, subcode),
            HoldRecordKind::Batch => FirstRunKind::Batch.key(job, NO_PLACE),
            HoldRecordKind::Cluster => FirstRunKind::Cluster.key(job, NO_PLACE),
            HoldRecordKind::Reason => match job.reason_hash(hold) {
                0 => NO_KEY,
                reason => hashed_key(reason.into(), code, subcode),
            },
            HoldRecordKind::Host => FirstRunKind::Host.key(job, place),
            HoldRecordKind::Slot if place.slot == 0 => NO_KEY,
            HoldRecordKind::Slot => u64::from(place.host) << 32 | u64::from(place.slot),
        }
    }
}

const NO_PLACE: ExecutionPlace = ExecutionPlace { host: 0, slot: 0 };

/// What jobs have in common whose first runs are one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstRunKind {
    /// All jobs.
    Pool,
    /// The owner and the name of the batch.
    Batch,
    /// The cluster.
    Cluster,
    /// The machine.
    Host,
}

impl FirstRunKind {
    /// All, each after what it is a part of.
    pub const ALL: [FirstRunKind; 4] = [
        FirstRunKind::Pool,
        FirstRunKind::Batch,
        FirstRunKind::Cluster,
        FirstRunKind::Host,
    ];

    /// As columns name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            FirstRunKind::Pool => "pool",
            FirstRunKind::Batch => "batch",
            FirstRunKind::Cluster => "cluster",
            FirstRunKind::Host => "host",
        }
    }

    /// What it is a part of.
    pub(super) fn parent(self) -> Option<FirstRunKind> {
        match self {
            FirstRunKind::Pool => None,
            FirstRunKind::Batch | FirstRunKind::Cluster | FirstRunKind::Host => {
                Some(FirstRunKind::Pool)
            }
        }
    }

    /// As [`HoldRecordKind::key`].
    fn key(self, job: &StoredJob<'_>, place: ExecutionPlace) -> u64 {
        match self {
            FirstRunKind::Pool => POOL_KEY,
            FirstRunKind::Batch if job.names == SubmissionNames::default() => NO_KEY,
            FirstRunKind::Batch => hashed_key(
                job.owner,
                job.names.batch.cast_signed(),
                job.names.dag_node.cast_signed(),
            ),
            FirstRunKind::Cluster => {
                1 << 63 | u64::from(job.ap) << 32 | u64::from(job.cluster.cast_unsigned())
            }
            FirstRunKind::Host => u64::from(place.host) << 32,
        }
    }
}

const POOL_KEY: u64 = 1;

fn hashed_key(first: u64, second: i32, third: i32) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..12].copy_from_slice(&second.to_le_bytes());
    bytes[12..].copy_from_slice(&third.to_le_bytes());
    XxHash3_64::oneshot(&bytes).max(POOL_KEY)
}

/// What had become of holds like one, and of first runs like its job's, by its moment of asking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HoldRecords {
    /// In the order of [`HoldRecordKind::ALL`].
    holds: [OutcomeRecord; HoldRecordKind::ALL.len()],
    /// In the order of [`FirstRunKind::ALL`]; these have no holds and releases.
    first_runs: [OutcomeRecord; FirstRunKind::ALL.len()],
    /// What ages are measured by: for how long holds that were released by then had lasted, as a
    /// geometric mean. A pool that answers in minutes changes in minutes, one that answers in days
    /// in days; and what was decided before the faults of today began is of no use for them.
    pub half_life_ms: f32,
}

impl HoldRecords {
    /// The record of the holds that have this in common with the one that is asked about.
    pub fn holds(&self, kind: HoldRecordKind) -> &OutcomeRecord {
        &self.holds[kind as usize]
    }

    /// The record of jobs that terminated without having been held, with exit code 0 or not.
    pub fn first_runs(&self, kind: FirstRunKind) -> &OutcomeRecord {
        &self.first_runs[kind as usize]
    }
}

/// The holds of a store and the first runs of its jobs, by what they have in common.
#[derive(Debug)]
pub(super) struct RecordHistory {
    /// In the order of [`HoldRecordKind::ALL`].
    holds: Vec<KeyedOutcomes>,
    /// In the order of [`FirstRunKind::ALL`].
    first_runs: Vec<KeyedOutcomes>,
    hold_lengths: HoldLengths,
}

impl RecordHistory {
    pub(super) fn new(store: &EventStore) -> RecordHistory {
        let found = FoundOutcomes::of_all_jobs(store);
        let (holds, first_runs) = rayon::join(
            || grouped(&HoldRecordKind::ALL, &found.hold_keys, &found.holds),
            || grouped(&FirstRunKind::ALL, &found.run_keys, &found.first_runs),
        );
        RecordHistory {
            holds,
            first_runs,
            hold_lengths: HoldLengths::new(found.lengths_ms),
        }
    }

    /// What had become of holds like this one of `job`.
    pub(super) fn when_asked(&self, job: &StoredJob<'_>, asked: &AskedHold) -> HoldRecords {
        let half_life_ms = self.hold_lengths.mean_ms(asked.asked_ms);
        let record = |lists: KeyLists<'_>| {
            let until = |times_ms: &[i64]| times_ms.partition_point(|&ms| ms <= asked.asked_ms);
            OutcomeRecord::when_asked(
                until(lists.held),
                until(lists.released),
                lists.decided,
                asked.asked_ms,
                half_life_ms,
            )
        };
        let hold = asked.cycle.hold;
        let place = place_before(job, hold);
        HoldRecords {
            holds: HoldRecordKind::ALL.map(|kind| {
                let key = kind.key(job, hold, place);
                record(self.holds[kind as usize].lists(key))
            }),
            first_runs: FirstRunKind::ALL
                .map(|kind| record(self.first_runs[kind as usize].lists(kind.key(job, place)))),
            half_life_ms,
        }
    }

    /// What happened to all holds of the pool.
    pub(super) fn of_pool(&self) -> KeyLists<'_> {
        self.holds[HoldRecordKind::Pool as usize].lists(POOL_KEY)
    }

    /// What happened to the holds for the same reason as event `hold` of `job`.
    pub(super) fn of_reason(&self, job: &StoredJob<'_>, hold: usize) -> KeyLists<'_> {
        let kind = HoldRecordKind::Reason;
        self.holds[kind as usize].lists(kind.key(job, hold, NO_PLACE))
    }
}

/// What happened, by each of `kinds`; `keys` are those of each kind.
fn grouped<K>(kinds: &[K], keys: &[Vec<u64>], timed: &TimedOutcomes) -> Vec<KeyedOutcomes> {
    debug_assert_eq!(kinds.len(), keys.len());
    keys.par_iter()
        .map(|keys| KeyedOutcomes::new(keys.iter().copied(), timed))
        .collect()
}

/// Holds and first runs as they are found.
#[derive(Debug, Default)]
struct FoundOutcomes {
    holds: TimedOutcomes,
    /// The keys of each kind.
    hold_keys: Vec<Vec<u64>>,
    first_runs: TimedOutcomes,
    run_keys: Vec<Vec<u64>>,
    /// When each release was, and how long the hold before it had lasted.
    lengths_ms: Vec<(i64, i64)>,
}

impl FoundOutcomes {
    fn of_all_jobs(store: &EventStore) -> FoundOutcomes {
        let jobs = store.jobs();
        let cuts = cut_between_clusters(&jobs, AT_ONCE);
        let parts: Vec<FoundOutcomes> = cuts
            .par_windows(2)
            .map(|cut| {
                let jobs: Vec<StoredJob<'_>> = (cut[0]..cut[1]).map(|at| jobs.get(at)).collect();
                let mut found = FoundOutcomes::empty();
                for cluster in jobs.chunk_by(|a, b| cluster_of(a) == cluster_of(b)) {
                    found.add_cluster(store, cluster);
                }
                found
            })
            .collect();

        let mut all = FoundOutcomes::empty();
        for part in parts {
            all.append(part);
        }
        all.holds.sort();
        all.first_runs.sort();
        all.lengths_ms.par_sort_unstable();
        all
    }

    fn empty() -> FoundOutcomes {
        FoundOutcomes {
            hold_keys: vec![Vec::new(); HoldRecordKind::ALL.len()],
            run_keys: vec![Vec::new(); FirstRunKind::ALL.len()],
            ..FoundOutcomes::default()
        }
    }

    fn add_cluster(&mut self, store: &EventStore, jobs: &[StoredJob<'_>]) {
        let has_hold = jobs.iter().any(|job| job.history.number.contains(&HELD));
        for job in jobs {
            self.add_first_run(job, has_hold);
            for cycle in hold_cycles(job.history, LabelKind::Next, store.gaps(job.ap)) {
                self.add_hold(job, &cycle);
            }
        }
    }

    fn add_hold(&mut self, job: &StoredJob<'_>, cycle: &HoldCycle) {
        let index = self.hold_keys[0].len() as u32;
        let place = place_before(job, cycle.hold);
        for (kind, keys) in HoldRecordKind::ALL.iter().zip(&mut self.hold_keys) {
            keys.push(kind.key(job, cycle.hold, place));
        }

        let hold_ms = job.history.time_ms[cycle.hold];
        self.holds.held.push((hold_ms, index));
        if let Some(end) = cycle.end.filter(|_| cycle.is_released(&job.history)) {
            let release_ms = job.history.time_ms[end];
            self.holds.released.push((release_ms, index));
            self.lengths_ms.push((release_ms, release_ms - hold_ms));
        }
        // An outcome is known when it is decided, which may be long after the hold.
        if let HoldOutcome::Label(is_success) = cycle.outcome {
            let decided_ms = job.history.time_ms[cycle.decided];
            let outcome = DatedOutcome::new(decided_ms, is_success);
            self.holds.decided.push((outcome, index));
        }
    }

    /// Adds how a job terminated that had not been held before, if it did. Nobody asks about
    /// clusters without a hold, and they are many.
    fn add_first_run(&mut self, job: &StoredJob<'_>, cluster_has_hold: bool) {
        let history = &job.history;
        let end = (history.number.iter()).position(|number| matches!(*number, TERMINATED | HELD));
        let Some(end) = end.filter(|&end| history.number[end] == TERMINATED) else {
            return;
        };

        let start = (history.number[..end].iter()).rposition(|&number| number == EXECUTE);
        let place = start.map_or(NO_PLACE, |start| job.execution_place(start));
        let index = self.run_keys[0].len() as u32;
        for (kind, keys) in FirstRunKind::ALL.iter().zip(&mut self.run_keys) {
            let is_asked = cluster_has_hold || *kind != FirstRunKind::Cluster;
            let key = kind.key(job, place);
            keys.push(if is_asked { key } else { NO_KEY });
        }
        let is_success = history.normal[end] == 1 && history.value[end] == 0;
        let outcome = DatedOutcome::new(history.time_ms[end], is_success);
        self.first_runs.decided.push((outcome, index));
    }

    /// Adds those of later jobs.
    fn append(&mut self, later: FoundOutcomes) {
        let holds = self.hold_keys[0].len() as u32;
        append_moved(&mut self.holds.held, later.holds.held, holds);
        append_moved(&mut self.holds.released, later.holds.released, holds);
        append_moved(&mut self.holds.decided, later.holds.decided, holds);
        let runs = self.run_keys[0].len() as u32;
        append_moved(&mut self.first_runs.decided, later.first_runs.decided, runs);

        for (keys, mut later) in self.hold_keys.iter_mut().zip(later.hold_keys) {
            keys.append(&mut later);
        }
        for (keys, mut later) in self.run_keys.iter_mut().zip(later.run_keys) {
            keys.append(&mut later);
        }
        self.lengths_ms.extend(later.lengths_ms);
    }
}

/// Adds `later`, whose indices begin at `first`.
fn append_moved<T>(all: &mut Vec<(T, u32)>, later: Vec<(T, u32)>, first: u32) {
    all.extend(
        later
            .into_iter()
            .map(|(moment, index)| (moment, index + first)),
    );
}

/// How long holds last, by what is known at a moment.
#[derive(Debug)]
struct HoldLengths {
    release_ms: Vec<i64>,
    /// The sum of the logarithms of all lengths so far, in seconds and one more.
    log_sums: Vec<f64>,
}

/// Of holds of which none was released yet.
const UNKNOWN_LENGTH_MS: f32 = 60_000.0;

impl HoldLengths {
    /// `lengths_ms` are in order of their releases.
    fn new(lengths_ms: Vec<(i64, i64)>) -> HoldLengths {
        let mut sum = 0.0;
        let mut lengths = HoldLengths {
            release_ms: Vec::with_capacity(lengths_ms.len()),
            log_sums: Vec::with_capacity(lengths_ms.len()),
        };
        for (release_ms, length_ms) in lengths_ms {
            sum += (length_ms.max(0) as f64 / 1000.0).ln_1p();
            lengths.release_ms.push(release_ms);
            lengths.log_sums.push(sum);
        }
        lengths
    }

    /// The geometric mean of those that had ended by `asked_ms`, a second at least.
    fn mean_ms(&self, asked_ms: i64) -> f32 {
        let known = self.release_ms.partition_point(|&ms| ms <= asked_ms);
        let Some(last) = known.checked_sub(1) else {
            return UNKNOWN_LENGTH_MS;
        };
        let mean_s = (self.log_sums[last] / known as f64).exp_m1();
        (mean_s.max(1.0) * 1000.0) as f32
    }
}
