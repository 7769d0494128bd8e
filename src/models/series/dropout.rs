//! Dropout (Srivastava et al. 2014) with masks that follow from a seed: the same for any number of
//! threads, and after a training goes on from a checkpoint.

use candle_core::{Result, Tensor};
use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// What the masks of a step follow from.
#[derive(Debug, Clone, Copy)]
pub struct DropoutSeed {
    /// The root seed.
    pub seed: u64,
    /// The step of the training, over all epochs.
    pub step: u64,
}

/// Masks for the layers of one chunk of a batch, in the order in which the layers ask for them.
pub(super) struct DropoutMasks(Option<ChaCha8Rng>);

impl DropoutMasks {
    /// For the answers of a trained network: nothing is dropped.
    pub(super) fn none() -> DropoutMasks {
        DropoutMasks(None)
    }

    /// For the chunk `chunk` of a step.
    pub(super) fn for_chunk(seed: Option<DropoutSeed>, chunk: usize) -> DropoutMasks {
        DropoutMasks(seed.map(|DropoutSeed { seed, step }| {
            poolcast_base::seed::generator(seed, "dropout", &[step as i64, chunk as i64])
        }))
    }

    /// Zeroes each number with probability `share`; scales the others so that sums keep their mean.
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
