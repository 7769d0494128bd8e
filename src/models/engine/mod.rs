//! The fused engine: the LSTM on a CPU, with its own kernels.
//!
//! It computes the same as `architectures/lstm.rs` does in candle's operations. From the bottom up,
//! it consists of:
//!
//! - the layout of the parameters in one vector ([`layout`]);
//! - kernels for matrix products ([`product`]), for gates ([`gates`]), and for the first layer's
//!   inputs ([`gather`]), which follow the changes of codes from frame to frame ([`code_deltas`]);
//! - the forward pass ([`chunk`]) and backward pass ([`chunk_gradient`]) of a chunk;
//! - the scoring ([`fused_lstm`]) and the gradient ([`fused_gradient`]) of all chunks of a batch.

mod chunk;
mod chunk_gradient;
mod code_deltas;
mod fused_gradient;
mod fused_lstm;
mod gates;
mod gather;
mod layout;
mod product;
mod transposed_weights;

pub(super) use fused_gradient::FusedGradient;
pub(super) use fused_lstm::FusedLstm;
