//! Builds samples from an event store: a held job among context jobs, one byte per cell, with its
//! label and split.

mod codes;
mod cycles;
mod history;
mod shards;
mod tokens;

pub use codes::SampleEncoder;
pub use cycles::{
    BaseRateShift, ExclusionReason, FrameChoice, HoldCount, HoldCycle, HoldOutcome, QueriedHold,
    Split, base_rate_shifts, cutoffs_ms, hold_counts, hold_cycles,
};
pub use history::{
    ClusterState, FirstRunKind, HoldRecordKind, HoldRecords, KnownFacts, LastRun, OutcomeCounts,
    OutcomeRecord, PoolHistory, RecentCounts, WINDOW_FRAMES, WeightedOutcomes,
    static_feature_count, static_names,
};
pub(crate) use history::{
    DatedOutcome, GroupedList, HoldLengths, KeyGroups, NO_KEY, execution_host_before, log_share,
    next_run_outcome, shrunk_rate, successes_so_far,
};
pub use shards::{
    BuildProgress, Dataset, ExcludedCycles, HoldCodeSamples, LeakageAudit, ListedTensorShard,
    SplitOverlap, SplitSummary, TENSORS_FORMAT, TensorSettings, TensorSummary, audit, build,
};
pub(crate) use tokens::{TokenHistory, TokenRows};
