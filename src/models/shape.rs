//! Shape of a model: the sizes that determine the shapes of its weights.

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

/// The sizes that determine the shapes of a model's weights.
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
    /// Layers, of any kind.
    pub lstm_layers: usize,
}

impl ModelShape {
    /// Rejects sizes that no model has, such as those in a damaged file.
    ///
    /// # Errors
    /// Fails when a size other than `s` is zero, and when a size is larger than any configuration
    /// can make it.
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
