//! The result of a probe: the outcome of a job that an earlier answer said to release first.

use serde::Serialize;

use super::job_command::JobId;
use poolcast_base::moment::DAY_MS;

/// The outcome of a released probe so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProbeState {
    /// It ended with exit code 0.
    Succeeded,
    /// It got past the point of its hold, and has not ended yet.
    Passed,
    /// It was held again.
    HeldAgain,
    /// It ended in another way than with exit code 0.
    Failed,
    /// It was removed.
    Removed,
    /// Its outcome is not known yet.
    Open,
}

/// The result of a released probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ProbeResult {
    /// The job.
    pub job: JobId,
    /// Time of its release, epoch ms.
    pub released_ms: i64,
    /// Its outcome so far.
    pub state: ProbeState,
}

impl ProbeResult {
    /// Describes the result for a reader at `asked_ms`, with times in UTC.
    pub fn words(&self, asked_ms: i64) -> String {
        let form = if asked_ms - self.released_ms < DAY_MS {
            "%H:%M"
        } else {
            "%m-%d %H:%M"
        };
        let time = jiff::Timestamp::from_millisecond(self.released_ms)
            .map_or_else(|_| "-".to_owned(), |time| time.strftime(form).to_string());
        let outcome = match self.state {
            ProbeState::Succeeded => "ended well",
            ProbeState::Passed => "got past the fault and still runs",
            ProbeState::HeldAgain => "was held again",
            ProbeState::Failed => "failed",
            ProbeState::Removed => "was removed",
            ProbeState::Open => "has not ended yet",
        };
        format!("the probe {} of {time} {outcome}", self.job)
    }
}
