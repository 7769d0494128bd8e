//! Models: from the codes and static features of a batch to one logit a sample, and back to a gradient.
//!
//! An [`Architecture`] says what a model computes, in candle's operations; a [`Model`] has an architecture and weights.
//! For the LSTM on a CPU there is a fused engine that computes the same many times as fast.

mod architecture;
mod batch;
mod changes;
mod chunk;
mod device;
mod floats;
mod fused;
mod gates;
mod gather;
mod gradient;
mod graph;
mod gru;
mod input;
mod layout;
mod lstm;
mod mlp;
mod model;
mod parameter;
mod product;
mod recurrent;
mod shape;
pub(crate) mod simd;

use anyhow::{Context as _, Result};

use crate::error::hinted;

pub use architecture::{Architecture, Weights};
pub use batch::Batch;
pub use device::{Device, DeviceName};
pub use floats::Floats;
pub use gradient::Gradient;
pub use input::Input;
pub use model::Model;
pub use parameter::Parameter;
pub use shape::Shape;

/// Every architecture there is, a line each: what `model` in the configuration can be.
#[rustfmt::skip]
pub static ARCHITECTURES: &[&dyn Architecture] = &[
    &lstm::LSTM,
    &lstm::LSTM_STATIC,
    &gru::GRU,
    &mlp::Mlp,
];

/// The architecture called `name`.
///
/// # Errors
/// Fails when there is none.
pub fn architecture(name: &str) -> Result<&'static dyn Architecture> {
    let found = ARCHITECTURES
        .iter()
        .find(|architecture| architecture.name() == name);
    found.copied().with_context(|| {
        let known: Vec<String> = ARCHITECTURES
            .iter()
            .map(|architecture| format!("`{}`", architecture.name()))
            .collect();
        hinted(
            format!("there is no model `{name}`"),
            format!("`model` can be {}", known.join(", ")),
        )
    })
}
