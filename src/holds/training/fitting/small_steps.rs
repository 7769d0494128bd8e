//! Trainings whose steps are too small for threads to share them.

use anyhow::{Context as _, Result};

use super::train::model_shape;
use crate::config::TrainingSettings;
use poolcast_models::ModelShape;
use poolcast_tensors::Dataset;

/// Minimum number of multiplications per step for which threads pay off: some milliseconds on one
/// core. Handing work over and waiting for it costs tenths of a millisecond at every step.
const MIN_SHARED_MULTIPLICATIONS: usize = 100_000_000;

/// Calls `train`, a training on `dataset` with `settings`, and returns its result. The training of
/// a small network gets a single thread, so that concurrent trainings do not wait for each other at
/// every step. The result does not depend on this.
///
/// # Errors
/// Fails when the architecture is unknown or the thread cannot be started.
pub fn train_beside_others<T: Send>(
    dataset: &Dataset,
    settings: &TrainingSettings,
    train: impl FnOnce() -> T + Send,
) -> Result<T> {
    let tensors = &dataset.summary.settings;
    let shape = model_shape(tensors, settings, settings.architecture()?);
    if step_multiplications(&shape, settings.parameters.batch_size) >= MIN_SHARED_MULTIPLICATIONS {
        return Ok(train());
    }
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1);
    let alone = alone.build().context("cannot start a thread")?;
    Ok(alone.install(train))
}

/// Estimates the multiplications of a step, forward and backward: `3 * batch * m * 4h * h` for the
/// states of each layer, and the same for its inputs. The inputs of the first layer are not
/// counted.
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
    fn only_the_smallest_bench_size_is_small() {
        let is_small = |m, j, hidden_size, lstm_layers, batch_size| {
            let shape = ModelShape {
                e: 48,
                m,
                j,
                s: 0,
                shared_bits: 0,
                hidden_size,
                lstm_layers,
            };
            step_multiplications(&shape, batch_size) < MIN_SHARED_MULTIPLICATIONS
        };
        assert!(is_small(20, 20, 32, 1, 64));
        assert!(!is_small(60, 50, 64, 2, 64));
        assert!(!is_small(100, 100, 128, 4, 128));
    }
}
