//! Models: from the codes and static features of a batch to one logit a sample, and back to a gradient.
//!
//! [`Lstm`] is what training and scoring use: one fused engine for the CPU. [`Reference`] is the same model in candle's
//! operations: what the engine is tested against, and the way to other devices.

mod batch;
mod changes;
mod chunk;
mod floats;
mod gates;
mod gather;
mod gradient;
mod layout;
mod lstm;
mod product;
mod reference;
mod shape;
pub(crate) mod simd;

pub use batch::Batch;
pub use floats::Floats;
pub use gradient::Gradient;
pub use lstm::Lstm;
pub use reference::Reference;
pub use shape::{Parameter, Shape};
