//! What decides the shapes of a model's weights.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// What decides the shapes of the weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelShape {
    /// Event types.
    pub e: usize,
    /// Time frames.
    pub m: usize,
    /// Jobs.
    pub j: usize,
    /// Static features of a sample.
    pub s: usize,
    /// Width of each layer, `h`.
    pub hidden_size: usize,
    /// Layers, of whatever kind.
    pub lstm_layers: usize,
}

impl ModelShape {
    /// Refuses sizes that no model has, as a damaged file may name them.
    ///
    /// # Errors
    /// Fails when a size is zero, or larger than any configuration can make it.
    pub fn check_sizes(&self) -> Result<()> {
        let ModelShape {
            e,
            m,
            j,
            s,
            hidden_size,
            lstm_layers,
        } = *self;
        let is_model = (1..=255).contains(&e)
            && (1..=10_000).contains(&m)
            && (1..=10_000).contains(&j)
            && s <= 10_000
            && (1..=4096).contains(&hidden_size)
            && (1..=16).contains(&lstm_layers);
        ensure!(
            is_model,
            "no model has this shape: Shape {{ e: {e}, m: {m}, j: {j}, s: {s}, \
             hidden_size: {hidden_size}, lstm_layers: {lstm_layers} }}"
        );
        Ok(())
    }
}
