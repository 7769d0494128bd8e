//! What is known of a hold besides the frames, in the units of the log.

use super::cluster_states::ClusterState;
use super::hold_records::HoldRecords;
use super::last_run::LastRun;
use super::recent_events::{RECENT_FRAMES, RecentCounts};
use htcondor_eventlog::ResourceRequest;

/// What is known of a held job at the moment of asking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownFacts {
    /// The hold code.
    pub hold_code: i32,
    /// The hold subcode.
    pub hold_subcode: i32,
    /// How many holds the job had before.
    pub earlier_holds: u32,
    /// From the submission to the moment of asking.
    pub since_submit_s: u32,
    /// From the hold to the moment of asking; 0 where it is asked at the hold.
    pub held_for_s: u32,
    /// What the job asked for when it was submitted.
    pub request: ResourceRequest,
    /// The run that ended with the hold.
    pub last_run: LastRun,
    /// What had become of holds like it.
    pub records: HoldRecords,
    /// The jobs of its cluster.
    pub cluster: ClusterState,
    /// What happened in the pool in the last frames.
    pub recent_in_pool: RecentCounts,
    /// What happened to holds for the same reason.
    pub recent_for_reason: RecentCounts,
    /// How many jobs were submitted in each of the last [`RECENT_FRAMES`].
    pub recent_submissions: [u32; RECENT_FRAMES.len()],
}
