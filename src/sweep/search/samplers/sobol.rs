//! The Sobol sampler: Owen-scrambled points, which cover the space more evenly than random ones.

use rand::Rng as _;

use crate::search::space::SearchSpace;

/// Sobol points per scrambling.
const POINTS_PER_SCRAMBLING: usize = 1 << 16;

/// Returns the quantiles of trial `trial`, counted from 1, one per parameter.
pub(in crate::search) fn quantiles(space: &SearchSpace, seed: u64, trial: usize) -> Vec<f64> {
    let round = trial.saturating_sub(1) / POINTS_PER_SCRAMBLING;
    let point = trial.saturating_sub(1) % POINTS_PER_SCRAMBLING;
    let dimensions = sobol_burley::NUM_DIMENSIONS;

    let quantile = |parameter: u32| {
        // A space with more parameters than the sequence has dimensions reuses the sequence with
        // another scrambling.
        let parts = [round as i64, i64::from(parameter / dimensions)];
        let scrambling = poolcast_base::seed::generator(seed, "sobol", &parts).random();
        let sample = sobol_burley::sample(point as u32, parameter % dimensions, scrambling);
        f64::from(sample)
    };
    (0..space.parameters().len() as u32).map(quantile).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::space::space_of;
    use serde_json::json;

    #[test]
    fn points_after_the_last_use_a_new_scrambling() {
        let square = json!({"a": {"min": 0.0, "max": 1.0}, "b": {"min": 0.0, "max": 1.0}});
        let space = space_of(&square);
        assert_ne!(
            quantiles(&space, 3, 1),
            quantiles(&space, 3, POINTS_PER_SCRAMBLING + 1),
            "a new scrambling, and no point twice"
        );
    }
}
