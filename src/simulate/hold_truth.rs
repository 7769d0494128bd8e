//! A simulated hold with its true cause and probabilities.

use super::hold_cause::HoldCause;
use htcondor_eventlog::HoldCode;

/// The truth about one hold, as stored in a truth file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HoldTruth {
    /// The job's cluster.
    pub cluster: i32,
    /// The job's proc.
    pub proc: i32,
    /// Number of earlier holds of the job.
    pub earlier_holds: u32,
    /// Time of the hold, epoch ms, rounded down to a second.
    pub hold_time_ms: i64,
    /// Time of the release, epoch ms, rounded down to a second; -1 if the log has none.
    pub release_time_ms: i64,
    /// True if the log has the release of the hold.
    pub is_released: bool,
    /// Probability that the next run succeeds, given everything just before the release except the
    /// slot of that run. `None` if the job was not released, or if the file lacks the value.
    pub p_release: Option<f64>,
    /// Like `p_release`, but for an observer who cannot see whether a person fixed the cause before
    /// this release. No log shows that, but the observer knows how often the owner fixes such a
    /// cause.
    pub p_release_unseen_repair: Option<f64>,
    /// Probability that the next run succeeds, given everything at the time of the hold. The repair
    /// and the delay of the release are random. For a job that was never released, the probability
    /// that a release would have had.
    pub p_hold: f64,
    /// The cause of the hold, if the file names a cause that this program knows.
    pub cause: Option<HoldCause>,
}

/// A hold while the simulation runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimulatedHold {
    pub(super) truth: HoldTruth,
    pub(super) code: HoldCode,
    /// True if the next run succeeded, false if not; `None` if the log does not show it.
    pub(super) label: Option<bool>,
}
