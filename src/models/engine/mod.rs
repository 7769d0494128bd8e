//! The fused engine: the LSTM as a CPU runs it, with kernels of its own.
//!
//! It computes what `architectures/lstm.rs` says in candle's operations. From the bottom up: the
//! layout of the parameters in one vector ([`layout`]); kernels for matrix products ([`product`]),
//! for gates ([`gates`]), and for the first layer's inputs ([`gather`]) by what changes from frame
//! to frame ([`code_deltas`]); a chunk's way forward ([`chunk`]) and back ([`chunk_gradient`]); and
//! all chunks of a batch, to be scored ([`fused_lstm`]) or to learn from ([`fused_gradient`]).

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
