//! Logarithms of counts, of which most are small: these are looked up.

use std::sync::LazyLock;

/// Of counts below this the logarithm is kept.
const KEPT: usize = 256;

static LOGARITHMS: LazyLock<[f32; KEPT]> =
    LazyLock::new(|| std::array::from_fn(|n| logarithm(n as u32)));

/// The natural logarithm of `n + 1`.
#[inline]
pub(super) fn log_count(n: u32) -> f32 {
    match LOGARITHMS.get(n as usize) {
        Some(kept) => *kept,
        None => logarithm(n),
    }
}

fn logarithm(n: u32) -> f32 {
    (n as f32).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_counts_have_the_same_logarithm_as_any_number() {
        for n in (0..1000).chain([1 << 24, u32::MAX]) {
            assert_eq!(log_count(n).to_bits(), (n as f32).ln_1p().to_bits());
        }
    }
}
