//! Outcome statistics of past holds and first runs, as known at prediction time.
//!
//! Holds and runs are grouped by what they share with the queried hold, such as the owner or the
//! machine.

use rayon::prelude::*;
use twox_hash::XxHash3_64;

use super::keyed_outcomes::{
    KeyGroups, KeyedOutcomes, LatestReleases, NO_GROUP, NO_KEY, PassedRelease, TimedOutcomes,
};
use super::last_run::execution_host_before;
use super::next_run::next_run_outcome;
use super::outcome_record::{DatedOutcome, OutcomeRecord};
use super::recent_events::RecentCounts;
use crate::cycles::QueriedHold;
use crate::cycles::{HoldOutcome, hold_cycles};
use htcondor_eventlog::{EXECUTE, ExecutionHost, HELD, SubmissionNames, TERMINATED};
use poolcast_base::parallel::map_items;
use poolcast_config::LabelKind;
use poolcast_events::{EventStore, LogGap, StoredJob, StoredJobs};

/// The key by which holds are grouped into one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HoldRecordKind {
    /// All holds.
    Pool,
    /// Code and subcode.
    Code,
    /// The owner, code and subcode.
    Owner,
    /// The owner and the name of the batch; for a node of a DAG also the node's name without
    /// numbers.
    Batch,
    /// The cluster.
    Cluster,
    /// The hold reason without the parts that vary from job to job, and code and subcode.
    Reason,
    /// The machine of the last run.
    Host,
    /// The slot of that machine.
    Slot,
}

impl HoldRecordKind {
    /// All kinds, each after its parent.
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

    /// The name of the kind in column names.
    pub(crate) fn name(self) -> &'static str {
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

    /// The parent kind: its rate is the prior for a small record of this kind.
    pub(crate) fn parent(self) -> Option<HoldRecordKind> {
        match self {
            HoldRecordKind::Pool => None,
            HoldRecordKind::Code | HoldRecordKind::Host => Some(HoldRecordKind::Pool),
            HoldRecordKind::Owner | HoldRecordKind::Reason => Some(HoldRecordKind::Code),
            HoldRecordKind::Batch | HoldRecordKind::Cluster => Some(HoldRecordKind::Owner),
            HoldRecordKind::Slot => Some(HoldRecordKind::Host),
        }
    }

    /// Returns the key of the record of this kind to which hold `hold` belongs, given that the last
    /// run was in `place`. Returns [`NO_KEY`] if the key is unknown.
    pub(crate) fn key(self, job: &StoredJob<'_>, hold: usize, place: ExecutionHost) -> u64 {
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

const NO_PLACE: ExecutionHost = ExecutionHost { host: 0, slot: 0 };

/// The key by which first runs of jobs are grouped into one record.
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
    /// All kinds, each after its parent.
    pub const ALL: [FirstRunKind; 4] = [
        FirstRunKind::Pool,
        FirstRunKind::Batch,
        FirstRunKind::Cluster,
        FirstRunKind::Host,
    ];

    /// The name of the kind in column names.
    pub(crate) fn name(self) -> &'static str {
        match self {
            FirstRunKind::Pool => "pool",
            FirstRunKind::Batch => "batch",
            FirstRunKind::Cluster => "cluster",
            FirstRunKind::Host => "host",
        }
    }

    /// The parent kind.
    pub(crate) fn parent(self) -> Option<FirstRunKind> {
        match self {
            FirstRunKind::Pool => None,
            FirstRunKind::Batch | FirstRunKind::Cluster | FirstRunKind::Host => {
                Some(FirstRunKind::Pool)
            }
        }
    }

    /// Returns the kind of hold records that uses the same keys.
    fn of_holds(self) -> HoldRecordKind {
        match self {
            FirstRunKind::Pool => HoldRecordKind::Pool,
            FirstRunKind::Batch => HoldRecordKind::Batch,
            FirstRunKind::Cluster => HoldRecordKind::Cluster,
            FirstRunKind::Host => HoldRecordKind::Host,
        }
    }

