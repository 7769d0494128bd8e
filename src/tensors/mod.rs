//! Event store → samples: a held job among the jobs around it, one byte a cell, with its label and split.

mod build;
mod context;
mod cycles;
mod dataset;
mod holds;
mod split;
mod window;

pub use build::{Sampler, Settings, build};
pub use cycles::{Cycle, LeftOut, Outcome, cycles};
pub use dataset::{Dataset, Side, SideSummary, Summary, TENSORS};
pub use holds::{HoldCount, hold_counts};
pub use window::{EMPTY, VOCABULARY};
