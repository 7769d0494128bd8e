//! Writes samples to shards, reads them and audits them.

mod audit;
mod build;
mod build_progress;
mod dataset;
mod format;
mod sample_shard;
mod settings;
mod shard_writer;
mod tensor_summary;

pub use audit::{HoldCodeSamples, LeakageAudit, SplitOverlap, audit};
pub use build::build;
pub use build_progress::BuildProgress;
pub use dataset::Dataset;
pub use format::TENSORS_FORMAT;
pub use settings::TensorSettings;
pub use tensor_summary::{ExcludedCycles, ListedTensorShard, SplitSummary, TensorSummary};
