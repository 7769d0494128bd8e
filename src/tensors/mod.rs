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

pub use audit::{Audit, CodeShare, Shared, audit};
pub use build::{Progress, build};
pub use cycles::{Cycle, LeftOut, Outcome, cycles};
pub use dataset::{Dataset, Listed, Side, SideSummary, Summary, TENSORS};
pub use facts::{Facts, STATICS};
pub use holds::{HoldCount, hold_counts};
pub use record::{Record, Records, Tally};
pub use sampler::Sampler;
pub use settings::Settings;
pub use window::EMPTY;
