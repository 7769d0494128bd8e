//! Summary of samples, for people and programs.

use serde::Serialize;

use super::wait_samples::{SamplesDescription, WaitSamples};
use poolcast_base::stats::{interpolated_quantile, mean};

/// Summary of samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SamplesSummary {
    /// Description of the samples.
    #[serde(flatten)]
    pub description: SamplesDescription,
    /// Statistics of each probe over all windows, by its index in the window.
    pub waits: Vec<ProbeWaits>,
}

/// Waits of one probe over all windows, in hours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeWaits {
    /// Mean time from the successor's submission to its predecessor's end, hours.
    pub left_mean_h: f64,
    /// Mean wait of the successor, hours.
    pub wait_mean_h: f64,
    /// Median wait, hours.
    pub wait_p50_h: f64,
    /// The 90 % quantile of the waits, hours.
    pub wait_p90_h: f64,
}

impl WaitSamples {
    /// Summarises the samples.
    pub fn summary(&self) -> SamplesSummary {
        let probes = self.description.probes;
        let mut left_h = vec![Vec::new(); probes];
        let mut waits_h = vec![Vec::new(); probes];
        let mut probe = 0;
        for row in 0..self.len() {
            // The rows of a window are consecutive, one per probe.
            let is_same_window = row > 0 && self.window[row] == self.window[row - 1];
            probe = if is_same_window { probe + 1 } else { 0 };
            if probe < probes {
                left_h[probe].push(self.left_s[row] as f64 / 3600.0);
                waits_h[probe].push(self.wait_s[row] as f64 / 3600.0);
            }
        }

        let mut waits = Vec::with_capacity(probes);
        for (left_h, mut waits_h) in left_h.into_iter().zip(waits_h) {
            waits_h.sort_unstable_by(f64::total_cmp);
            waits.push(ProbeWaits {
                left_mean_h: mean(&left_h),
                wait_mean_h: mean(&waits_h),
                wait_p50_h: interpolated_quantile(&waits_h, 0.5),
                wait_p90_h: interpolated_quantile(&waits_h, 0.9),
            });
        }
        SamplesSummary {
            description: self.description.clone(),
            waits,
        }
    }
}
