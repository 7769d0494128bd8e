//! Passes over samples, which the benchmarks of models measure.

use anyhow::Result;

use crate::processor::processor_s;

/// Runs `pass` `count` times. Returns the processor time of the fastest pass, in s, and the result of
/// the last one.
pub(crate) fn fastest_pass<T: Default + Send>(
    count: usize,
    mut pass: impl FnMut() -> Result<T> + Send,
) -> Result<(f64, T)> {
    let (mut best_s, mut result) = (f64::INFINITY, T::default());
    for _ in 0..count {
        let start_s = processor_s();
        // The pass runs in the pool, as in training, so that no work moves between threads.
        result = rayon::scope(|_| pass())?;
        best_s = best_s.min(processor_s() - start_s);
    }
    Ok((best_s, result))
}
