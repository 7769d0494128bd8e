//! The advice on the jobs that are held at the end of the log, and a description of the log.

use super::words;
use poolcast_advice::{AdviceBasis, JobAdvice};
use poolcast_base::output;

/// The advice on the held jobs.
#[derive(Debug)]
pub struct HeldJobs {
    /// The data that the advice is based on.
    pub basis: AdviceBasis,
    /// The advice on each job.
    pub advice: Vec<JobAdvice>,
}

impl HeldJobs {
    /// Names the access points, the number of held jobs and the time of the answers.
    pub(super) fn title(&self) -> String {
        let jobs = output::counted(self.advice.len(), "held job");
        let when = output::utc_time(self.basis.asked_ms);
        match &self.basis.access_points[..] {
            [] => format!("{jobs}, {when}"),
            points => format!("{}: {jobs}, {when}", words::shown(&points.join(", "))),
        }
    }

    /// Describes the log: its access points, its time range and its number of holds.
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
        let Some((begin_ms, end_ms)) = log_begin_ms.zip(*log_end_ms) else {
            return "No log was read.".to_owned();
        };
        format!(
            "The {}{of} is from {} to {} and has {}.",
            self.basis.source_name(),
            output::utc_time(begin_ms),
            output::utc_time(end_ms),
            output::counted(*holds, "hold")
        )
    }
}