    /// Returns the key of a first run of `job` in `place`, or [`NO_KEY`], like
    /// [`HoldRecordKind::key`].
    pub(crate) fn key(self, job: &StoredJob<'_>, place: ExecutionHost) -> u64 {
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

/// Returns the key of the holds with the code and subcode of hold `hold` whose last run was on the
/// machine of `place`, or [`NO_KEY`] if the machine is unknown.
fn host_code_key(job: &StoredJob<'_>, hold: usize, place: ExecutionHost) -> u64 {
    match place.host {
        0 => NO_KEY,
        host => hashed_key(
            host.into(),
            job.history.hold_code[hold],
            job.history.hold_subcode[hold],
        ),
    }
}

fn hashed_key(first: u64, second: i32, third: i32) -> u64 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&first.to_le_bytes());
    bytes[8..12].copy_from_slice(&second.to_le_bytes());
    bytes[12..].copy_from_slice(&third.to_le_bytes());
    XxHash3_64::oneshot(&bytes).max(POOL_KEY)
}

/// The outcomes of holds similar to one hold, and of first runs similar to its job's, at its
/// prediction time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HoldRecords {
    /// Records of holds, in the order of [`HoldRecordKind::ALL`].
    holds: [OutcomeRecord; HoldRecordKind::ALL.len()],
    /// Records of first runs, in the order of [`FirstRunKind::ALL`]. They count no holds and no
    /// releases.
    first_runs: [OutcomeRecord; FirstRunKind::ALL.len()],
    /// Records of next runs, in the order of [`NEXT_RUN_KINDS`]. They count no holds and no
    /// releases.
    next_runs: [OutcomeRecord; NEXT_RUN_KINDS.len()],
    /// Time since the latest release of a hold for the same reason after which the job is known to
    /// have got past the point of the hold, in ms.
    pub since_passed_for_reason_ms: Option<i64>,
    /// The same of holds with the same code and subcode on the same machine.
    pub since_passed_from_host_ms: Option<i64>,
    /// Half-life of the weight of an outcome, in ms: the geometric mean duration of the holds that
    /// were released by prediction time.
    ///
    /// A pool that resolves holds in minutes changes within minutes; one that takes days changes
    /// within days. Outcomes decided before the current faults began do not help to predict them.
    pub half_life_ms: f32,
}

impl HoldRecords {
    /// The record of the holds that share the key of `kind` with the queried hold.
    pub fn holds(&self, kind: HoldRecordKind) -> &OutcomeRecord {
        &self.holds[kind as usize]
    }

    /// The records of the next runs after similar holds, in the order of [`NEXT_RUN_KINDS`]. A
    /// success is a run that got past the point at which the run before the hold had ended.
    pub(crate) fn next_runs(&self) -> &[OutcomeRecord; NEXT_RUN_KINDS.len()] {
        &self.next_runs
    }

    /// The record of jobs that terminated before any hold. A success is a normal exit with code 0.
    pub fn first_runs(&self, kind: FirstRunKind) -> &OutcomeRecord {
        &self.first_runs[kind as usize]
    }
}

/// The keys by which next runs are grouped into records.
pub(crate) const NEXT_RUN_KINDS: [HoldRecordKind; 4] = [
    HoldRecordKind::Code,
    HoldRecordKind::Owner,
    HoldRecordKind::Cluster,
    HoldRecordKind::Reason,
];

/// The holds of a store and the first runs of its jobs, grouped by key.
#[derive(Debug)]
pub(crate) struct RecordHistory {
    /// The groups of the holds, in the order of [`HoldRecordKind::ALL`].
    groups: Vec<KeyGroups>,
    /// The outcomes of the holds, in the same order.
    holds: Vec<KeyedOutcomes>,
    /// The outcomes of the next runs, in the order of [`NEXT_RUN_KINDS`], by the groups of the
    /// holds.
    next_runs: Vec<KeyedOutcomes>,
    /// The outcomes of the first runs, in the order of [`FirstRunKind::ALL`], by the groups of the
    /// holds.
    first_runs: Vec<KeyedOutcomes>,
    /// The passed releases of the holds for each reason.
    passed_for_reason: LatestReleases,
    /// The groups of the holds by machine, code and subcode.
    host_codes: KeyGroups,
    /// Their passed releases.
    passed_from_host: LatestReleases,
    hold_lengths: HoldLengths,
}

