//! A hold with what is known of it only here.

use super::hold_cause::HoldCause;
use htcondor_eventlog::HoldCode;

/// A hold cycle as a truth file has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HoldTruth {
    /// The job's cluster.
    pub cluster: i32,
    /// The job's proc.
    pub proc: i32,
    /// How often the job was held before.
    pub earlier_holds: u32,
    /// The second of the hold, epoch ms.
    pub hold_time_ms: i64,
    /// The second of the release, epoch ms; -1 if the log has none.
    pub release_time_ms: i64,
    /// Whether the log shows its release.
    pub is_released: bool,
    /// The probability that the job next ends well, given everything just before its release, the
    /// slot of its next run not known. `None` if it was not released, or the file does not tell.
    pub p_release: Option<f64>,
    /// The same for somebody who does not see whether what held the job was mended before this
    /// release, which no log shows, but knows how often its owner does.
    pub p_release_unseen_repair: Option<f64>,
    /// The same given everything at the hold, the release and its delay being random; of a job that
    /// was never released, what a release would have had.
    pub p_hold: f64,
    /// Why it was held, if the file tells in words that this program knows.
    pub cause: Option<HoldCause>,
}

/// A hold cycle while the pool runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct SimulatedHold {
    pub(super) truth: HoldTruth,
    pub(super) code: HoldCode,
    /// Whether the job next ended well, where the log tells.
    pub(super) label: Option<bool>,
}
