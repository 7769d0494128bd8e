//! Static features of a hold: named numbers near 1 for a model, by feature group.

use super::hold_records::{FirstRunKind, HoldRecordKind, HoldRecords, NEXT_RUN_KINDS};
use super::known_facts::KnownFacts;
use super::log_count::log_count;
use super::outcome_record::{
    FIRST_RUN_COLUMNS, HOLD_RECORD_COLUMNS, NEXT_RUN_COLUMNS, RatedRecord,
};
use super::recent_events::WINDOW_FRAMES;
use super::subcode_family::subcode_family;
use poolcast_config::FeatureGroup;

/// Columns for hold codes: one for each of the codes 0 to 49, and one for all others.
const HOLD_CODES: usize = 51;

/// Names of the subcode families, in the order of [`super::subcode_family::SubcodeFamily`].
const FAMILY_NAMES: [&str; 10] = [
    "none",
    "missing",
    "permission",
    "disk",
    "timeout",
    "network",
    "plugin",
    "memory",
    "cpu",
    "other",
];

/// A column: its name, and the function that computes its value.
type FactColumn = (&'static str, fn(&KnownFacts) -> f32);

const HOLD_COLUMNS: [FactColumn; 3] = [
    ("earlier_holds", |facts| log_count(facts.earlier_holds)),
    ("since_submit", |facts| log_size(facts.since_submit_s)),
    ("held_for", |facts| log_size(facts.held_for_s)),
];

const REQUEST_COLUMNS: [FactColumn; 4] = [
    ("request_cpus", |facts| log_count(facts.request.cpus.into())),
    ("request_gpus", |facts| log_count(facts.request.gpus.into())),
    ("request_memory", |facts| log_size(facts.request.memory_mb)),
    ("request_disk", |facts| log_size(facts.request.disk_mb)),
];

const CLUSTER_COLUMNS: [FactColumn; 6] = [
    ("cluster_idle", |facts| {
        cluster_share(facts, facts.cluster.idle)
    }),
    ("cluster_running", |facts| {
        cluster_share(facts, facts.cluster.running)
    }),
    ("cluster_held", |facts| {
        cluster_share(facts, facts.cluster.held)
    }),
    ("cluster_done", |facts| {
        cluster_share(facts, facts.cluster.done)
    }),
    ("cluster_removed", |facts| {
        cluster_share(facts, facts.cluster.removed)
    }),
    ("cluster_jobs", |facts| {
        log_count(facts.cluster.jobs()) / 4.0
    }),
];

const RUN_COLUMNS: [FactColumn; 12] = [
    ("run_starts", |facts| log_count(facts.last_run.starts)),
    ("run_began", |facts| flag(facts.last_run.wall_s.is_some())),
    ("run_wall", |facts| log_known(facts.last_run.wall_s)),
    ("run_queue_wait", |facts| {
        log_size(facts.last_run.queue_wait_s)
    }),
    ("run_execute", |facts| {
        log_known(facts.last_run.usage.execute_s)
    }),
    ("run_busy", |facts| log_known(facts.last_run.usage.busy_s)),
    ("run_sent", |facts| log_known(facts.last_run.usage.sent_kib)),
    ("run_received", |facts| {
        log_known(facts.last_run.usage.received_kib)
    }),
    ("run_memory_known", |facts| {
        flag(memory_ratio(facts).is_some())
    }),
    ("run_memory", |facts| memory_ratio(facts).unwrap_or(0.0)),
    ("run_exit_known", |facts| {
        flag(facts.last_run.exit_code.is_some())
    }),
    ("run_exit_code", |facts| {
        log_count(facts.last_run.exit_code.unwrap_or(0)) / 4.0
    }),
];

/// Columns for [`WINDOW_FRAMES`], one per window: the start of their names, and the function that
/// returns the counts.
type RecentColumn = (&'static str, fn(&KnownFacts) -> [u32; WINDOW_FRAMES.len()]);

const RECENT_COLUMNS: [RecentColumn; 7] = [
    ("pool_holds", |facts| facts.recent_in_pool.holds),
    ("pool_releases", |facts| facts.recent_in_pool.releases),
    ("pool_successes", |facts| facts.recent_in_pool.successes),
    ("pool_submissions", |facts| facts.recent_submissions),
    ("reason_holds", |facts| facts.recent_for_reason.holds),
    ("reason_releases", |facts| facts.recent_for_reason.releases),
    ("reason_successes", |facts| {
        facts.recent_for_reason.successes
    }),
];

/// Returns the names of the static features of `groups`, `[s]`.
pub fn static_names(groups: &[FeatureGroup]) -> Vec<String> {
    let mut names = Vec::new();
    for group in groups {
        add_names(*group, &mut names);
    }
    names
}

/// Returns `s`, the number of static features of `groups`.
pub fn static_feature_count(groups: &[FeatureGroup]) -> usize {
    static_names(groups).len()
}

fn add_names(group: FeatureGroup, names: &mut Vec<String>) {
    let add_facts = |names: &mut Vec<String>, columns: &[FactColumn]| {
        names.extend(columns.iter().map(|(name, _)| (*name).to_owned()));
    };
    match FeatureContent::of(group) {
        FeatureContent::Hold => {
            names.extend((0..HOLD_CODES - 1).map(|code| format!("hold_code_{code}")));
            names.push("hold_code_other".to_owned());
            names.extend(FAMILY_NAMES.map(|family| format!("subcode_{family}")));
            add_facts(names, &HOLD_COLUMNS);
        }
        FeatureContent::Facts(columns) => add_facts(names, columns),
        FeatureContent::Record(kind) => {
            let columns = HOLD_RECORD_COLUMNS.iter();
            names.extend(columns.map(|(column, _)| format!("record_{}_{column}", kind.name())));
        }
        FeatureContent::FirstRuns => {
            for kind in FirstRunKind::ALL {
                let columns = FIRST_RUN_COLUMNS.iter();
                names.extend(columns.map(|(column, _)| format!("first_{}_{column}", kind.name())));
            }
        }
        FeatureContent::NextRuns => {
            for kind in NEXT_RUN_KINDS {
                let columns = NEXT_RUN_COLUMNS.iter();
                names.extend(columns.map(|(column, _)| format!("next_{}_{column}", kind.name())));
            }
        }
        FeatureContent::RecentEvents => {
            for (counted, _) in RECENT_COLUMNS {
                names.extend(WINDOW_FRAMES.map(|frames| format!("{counted}_{frames}")));
            }
        }
    }
}

/// The content of a feature group.
enum FeatureContent {
    Hold,
    Facts(&'static [FactColumn]),
    Record(HoldRecordKind),
    FirstRuns,
    NextRuns,
    RecentEvents,
}

impl FeatureContent {
    fn of(group: FeatureGroup) -> FeatureContent {
        match group {
            FeatureGroup::Hold => FeatureContent::Hold,
            FeatureGroup::Request => FeatureContent::Facts(&REQUEST_COLUMNS),
            FeatureGroup::RecordReason => FeatureContent::Record(HoldRecordKind::Reason),
            FeatureGroup::RecordCluster => FeatureContent::Record(HoldRecordKind::Cluster),
            FeatureGroup::RecordBatch => FeatureContent::Record(HoldRecordKind::Batch),
            FeatureGroup::RecordOwner => FeatureContent::Record(HoldRecordKind::Owner),
            FeatureGroup::RecordCode => FeatureContent::Record(HoldRecordKind::Code),
            FeatureGroup::RecordPool => FeatureContent::Record(HoldRecordKind::Pool),
            FeatureGroup::RecordHost => FeatureContent::Record(HoldRecordKind::Host),
            FeatureGroup::RecordSlot => FeatureContent::Record(HoldRecordKind::Slot),
            FeatureGroup::FirstRuns => FeatureContent::FirstRuns,
            FeatureGroup::NextRuns => FeatureContent::NextRuns,
            FeatureGroup::ClusterState => FeatureContent::Facts(&CLUSTER_COLUMNS),
            FeatureGroup::RecentEvents => FeatureContent::RecentEvents,
            FeatureGroup::LastRun => FeatureContent::Facts(&RUN_COLUMNS),
        }
    }
}

impl KnownFacts {
    /// Appends the facts as numbers near 1, `[s]`, in the order of [`static_names`].
    ///
    /// Codes are one-hot. Counts, times and sizes are logarithms. Rates are from -1 to 1, and
    /// shrink to the rate of the parent record if they are based on few cases. Unknown values are
    /// 0.
    pub fn add_static_features(&self, groups: &[FeatureGroup], statics: &mut Vec<f32>) {
        let rates = RecordRates::new(&self.records);
        for group in groups {
            match FeatureContent::of(*group) {
                FeatureContent::Hold => self.add_hold(statics),
                FeatureContent::Facts(columns) => {
                    statics.extend(columns.iter().map(|(_, value)| value(self)));
                }
                FeatureContent::Record(kind) => {
                    let rated = rates.of_holds(&self.records, kind);
                    statics.extend(HOLD_RECORD_COLUMNS.iter().map(|(_, value)| value(&rated)));
                }
                FeatureContent::FirstRuns => {
                    for kind in FirstRunKind::ALL {
                        let rated = rates.of_first_runs(&self.records, kind);
                        statics.extend(FIRST_RUN_COLUMNS.iter().map(|(_, value)| value(&rated)));
                    }
                }
                FeatureContent::NextRuns => {
                    for record in self.records.next_runs() {
                        let rated = RatedRecord {
                            record,
                            rate: UNKNOWN_RATE,
                            half_life_ms: self.records.half_life_ms,
                        };
                        statics.extend(NEXT_RUN_COLUMNS.iter().map(|(_, value)| value(&rated)));
                    }
                }
                FeatureContent::RecentEvents => {
                    for (_, counts) in RECENT_COLUMNS {
                        statics.extend(counts(self).map(|count| log_count(count) / 4.0));
                    }
                }
            }
        }
    }

    fn add_hold(&self, statics: &mut Vec<f32>) {
        let first = statics.len();
        statics.resize(first + HOLD_CODES + FAMILY_NAMES.len(), 0.0);
        let hold_code = usize::try_from(self.hold_code).unwrap_or(usize::MAX);
        statics[first + hold_code.min(HOLD_CODES - 1)] = 1.0;
        let family = subcode_family(self.hold_code, self.hold_subcode) as usize;
        statics[first + HOLD_CODES + family] = 1.0;
        statics.extend(HOLD_COLUMNS.iter().map(|(_, value)| value(self)));
    }
}

/// The success rates of all records of a hold, each shrunk to the rate of its parent.
struct RecordRates {
    holds: [f32; HoldRecordKind::ALL.len()],
    first_runs: [f32; FirstRunKind::ALL.len()],
}

/// Prior success rate of the whole pool.
const UNKNOWN_RATE: f32 = 0.5;

impl RecordRates {
    fn new(records: &HoldRecords) -> RecordRates {
        let mut rates = RecordRates {
            holds: [UNKNOWN_RATE; HoldRecordKind::ALL.len()],
            first_runs: [UNKNOWN_RATE; FirstRunKind::ALL.len()],
        };
        for kind in HoldRecordKind::ALL {
            let parent = kind.parent().map(|parent| rates.holds[parent as usize]);
            let prior = parent.unwrap_or(UNKNOWN_RATE);
            rates.holds[kind as usize] = records.holds(kind).success_rate(prior);
        }
        for kind in FirstRunKind::ALL {
            let parent = kind
                .parent()
                .map(|parent| rates.first_runs[parent as usize]);
            let prior = parent.unwrap_or(UNKNOWN_RATE);
            rates.first_runs[kind as usize] = records.first_runs(kind).success_rate(prior);
        }
        rates
    }

    fn of_holds<'a>(&self, records: &'a HoldRecords, kind: HoldRecordKind) -> RatedRecord<'a> {
        RatedRecord {
            record: records.holds(kind),
            rate: self.holds[kind as usize],
            half_life_ms: records.half_life_ms,
        }
    }

    fn of_first_runs<'a>(&self, records: &'a HoldRecords, kind: FirstRunKind) -> RatedRecord<'a> {
        RatedRecord {
            record: records.first_runs(kind),
            rate: self.first_runs[kind as usize],
            half_life_ms: records.half_life_ms,
        }
    }
}