impl RecordHistory {
    pub(crate) fn new(store: &EventStore) -> RecordHistory {
        let jobs = store.jobs();
        let found = RecordedHolds::from_all_jobs(store, &jobs);
        let (groups, holds): (Vec<KeyGroups>, Vec<KeyedOutcomes>) =
            map_items(&HoldRecordKind::ALL, |&kind| found.keyed(kind))
                .into_iter()
                .unzip();
        let next_runs = map_items(&NEXT_RUN_KINDS, |&kind| {
            found.keyed_next_runs(kind, &groups[kind as usize])
        });

        let reasons = &groups[HoldRecordKind::Reason as usize];
        let of_reason = found.groups_of(HoldRecordKind::Reason, reasons);
        let passed_for_reason = LatestReleases::new(reasons.count(), &of_reason, &found.passed);
        let (host_codes, of_host) = KeyGroups::from_keys(found.host_codes.iter().copied());
        let passed_from_host = LatestReleases::new(host_codes.count(), &of_host, &found.passed);

        let runs = RecordedRuns::from_all_jobs(&jobs, &groups);
        let first_runs = map_items(&FirstRunKind::ALL, |&kind| runs.keyed(kind, &groups));
        RecordHistory {
            groups,
            holds,
            next_runs,
            first_runs,
            passed_for_reason,
            host_codes,
            passed_from_host,
            hold_lengths: HoldLengths::new(found.lengths_ms),
        }
    }

    /// Returns the records for this hold of `job`, as known at its prediction time.
    ///
    /// Jobs are often released together, so the hold of `last` often has the same prediction time.
    /// Records of groups that both holds share are then copied from `last` and not computed again.
    pub(crate) fn at_prediction_time(
        &self,
        job: &StoredJob<'_>,
        asked: &QueriedHold,
        frame_ms: i64,
        last: Option<&PredictionRecords>,
    ) -> PredictionRecords {
        let asked_ms = asked.asked_ms;
        let hold = asked.cycle.hold;
        let place = execution_host_before(job, hold);
        let groups = HoldRecordKind::ALL.map(|kind| {
            let key = kind.key(job, hold, place);
            self.groups[kind as usize].group(key)
        });

        let last = last.filter(|last| last.asked_ms == asked_ms);
        let same = |kind: HoldRecordKind| {
            last.filter(|last| last.groups[kind as usize] == groups[kind as usize])
        };
        let recent = |kind: HoldRecordKind| {
            let lists = self.holds[kind as usize].lists(groups[kind as usize]);
            RecentCounts::new(lists.until(asked_ms), asked_ms, frame_ms)
        };
        let mut records = self.records(&groups, asked_ms, last);
        let host = self.host_codes.group(host_code_key(job, hold, place));
        let released_ms = self.passed_from_host.latest_ms(host, asked_ms);
        records.since_passed_from_host_ms = released_ms.map(|released_ms| asked_ms - released_ms);
        PredictionRecords {
            records,
            recent_in_pool: match same(HoldRecordKind::Pool) {
                Some(last) => last.recent_in_pool,
                None => recent(HoldRecordKind::Pool),
            },
            recent_for_reason: match same(HoldRecordKind::Reason) {
                Some(last) => last.recent_for_reason,
                None => recent(HoldRecordKind::Reason),
            },
            asked_ms,
            groups,
        }
    }

