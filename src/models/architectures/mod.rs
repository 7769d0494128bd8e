//! List of the known architectures, with one file for each.

mod attention;
mod gru;
pub(super) mod lstm;
pub(super) mod members;
mod mlp;
pub(super) mod outcomes;
pub(super) mod recurrent;
mod token_tensors;

use anyhow::{Context as _, Result};

use super::Architecture;
use poolcast_base::error::hinted;

/// All architectures, one per line. These are the values of `model` in the configuration.
#[rustfmt::skip]
pub static ARCHITECTURES: &[&dyn Architecture] = &[
    &lstm::LSTM,
    &lstm::LSTM_STATIC,
    &gru::GRU,
    &mlp::Mlp,
    &outcomes::Outcomes,
    &attention::Attention,
];

/// Returns the architecture called `name`.
///
/// # Errors
/// Fails when there is no such architecture.
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
            format!("`model` must be one of {}", known.join(", ")),
        )
    })
}
