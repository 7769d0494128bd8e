//! What a log has shown before a prediction time, and the static features made from it.

mod cluster_parts;
mod cluster_states;
mod hold_records;
mod keyed_outcomes;
mod known_facts;
mod last_run;
mod log_count;
mod next_run;
mod outcome_record;
mod pool_history;
mod recent_events;
mod static_features;
mod subcode_family;

pub use cluster_states::ClusterState;
pub use hold_records::{FirstRunKind, HoldLengths, HoldRecordKind, HoldRecords};
pub(crate) use keyed_outcomes::NO_GROUP;
pub use keyed_outcomes::{GroupedList, KeyGroups, NO_KEY, successes_so_far};
pub use known_facts::KnownFacts;
pub(crate) use last_run::seconds_between;
pub use last_run::{LastRun, execution_host_before, last_start};
pub use next_run::next_run_outcome;
pub use outcome_record::{
    DatedOutcome, OutcomeCounts, OutcomeRecord, WeightedOutcomes, log_share, shrunk_rate,
};
pub use pool_history::PoolHistory;
pub use recent_events::{RecentCounts, WINDOW_FRAMES};
#[cfg(test)]
pub(crate) use static_features::tests;
pub use static_features::{static_feature_count, static_names};
