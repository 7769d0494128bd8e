//! The processor time that benchmarks measure by.

use anyhow::{Context as _, Result};

/// User and system time of this process so far, from `/proc/self/stat`, in seconds.
pub(crate) fn processor_s() -> Result<f64> {
    let text = fs_err::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = text
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .collect();
    let ticks = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse::<f64>().ok())
            .context("no such field")
    };
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}