    /// Computes the records of a hold of `groups` at `asked_ms`, without the releases from the same
    /// machine. If `last` is given, it has the same prediction time.
    fn records(
        &self,
        groups: &HoldGroups,
        asked_ms: i64,
        last: Option<&PredictionRecords>,
    ) -> HoldRecords {
        let half_life_ms = match last {
            Some(last) => last.records.half_life_ms,
            None => self.hold_lengths.mean_ms(asked_ms),
        };
        let same = |kind: HoldRecordKind| {
            let last = last.filter(|last| last.groups[kind as usize] == groups[kind as usize]);
            last.map(|last| &last.records)
        };
        let record = |keyed: &KeyedOutcomes, kind: HoldRecordKind| {
            let known = keyed.lists(groups[kind as usize]).until(asked_ms);
            OutcomeRecord::new(known, asked_ms, half_life_ms)
        };

        let reason = groups[HoldRecordKind::Reason as usize];
        let released_ms = self.passed_for_reason.latest_ms(reason, asked_ms);
        HoldRecords {
            since_passed_for_reason_ms: released_ms.map(|released_ms| asked_ms - released_ms),
            since_passed_from_host_ms: None,
            holds: HoldRecordKind::ALL.map(|kind| match same(kind) {
                Some(last) => last.holds[kind as usize],
                None => record(&self.holds[kind as usize], kind),
            }),
            first_runs: FirstRunKind::ALL.map(|kind| match same(kind.of_holds()) {
                Some(last) => last.first_runs[kind as usize],
                None => record(&self.first_runs[kind as usize], kind.of_holds()),
            }),
            next_runs: std::array::from_fn(|place| match same(NEXT_RUN_KINDS[place]) {
                Some(last) => last.next_runs[place],
                None => record(&self.next_runs[place], NEXT_RUN_KINDS[place]),
            }),
            half_life_ms,
        }
    }
}

/// The group of a hold for each kind of [`HoldRecordKind::ALL`].
type HoldGroups = [Option<u32>; HoldRecordKind::ALL.len()];

/// The records for one hold at its prediction time.
#[derive(Debug)]
pub(crate) struct PredictionRecords {
    pub(crate) records: HoldRecords,
    /// Recent events of all holds.
    pub(crate) recent_in_pool: RecentCounts,
    /// Recent events of the holds with the same reason.
    pub(crate) recent_for_reason: RecentCounts,
    asked_ms: i64,
    groups: HoldGroups,
}

/// Holds collected from the store, before they are grouped.
#[derive(Debug)]
struct RecordedHolds {
    /// The keys of each hold, in the order of [`HoldRecordKind::ALL`].
    keys: Vec<[u64; HoldRecordKind::ALL.len()]>,
    /// The keys of each hold's machine, code and subcode.
    host_codes: Vec<u64>,
    timed: TimedOutcomes,
    /// For each decided next run: whether it got past the point of the hold, and the index of the
    /// hold.
    next_runs: Vec<(DatedOutcome, u32)>,
    /// The releases after which the job got past the point of the hold, with the index of the hold.
    passed: Vec<(PassedRelease, u32)>,
    /// The time of each release, and the duration of the released hold.
    lengths_ms: Vec<(i64, i64)>,
}

impl RecordedHolds {
    /// Returns an empty list with capacity for `holds` holds.
    ///
    /// A vector that grows touches its memory several times as often, and the first touch of a page
    /// costs more than the work done here.
    fn with_capacity(holds: usize) -> RecordedHolds {
        RecordedHolds {
            keys: Vec::with_capacity(holds),
            host_codes: Vec::with_capacity(holds),
            timed: TimedOutcomes {
                held: Vec::with_capacity(holds),
                released: Vec::with_capacity(holds),
                decided: Vec::with_capacity(holds),
            },
            next_runs: Vec::with_capacity(holds),
            passed: Vec::with_capacity(holds),
            lengths_ms: Vec::with_capacity(holds),
        }
    }

    fn from_all_jobs(store: &EventStore, jobs: &StoredJobs<'_>) -> RecordedHolds {
        let parts = jobs.map_ranges(|range| {
            let held: Vec<usize> = range.filter(|&index| jobs.was_held(index)).collect();
            // Held jobs have fewer than two holds on average.
            let mut found = RecordedHolds::with_capacity(2 * held.len());
            for index in held {
                let job = jobs.get(index);
                found.add_job(&job, store.gaps(job.ap));
            }
            found
        });

        let mut all = RecordedHolds::with_capacity(parts.iter().map(|part| part.keys.len()).sum());
        for part in parts {
            all.append(part);
        }
        all.lengths_ms.par_sort_unstable();
        all
    }

