//! The advice on the jobs that are held when the log ends, and which log that is.

use super::words;
use poolcast_holds::advice::{AdviceBasis, JobAdvice};
use poolcast_base::output;

/// The advice on the jobs that are held.
#[derive(Debug)]
pub struct HeldJobs {
    /// What it rests on.
    pub basis: AdviceBasis,
    /// One for each job.
    pub advice: Vec<JobAdvice>,
}

impl HeldJobs {
    /// Which log it is about.
    pub(super) fn log_sentence(&self, is_anonymous: bool) -> String {
        let AdviceBasis {
            access_points,
            log_begin_ms,
            log_end_ms,
            holds,
            ..
        } = &self.basis;
        let of = if is_anonymous {
            String::new()
        } else {
            format!(" of {}", words::shown(&access_points.join(", ")))
        };
        format!(
            "The log{of} goes from {} to {} and has {}.",
            output::utc_time(*log_begin_ms),
            output::utc_time(*log_end_ms),
            output::counted(*holds, "hold")
        )
    }
}
