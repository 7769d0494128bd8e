//! The random sampler: each trial on its own.

use rand::Rng as _;

use crate::search::space::SearchSpace;

/// The quantiles that trial `trial` draws, one a parameter. Each parameter has a generator of its
/// own, so that adding one changes no other.
pub(in crate::search) fn quantiles(space: &SearchSpace, seed: u64, trial: usize) -> Vec<f64> {
    let mut quantiles = Vec::with_capacity(space.parameters().len());

    for (name, _) in space.parameters() {
        let mut generator = poolcast_base::seed::generator(seed, name, &[trial as i64]);
        quantiles.push(generator.random());
    }
    quantiles
}
