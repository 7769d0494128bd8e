//! What samples are like, for people and programs.

use serde::Serialize;

use super::wait_samples::{SamplesDescription, WaitSamples};
use poolcast_base::stats::{mean, quantile};

/// What samples are like.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SamplesSummary {
    /// What they are.
    #[serde(flatten)]
    pub description: SamplesDescription,
    /// The probes of all windows, by their place in the window.
    pub waits: Vec<ProbeWaits>,
}

/// The waits of one probe of each window, hours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeWaits {
    /// How long the predecessor has left before it ends, on average.
    pub left_mean_h: f64,
    /// How long the successor waits on average.
    pub wait_mean_h: f64,
    /// In the median.
    pub wait_p50_h: f64,
    /// What one wait in ten exceeds.
    pub wait_p90_h: f64,
}

impl WaitSamples {
    /// What they are like.
    pub fn summary(&self) -> SamplesSummary {
        let probes = self.description.probes;
        let mut left_h = vec![Vec::new(); probes];
        let mut waits_h = vec![Vec::new(); probes];
        let mut probe = 0;
        for row in 0..self.len() {
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
                wait_p50_h: quantile(&waits_h, 0.5),
                wait_p90_h: quantile(&waits_h, 0.9),
            });
        }
        SamplesSummary {
            description: self.description.clone(),
            waits,
        }
    }
}
