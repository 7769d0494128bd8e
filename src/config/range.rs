//! Checks that a number in the configuration is in its range.

use anyhow::{Result, ensure};

use poolcast_base::error::hinted;

/// Rejects a number outside `range`; `name` is the key, for the message.
pub fn check_range(name: &str, value: f64, range: std::ops::RangeInclusive<f64>) -> Result<()> {
    let (low, high) = (range.start(), range.end());
    ensure!(
        range.contains(&value),
        hinted(
            format!("`{name}` must be between {low} and {high}, got {value}"),
            "`poolcast config` explains every key"
        )
    );
    Ok(())
}
