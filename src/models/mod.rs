//! Models: from the codes of a batch to one logit a sample.

mod lstm;

pub use lstm::{Lstm, Shape};