    fn add_job(&mut self, job: &StoredJob<'_>, gaps: &[LogGap]) {
        for cycle in hold_cycles(job.history, LabelKind::Next, gaps) {
            let index = self.keys.len() as u32;
            let place = execution_host_before(job, cycle.hold);
            self.keys
                .push(HoldRecordKind::ALL.map(|kind| kind.key(job, cycle.hold, place)));
            self.host_codes.push(host_code_key(job, cycle.hold, place));

            let hold_ms = job.history.time_ms[cycle.hold];
            self.timed.held.push((hold_ms, index));
            if let Some(end) = cycle.end.filter(|_| cycle.is_released(&job.history)) {
                let release_ms = job.history.time_ms[end];
                self.timed.released.push((release_ms, index));
                self.lengths_ms.push((release_ms, release_ms - hold_ms));
            }
            // An outcome is known from when it was decided, which may be long after the hold.
            if let HoldOutcome::Label(is_success) = cycle.outcome {
                let decided_ms = job.history.time_ms[cycle.decided];
                let outcome = DatedOutcome::new(decided_ms, is_success);
                self.timed.decided.push((outcome, index));
            }
            let is_seen = |outcome: &DatedOutcome| {
                let decided_ms = outcome.decided_ms();
                !(gaps.iter()).any(|gap| gap.is_between(hold_ms, decided_ms))
            };
            if let Some(outcome) = next_run_outcome(&job.history, &cycle).filter(is_seen) {
                self.next_runs.push((outcome, index));
                if let Some(end) = cycle.end.filter(|_| outcome.is_success()) {
                    let release = PassedRelease {
                        known_ms: outcome.decided_ms(),
                        released_ms: job.history.time_ms[end],
                    };
                    self.passed.push((release, index));
                }
            }
        }
    }

    /// Appends the holds of later jobs.
    fn append(&mut self, mut later: RecordedHolds) {
        let first = self.keys.len() as u32;
        self.keys.append(&mut later.keys);
        self.host_codes.append(&mut later.host_codes);
        append_with_offset(&mut self.timed.held, later.timed.held, first);
        append_with_offset(&mut self.timed.released, later.timed.released, first);
        append_with_offset(&mut self.timed.decided, later.timed.decided, first);
        append_with_offset(&mut self.next_runs, later.next_runs, first);
        append_with_offset(&mut self.passed, later.passed, first);
        self.lengths_ms.append(&mut later.lengths_ms);
    }

    /// Groups the holds by `kind`; returns the groups and their outcomes.
    fn keyed(&self, kind: HoldRecordKind) -> (KeyGroups, KeyedOutcomes) {
        let (groups, group_of) =
            KeyGroups::from_keys(self.keys.iter().map(|keys| keys[kind as usize]));
        let keyed = KeyedOutcomes::new(groups.count(), &group_of, &self.timed);
        (groups, keyed)
    }

    /// Groups the outcomes of the next runs by the `groups` of `kind`.
    fn keyed_next_runs(&self, kind: HoldRecordKind, groups: &KeyGroups) -> KeyedOutcomes {
        let group_of = self.groups_of(kind, groups);
        KeyedOutcomes::from_keyed_outcomes(groups.count(), &group_of, &self.next_runs)
    }

    /// The group of each hold among the `groups` of `kind`.
    fn groups_of(&self, kind: HoldRecordKind, groups: &KeyGroups) -> Vec<u32> {
        (self.keys.iter())
            .map(|keys| groups.group(keys[kind as usize]).unwrap_or(NO_GROUP))
            .collect()
    }
}

/// Appends `later` to `all`, and adds `first` to its indices.
fn append_with_offset<T>(all: &mut Vec<(T, u32)>, later: Vec<(T, u32)>, first: u32) {
    all.extend(
        later
            .into_iter()
            .map(|(moment, index)| (moment, index + first)),
    );
}

/// First runs collected from the store: terminations of jobs that had not been held before.
#[derive(Debug)]
struct RecordedRuns {
    decided: Vec<(DatedOutcome, u32)>,
    /// The groups of each run, in the order of [`FirstRunKind::ALL`]; [`NO_GROUP`] if no hold has
    /// the key of the run. Such runs are many, and no prediction uses them.
    groups: Vec<[u32; FirstRunKind::ALL.len()]>,
}

impl RecordedRuns {
    fn with_capacity(count: usize) -> RecordedRuns {
        RecordedRuns {
            decided: Vec::with_capacity(count),
            groups: Vec::with_capacity(count),
        }
    }

