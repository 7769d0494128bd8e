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
pub(crate) use hold_records::HoldLengths;
pub use hold_records::{FirstRunKind, HoldRecordKind, HoldRecords};
pub(crate) use keyed_outcomes::{GroupedList, KeyGroups, NO_GROUP, NO_KEY, successes_so_far};
pub use known_facts::KnownFacts;
pub use last_run::LastRun;
pub(crate) use last_run::{execution_host_before, last_start, seconds_between};
pub(crate) use next_run::next_run_outcome;
pub(crate) use outcome_record::{DatedOutcome, log_share, shrunk_rate};
pub use outcome_record::{OutcomeCounts, OutcomeRecord, WeightedOutcomes};
pub use pool_history::PoolHistory;
pub use recent_events::{RecentCounts, WINDOW_FRAMES};
#[cfg(test)]
pub(crate) use static_features::tests;
pub use static_features::{static_feature_count, static_names};
