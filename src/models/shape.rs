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
    /// Bits for each job that say what it shares with the held one; 0 if the model does not read them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shared_bits: usize,
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
            shared_bits,
            hidden_size,
            lstm_layers,
        } = *self;
        let is_model = (1..=255).contains(&e)
            && (1..=10_000).contains(&m)
            && (1..=10_000).contains(&j)
            && s <= 10_000
            && shared_bits <= 8
            && (1..=4096).contains(&hidden_size)
            && (1..=16).contains(&lstm_layers);
        ensure!(
            is_model,
            "no model has this shape: Shape {{ e: {e}, m: {m}, j: {j}, s: {s}, \
             hidden_size: {hidden_size}, lstm_layers: {lstm_layers} }}"
        );
        Ok(())
    }

    /// The number of inputs of a frame: a state of each job, one-hot, and what each job shares.
    pub(crate) fn frame_inputs(&self) -> usize {
        self.j * (self.e + self.shared_bits)
    }

    /// Returns the number of bytes of a sample that say what its jobs share.
    pub(crate) fn shared_bytes(&self) -> usize {
        if self.shared_bits > 0 { self.j } else { 0 }
    }

    /// Calls `found` with each input of a sample that stands for something shared, for `shared` `[j]`.
    pub(crate) fn for_each_shared(&self, shared: &[u8], mut found: impl FnMut(usize)) {
        for (job, &bits) in shared.iter().enumerate() {
            for bit in (0..self.shared_bits).filter(|bit| bits >> bit & 1 == 1) {
                found(self.e * self.j + job * self.shared_bits + bit);
            }
        }
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}
