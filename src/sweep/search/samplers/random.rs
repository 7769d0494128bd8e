//! The random sampler: draws each trial independently.

use rand::Rng as _;

use crate::search::space::SearchSpace;

/// Draws the quantiles of trial `trial`, one per parameter. Each parameter has its own generator,
/// so adding a parameter does not change the others.
pub(in crate::search) fn quantiles(space: &SearchSpace, seed: u64, trial: usize) -> Vec<f64> {
    let mut quantiles = Vec::with_capacity(space.parameters().len());

    for (name, _) in space.parameters() {
        let mut generator = poolcast_base::seed::generator(seed, name, &[trial as i64]);
        quantiles.push(generator.random());
    }
    quantiles
}
