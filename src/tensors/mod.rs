//! Event store → samples: a held job among the jobs around it, one byte a cell, with its label and
//! split.

mod asked_hold;
mod audit;
mod base_rate;
mod build;
mod build_progress;
mod context_jobs;
mod dataset;
mod format;
mod frames;
mod hold_counts;
mod hold_cycles;
mod hold_facts;
mod hold_history;
mod labelled_holds;
mod life_spans;
mod recent_activity;
mod sample_encoder;
mod sample_shard;
mod settings;
mod shard_writer;
mod split;
mod split_side;
mod state_codes;
mod subcode_family;
mod tensor_summary;

pub use asked_hold::{AskedHold, known_until_ms};
pub use audit::{HoldCodeSamples, LeakageAudit, SideOverlap, audit};
pub use base_rate::{BaseRateShift, base_rate_shifts};
pub use build::build;
pub use build_progress::BuildProgress;
pub use dataset::Dataset;
pub use format::TENSORS_FORMAT;
pub use hold_counts::{HoldCount, hold_counts};
pub use hold_cycles::{HoldCycle, HoldOutcome, LeftOutReason, hold_cycles};
pub use hold_facts::{HoldFacts, STATIC_FEATURES};
pub use hold_history::{HoldHistories, HoldHistory, OutcomeCounts};
pub use sample_encoder::SampleEncoder;
pub use settings::TensorSettings;
pub use split_side::SplitSide;
pub use state_codes::EMPTY_CELL;
pub use tensor_summary::{LeftOutCycles, ListedTensorShard, SideSummary, TensorSummary};
