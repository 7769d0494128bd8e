//! Logarithms of counts. Most counts are small, and their logarithms are in a table.

use std::sync::LazyLock;

/// Number of logarithms in the table: the counts below this.
const KEPT: usize = 256;

static LOGARITHMS: LazyLock<[f32; KEPT]> =
    LazyLock::new(|| std::array::from_fn(|n| logarithm(n as u32)));

/// Returns the natural logarithm of `n + 1`.
#[inline]
pub(crate) fn log_count(n: u32) -> f32 {
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
    fn table_agrees_with_computed_logarithms() {
        for n in (0..1000).chain([1 << 24, u32::MAX]) {
            assert_eq!(log_count(n).to_bits(), (n as f32).ln_1p().to_bits());
        }
    }
}
