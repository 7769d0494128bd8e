//! The architectures: a file for each, and the list that makes them known.

mod gru;
pub(super) mod lstm;
mod mlp;
pub(super) mod recurrent;

use anyhow::{Context as _, Result};

use super::Architecture;
use poolcast_base::error::hinted;

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
pub fn find_architecture(name: &str) -> Result<&'static dyn Architecture> {
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
