//! Trainings whose steps have too little to do for threads to share it.

use anyhow::{Context as _, Result};

use super::settings::TrainingSettings;
use super::train::model_shape;
use poolcast_models::ModelShape;
use crate::tensors::Dataset;

/// Multiplications that a step has at least for threads to gain by sharing them: some milliseconds
/// on one core. To hand work over and to wait for it takes tenths of one at every step.
const SHARED_MULTIPLICATIONS: usize = 100_000_000;

/// What `train` returns, a training on `dataset` by `settings`. One of a small network has a thread
/// alone, so that trainings at the same time do not wait for each other at every step. The result is
/// the same.
pub fn train_beside_others<T: Send>(
    dataset: &Dataset,
    settings: &TrainingSettings,
    train: impl FnOnce() -> T + Send,
) -> Result<T> {
    let shape = model_shape(dataset, settings, settings.architecture()?);
    if step_multiplications(&shape, settings.parameters.batch_size) >= SHARED_MULTIPLICATIONS {
        return Ok(train());
    }
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1);
    let alone = alone.build().context("cannot start a thread")?;
    Ok(alone.install(train))
}

/// About how many multiplications a step takes, there and back, but for those of the first layer's
/// inputs: `3 * batch * m * 4h * h` for the states of each layer, and for its inputs.
fn step_multiplications(shape: &ModelShape, batch_size: usize) -> usize {
    let h = shape.hidden_size;
    let products = 2 * shape.lstm_layers - 1;
    (3 * batch_size * shape.m).saturating_mul(4 * h * h * products)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes S, M and L of `ci/bench/train`.
    #[test]
    fn of_the_sizes_of_the_bench_the_smallest_is_small() {
        let is_small = |m, j, hidden_size, lstm_layers, batch_size| {
            let shape = ModelShape {
                e: 48,
                m,
                j,
                s: 0,
                hidden_size,
                lstm_layers,
            };
            step_multiplications(&shape, batch_size) < SHARED_MULTIPLICATIONS
        };
        assert!(is_small(20, 20, 32, 1, 64));
        assert!(!is_small(60, 50, 64, 2, 64));
        assert!(!is_small(100, 100, 128, 4, 128));
    }
}
