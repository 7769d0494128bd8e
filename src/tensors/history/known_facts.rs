//! The facts known about a hold at prediction time, in the units of the log. The frames are not
//! included.

use super::cluster_states::ClusterState;
use super::hold_records::HoldRecords;
use super::last_run::LastRun;
use super::recent_events::{RecentCounts, WINDOW_FRAMES};
use htcondor_eventlog::ResourceRequest;

/// The facts known about a held job at prediction time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownFacts {
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// Number of earlier holds of the job.
    pub earlier_holds: u32,
    /// Time from the submission to prediction time, in seconds.
    pub since_submit_s: u32,
    /// Time from the hold to prediction time, in seconds; 0 if the prediction time is the hold.
    pub held_for_s: u32,
    /// Resources that the job requested when it was submitted.
    pub request: ResourceRequest,
    /// The run that ended with the hold.
    pub last_run: LastRun,
    /// Outcomes of similar holds.
    pub records: HoldRecords,
    /// States of the jobs in its cluster.
    pub cluster: ClusterState,
    /// Recent events in the pool.
    pub recent_in_pool: RecentCounts,
    /// Recent events of the holds with the same reason.
    pub recent_for_reason: RecentCounts,
    /// Jobs submitted in each window of [`WINDOW_FRAMES`].
    pub recent_submissions: [u32; WINDOW_FRAMES.len()],
}