    /// Collects the first runs of all jobs, by the `groups` of the holds.
    fn from_all_jobs(jobs: &StoredJobs<'_>, groups: &[KeyGroups]) -> RecordedRuns {
        let parts = jobs.map_ranges(|range| {
            let mut found = RecordedRuns::with_capacity(range.len());
            for index in range {
                if let Some(end) = first_termination(jobs.numbers(index)) {
                    found.add(&jobs.get(index), end, groups);
                }
            }
            found
        });

        let count = parts.iter().map(|part| part.groups.len()).sum();
        let mut all = RecordedRuns::with_capacity(count);
        for mut part in parts {
            let first = all.groups.len() as u32;
            append_with_offset(&mut all.decided, part.decided, first);
            all.groups.append(&mut part.groups);
        }
        all
    }

    /// Adds the run of `job` that ended with its event `end`.
    fn add(&mut self, job: &StoredJob<'_>, end: usize, groups: &[KeyGroups]) {
        let history = &job.history;
        let start = (history.number[..end].iter()).rposition(|&number| number == EXECUTE);
        let place = start.map_or(NO_PLACE, |start| job.execution_place(start));
        let is_success = history.normal[end] == 1 && history.value[end] == 0;
        let outcome = DatedOutcome::new(history.time_ms[end], is_success);

        self.decided.push((outcome, self.groups.len() as u32));
        self.groups.push(FirstRunKind::ALL.map(|kind| {
            let group = groups[kind.of_holds() as usize].group(kind.key(job, place));
            group.unwrap_or(NO_GROUP)
        }));
    }

    /// Groups the outcomes of the runs by `kind`.
    fn keyed(&self, kind: FirstRunKind, groups: &[KeyGroups]) -> KeyedOutcomes {
        let group_of: Vec<u32> = (self.groups.iter())
            .map(|groups| groups[kind as usize])
            .collect();
        let groups = groups[kind.of_holds() as usize].count();
        KeyedOutcomes::from_keyed_outcomes(groups, &group_of, &self.decided)
    }
}

/// Returns the index of a job's first event 005, or `None` if a hold comes before it.
fn first_termination(numbers: &[u16]) -> Option<usize> {
    let end = (numbers.iter()).position(|number| matches!(*number, TERMINATED | HELD))?;
    (numbers[end] == TERMINATED).then_some(end)
}

/// The durations of released holds, as known at any prediction time.
#[derive(Debug)]
pub struct HoldLengths {
    release_ms: Vec<i64>,
    /// Running sums of ln(1 + duration in seconds), in order of the releases.
    log_sums: Vec<f64>,
}

/// Mean duration, in ms, before the first release.
const UNKNOWN_LENGTH_MS: f32 = 60_000.0;

/// Weight of that duration in [`HoldLengths::shrunk_mean_ms`], in holds.
const PRIOR_HOLDS: f64 = 4.0;

impl HoldLengths {
    /// Builds the sums from pairs of release time and duration in ms, sorted by release time.
    pub fn new(lengths_ms: Vec<(i64, i64)>) -> HoldLengths {
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

    /// Returns the geometric mean duration, in ms, of the holds released by `asked_ms`; at least
    /// one second.
    pub fn mean_ms(&self, asked_ms: i64) -> f32 {
        let known = self.release_ms.partition_point(|&ms| ms <= asked_ms);
        let Some(last) = known.checked_sub(1) else {
            return UNKNOWN_LENGTH_MS;
        };
        let mean_s = (self.log_sums[last] / known as f64).exp_m1();
        (mean_s.max(1.0) * 1000.0) as f32
    }

    /// Like [`HoldLengths::mean_ms`], but with a few holds of a minute among them. So the mean of
    /// the first releases says little.
    pub(crate) fn shrunk_mean_ms(&self, asked_ms: i64) -> f32 {
        let known = self.release_ms.partition_point(|&ms| ms <= asked_ms);
        let sum = known.checked_sub(1).map_or(0.0, |last| self.log_sums[last]);
        let prior = PRIOR_HOLDS * f64::from(UNKNOWN_LENGTH_MS / 1000.0).ln_1p();
        let mean_s = ((sum + prior) / (known as f64 + PRIOR_HOLDS)).exp_m1();
        (mean_s.max(1.0) * 1000.0) as f32
    }
}