/// Returns log2 of the memory that the run used over the memory that the job requested, clamped to
/// -2 to 2. Returns `None` if either is unknown.
fn memory_ratio(facts: &KnownFacts) -> Option<f32> {
    let used_mb = facts.last_run.memory_mb?;
    let requested_mb = facts.request.memory_mb;
    (requested_mb > 0).then(|| {
        let ratio = (used_mb as f32 + 1.0) / (requested_mb as f32 + 1.0);
        ratio.log2().clamp(-2.0, 2.0)
    })
}

fn flag(is_set: bool) -> f32 {
    f32::from(u8::from(is_set))
}

/// Like [`log_size`]; 0 for an unknown number.
fn log_known(n: Option<u32>) -> f32 {
    log_size(n.unwrap_or(0))
}

fn cluster_share(facts: &KnownFacts, jobs: u32) -> f32 {
    jobs as f32 / facts.cluster.jobs().max(1) as f32
}

/// Like [`log_count`], but scaled for numbers in the millions.
fn log_size(n: u32) -> f32 {
    log_count(n) / 10.0
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeSet;

    use clap::ValueEnum as _;

    use super::super::pool_history::PoolHistory;
    use super::*;
    use crate::cycles::QueriedHold;
    use crate::cycles::hold_cycles;
    use htcondor_eventlog::{EventFacts, ExecutionHost, HoldFacts, JobEvent};
    use poolcast_config::{LabelKind, WindowPosition};
    use test_stores::store_of;

    /// Event facts with `hash` as the reason of event 012, or as the machine of event 001.
    pub(crate) fn facts_of(number: u16, hash: u32) -> EventFacts {
        match number {
            12 => EventFacts::from_hold(HoldFacts {
                reason: hash,
                ..HoldFacts::default()
            }),
            1 => EventFacts::from_execution(ExecutionHost {
                host: hash,
                slot: hash,
            }),
            _ => EventFacts::default(),
        }
    }

    /// The facts known when the only hold of job 9 is released, at second 200.
    fn facts() -> KnownFacts {
        let event = |(proc, s, number, value): (i32, i64, u16, i32)| JobEvent {
            cluster: if proc < 5 { 1 } else { 2 },
            proc,
            time_ms: s * 1000,
            number,
            normal: 1,
            value: if number == 5 { value } else { 0 },
            hold_code: if number == 12 { 13 } else { 0 },
            hold_subcode: if number == 12 { 2 } else { 0 },
            facts: facts_of(number, value.cast_unsigned()),
            ..JobEvent::default()
        };
        // The reasons of the holds are 7 and 8. In cluster 1 one job succeeds, one fails, one
        // succeeds too late, and one was never held. In cluster 2 one job ended badly, one runs,
        // and one is idle.
        let events = [
            (0, 0, 0, 0),
            (0, 5, 1, 3),
            (0, 10, 12, 7),
            (0, 50, 13, 0),
            (0, 100, 5, 0),
            (1, 1, 0, 0),
            (1, 10, 12, 8),
            (1, 50, 13, 0),
            (1, 190, 12, 8),
            (2, 2, 0, 0),
            (2, 60, 12, 7),
            (2, 100, 13, 0),
            (2, 200, 5, 0),
            (3, 3, 0, 0),
            (3, 9, 1, 3),
            (3, 120, 5, 0),
            (6, 4, 0, 0),
            (6, 130, 5, 1),
            (7, 5, 0, 0),
            (7, 140, 1, 3),
            (8, 195, 0, 0),
            (9, 20, 0, 0),
            (9, 80, 1, 3),
            (9, 180, 12, 7),
            (9, 200, 13, 0),
        ];
        let store = store_of(&events.map(event));
        let jobs = store.jobs();
        let index = jobs.iter().position(|job| job.proc == 9).expect("job 9");
        let job = jobs.get(index);
        let cycle = hold_cycles(job.history, LabelKind::Next, &[])[0];
        let window = WindowPosition::Release;
        let asked = QueriedHold::new(index as u32, &job.history, cycle, window, 0);
        PoolHistory::new(&store, 10).facts(&job, &asked)
    }

    #[test]
    fn records_contain_only_decided_outcomes() {
        let records = facts().records;
        let counts = |kind| {
            let record = records.holds(kind);
            let outcomes = record.outcomes;
            (
                record.held,
                record.released,
                outcomes.successes,
                outcomes.failures,
            )
        };
        assert_eq!(counts(HoldRecordKind::Pool), (5, 3, 1, 1));
        assert_eq!(counts(HoldRecordKind::Code), (5, 3, 1, 1));
        assert_eq!(counts(HoldRecordKind::Reason), (3, 2, 1, 0));
        assert_eq!(counts(HoldRecordKind::Cluster), (1, 0, 0, 0));
        assert_eq!(counts(HoldRecordKind::Host), (2, 1, 1, 0));
        assert_eq!(counts(HoldRecordKind::Slot), (2, 1, 1, 0));
        assert_eq!(counts(HoldRecordKind::Owner), (0, 0, 0, 0), "unknown");
        assert_eq!(counts(HoldRecordKind::Batch), (0, 0, 0, 0), "unknown");
        let ends = |kind| {
            let outcomes = records.first_runs(kind).outcomes;
            (outcomes.successes, outcomes.failures)
        };
        assert_eq!(ends(FirstRunKind::Pool), (1, 1));
        assert_eq!(ends(FirstRunKind::Cluster), (0, 1));
        assert_eq!(ends(FirstRunKind::Host), (1, 0));
        assert!(
            (records.half_life_ms - 40_000.0).abs() < 1.0,
            "each was held for 40 s"
        );
        let since_ms = records.holds(HoldRecordKind::Reason).since_success_ms;
        assert_eq!(since_ms, Some(99_999), "asked just before second 200");
    }

    #[test]
    fn counts_are_taken_at_prediction_time() {
        let facts = facts();
        let state = facts.cluster;
        let states = [
            state.idle,
            state.running,
            state.held,
            state.done,
            state.removed,
        ];
        assert_eq!((states, state.jobs()), ([1, 1, 1, 1, 0], 4));
        assert_eq!(facts.recent_in_pool.holds, [1, 2, 2, 5]);
        assert_eq!(facts.recent_in_pool.releases, [0, 0, 1, 3]);
        assert_eq!(facts.recent_in_pool.successes, [0, 0, 1, 1]);
        assert_eq!(facts.recent_for_reason.holds, [0, 1, 1, 3]);
        assert_eq!(facts.recent_submissions, [1, 1, 1, 8]);
        assert_eq!((facts.since_submit_s, facts.held_for_s), (179, 19));
        let run = facts.last_run;
        assert_eq!(
            (run.starts, run.wall_s, run.queue_wait_s),
            (1, Some(100), 60)
        );
    }

    #[test]
    fn feature_names_are_unique_and_match_their_values() {
        let facts = facts();
        let all = FeatureGroup::value_variants();
        let mut whole = Vec::new();
        facts.add_static_features(all, &mut whole);
        let names = static_names(all);
        assert_eq!(names.len(), whole.len());
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for (name, value) in names.iter().zip(&whole) {
            assert!(value.abs() <= 2.0, "{name}: {value}");
        }

        for left_out in all {
            let groups: Vec<FeatureGroup> = all
                .iter()
                .copied()
                .filter(|group| group != left_out)
                .collect();
            let mut statics = Vec::new();
            facts.add_static_features(&groups, &mut statics);
            let kept = static_names(&groups);
            let of_group = static_names(&[*left_out]);
            assert!(!of_group.is_empty() && kept.iter().all(|name| !of_group.contains(name)));
            let expected: Vec<f32> = (names.iter().zip(&whole))
                .filter(|(name, _)| kept.contains(name))
                .map(|(_, value)| *value)
                .collect();
            assert_eq!(statics, expected);
        }
    }

    #[test]
    fn out_of_range_codes_share_the_last_column() {
        let mut facts = facts();
        facts.request.memory_mb = u32::MAX;
        facts.earlier_holds = u32::MAX;
        for hold_code in [-1, 50, i32::MAX] {
            facts.hold_code = hold_code;
            let mut statics = Vec::new();
            facts.add_static_features(&[FeatureGroup::Hold, FeatureGroup::Request], &mut statics);
            assert_eq!(statics[HOLD_CODES - 1], 1.0);
            assert!(statics.iter().all(|number| number.is_finite()));
        }
    }
}
