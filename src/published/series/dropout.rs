//! Dropout (Srivastava et al. 2014) with masks drawn from a seed. They are the same for any number
//! of threads, and after a training resumes from a checkpoint.

use candle_core::{Result, Tensor};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// Seed of the masks of one step.
#[derive(Debug, Clone, Copy)]
pub struct DropoutSeed {
    /// Root seed.
    pub seed: u64,
    /// Step of the training, counted over all epochs.
    pub step: u64,
}

/// Mask generator for the layers of one chunk, used in the order of the layers.
pub(super) struct DropoutMasks(Option<ChaCha8Rng>);

impl DropoutMasks {
    /// Drops nothing, for inference.
    pub(super) fn none() -> DropoutMasks {
        DropoutMasks(None)
    }

    /// Creates the masks of chunk number `chunk` of a step.
    pub(super) fn for_chunk(seed: Option<DropoutSeed>, chunk: usize) -> DropoutMasks {
        DropoutMasks(seed.map(|DropoutSeed { seed, step }| {
            poolcast_base::seed::generator(seed, "dropout", &[step as i64, chunk as i64])
        }))
    }

    /// Zeroes each number with probability `share`. Scales the others to preserve the mean of sums.
    pub(super) fn drop(&mut self, numbers: Tensor, share: f32) -> Result<Tensor> {
        let Some(generator) = &mut self.0 else {
            return Ok(numbers);
        };
        let kept = 1.0 / (1.0 - share);
        let mut mask = Vec::with_capacity(numbers.elem_count());
        for _ in 0..numbers.elem_count() {
            let is_dropped = generator.random::<f32>() < share;
            mask.push(if is_dropped { 0.0 } else { kept });
        }
        let mask = Tensor::from_vec(mask, numbers.shape(), numbers.device())?;
        numbers * mask
    }
}
