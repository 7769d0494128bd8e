//! Randomness: one root seed; every random choice draws from a generator of its own, derived by
//! name.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use sha2::{Digest as _, Sha256};

/// The generator for the choice called `name` among those with the same `parts`, for instance a
/// sample's job and hold.
///
/// Its stream depends on nothing else: not on threads, order or time. ChaCha's stream is fixed for
/// ever.
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
    fn names_and_parts_separate_streams() {
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
