//! Builds samples from an event store: a held job among context jobs, one byte per cell, with its
//! label and split.

mod codes;
mod cycles;
mod history;
mod preprocessing_config;
mod shards;
mod tokens;

pub use codes::SampleEncoder;
pub use cycles::{
    BaseRateShift, ExclusionReason, FrameChoice, HoldCount, HoldCycle, HoldOutcome, QueriedHold,
    Split, base_rate_shifts, cutoffs_ms, hold_counts, hold_cycles,
};
pub use history::{
    ClusterState, DatedOutcome, FirstRunKind, GroupedList, HoldLengths, HoldRecordKind,
    HoldRecords, KeyGroups, KnownFacts, LastRun, NO_KEY, OutcomeCounts, OutcomeRecord, PoolHistory,
    RecentCounts, WINDOW_FRAMES, WeightedOutcomes, execution_host_before, last_start, log_share,
    next_run_outcome, shrunk_rate, static_feature_count, static_names, successes_so_far,
};
pub use preprocessing_config::PreprocessingConfig;
pub use shards::{
    BuildProgress, Dataset, ExcludedCycles, HoldCodeSamples, LeakageAudit, ListedTensorShard,
    SplitOverlap, SplitSummary, TENSORS_FORMAT, TensorSettings, TensorSummary, audit, build,
};
pub use tokens::{StoredTokens, TokenHistory, TokenRows};
