//! Event store → samples: a held job among the jobs around it, one byte a cell, with its label and split.

mod audit;
mod build;
mod context;
mod cycles;
mod dataset;
mod facts;
mod family;
mod holds;
mod record;
mod sampler;
mod settings;
mod spans;
mod split;
mod window;

pub use audit::{HoldCodeSamples, LeakageAudit, SideOverlap, audit};
pub use build::{BuildProgress, build};
pub use cycles::{HoldCycle, HoldOutcome, LeftOutReason, hold_cycles};
pub use dataset::{
    Dataset, ListedTensorShard, SideSummary, SplitSide, TENSORS_FORMAT, TensorSummary,
};
pub use facts::{HoldFacts, STATIC_FEATURES};
pub use holds::{HoldCount, hold_counts};
pub use record::{HoldHistories, HoldHistory, OutcomeCounts};
pub use sampler::SampleEncoder;
pub use settings::TensorSettings;
pub use window::EMPTY_CELL;
