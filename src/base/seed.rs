//! Random number generators: every random choice has its own generator, derived by name from one
//! root seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use sha2::{Digest as _, Sha256};

/// Returns the generator for the choice called `name`. `parts` distinguish generators of the same
/// name, for instance a sample's job and hold.
///
/// The stream depends on these arguments only, not on threads, order or time. ChaCha's stream never
/// changes between versions.
pub fn generator(seed: u64, name: &str, parts: &[i64]) -> ChaCha8Rng {
    let mut digest = Sha256::new()
        .chain_update(seed.to_le_bytes())
        .chain_update(name)
        .chain_update([0]);
    for part in parts {
        digest.update(part.to_le_bytes());
    }
    ChaCha8Rng::from_seed(digest.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng as _;

    #[test]
    fn streams_differ_by_seed_name_and_parts() {
        let draw = |seed, name, parts: &[i64]| generator(seed, name, parts).random::<u64>();
        assert_eq!(draw(1, "a", &[2]), draw(1, "a", &[2]));
        let all = [
            draw(1, "a", &[2]),
            draw(2, "a", &[2]),
            draw(1, "b", &[2]),
            draw(1, "a", &[3]),
            draw(1, "a", &[]),
        ];
        assert!((0..5).all(|i| (0..i).all(|k| all[i] != all[k])));
    }
}
