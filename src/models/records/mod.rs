//! The fused engine for outcome tokens on a CPU. It computes the same as
//! `architectures/outcomes.rs` does in candle's operations: forward and backward of one sample at a
//! time, with the heads as the lanes of vectors.

mod fused_records;
mod member_gradient;
mod member_weights;
mod sample_pass;
mod vector_math;

pub(super) use fused_records::FusedRecords;
