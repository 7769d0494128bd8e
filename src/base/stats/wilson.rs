//! Wilson's interval for a share (Wilson 1927).

/// Quantile of the normal distribution for a 95 % interval.
const Z: f64 = 1.959_964;

/// The lower end of Wilson's 95 % interval for a share of `n`.
pub fn wilson_lower(share: f64, n: usize) -> f64 {
    wilson_bound(share, n as f64, Z)
}

/// The lower end of Wilson's interval for a share of `n` independent cases, `z` standard deviations
/// wide on each side.
pub fn wilson_bound(share: f64, n: f64, z: f64) -> f64 {
    if n <= 0.0 {
        return 0.0;
    }
    let centre = share + z * z / (2.0 * n);
    let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    ((centre - spread) / (1.0 + z * z / n)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand, from the formula: 10 of 10 give 10 / (10 + z^2).
    #[test]
    fn wilson_bound_by_hand() {
        assert!((wilson_lower(1.0, 10) - 0.722_467).abs() < 1e-6);
        assert_eq!((wilson_lower(0.0, 10), wilson_lower(1.0, 0)), (0.0, 0.0));
    }
}
