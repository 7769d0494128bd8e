//! A simulated hold with its true cause and probabilities.

use super::hold_cause::HoldCause;
use htcondor_eventlog::HoldCode;

/// The truth about one hold, as stored in a truth file.
#[derive(Debug, Clone, PartialEq)]
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
    /// True if the job fails until somebody fixes it, false if it may succeed without a repair.
    /// `None` if the file does not say.
    pub permanent: Option<bool>,
    /// Changes of the probability of success without a repair, by time. The first is at the hold.
    /// Empty if the file lacks them.
    pub unmended: Vec<UnmendedChange>,
}

impl HoldTruth {
    /// Returns the probability that the next run succeeds if the job is released at `time_ms`
    /// without a repair. It is within 0.01 of the exact probability in a simulated pool. Returns
    /// `None` before the hold, after the release, or if the file lacks the value.
    ///
    /// The file lacks the end of a hold without a release, so the last value also applies after it.
    pub fn p_unmended(&self, time_ms: i64) -> Option<f64> {
        if self.is_released && time_ms > self.release_time_ms {
            return None;
        }
        let later = self
            .unmended
            .partition_point(|change| change.time_ms <= time_ms);
        Some(self.unmended[later.checked_sub(1)?].p)
    }
}

/// A change of the probability of success of a held job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UnmendedChange {
    /// Time from which the probability is valid, epoch ms, rounded down to a second.
    pub time_ms: i64,
    /// Probability that the next run succeeds if the job is released without a repair, given
    /// everything at that time except the slot of that run.
    pub p: f64,
}

/// A hold while the simulation runs.
#[derive(Debug, Clone)]
pub(super) struct SimulatedHold {
    pub(super) truth: HoldTruth,
    pub(super) code: HoldCode,
    /// True if the next run succeeded, false if not; `None` if the log does not show it.
    pub(super) label: Option<bool>,
}

/// Rounds `time_ms` down to a second. Logs have whole seconds.
pub(super) fn whole_second(time_ms: i64) -> i64 {
    time_ms.div_euclid(1000) * 1000
}
