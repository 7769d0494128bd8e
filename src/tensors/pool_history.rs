//! The history of a whole store, from which what is known of a hold at its moment of asking is
//! looked up.

use rayon::prelude::*;

use super::asked_hold::AskedHold;
use super::cluster_states::ClusterStates;
use super::hold_records::RecordHistory;
use super::known_facts::KnownFacts;
use super::last_run::{LastRun, seconds_between};
use super::recent_events::{RecentCounts, recent_moments};
use crate::eventlog::SUBMIT;
use crate::events::{EventStore, StoredJob};

/// What had happened to the jobs of a store, for searches by moment. Its memory grows with the
/// holds, the jobs, and the changes of state of clusters that have a hold.
#[derive(Debug)]
pub struct PoolHistory {
    records: RecordHistory,
    clusters: ClusterStates,
    /// When each job was submitted, in order.
    submit_ms: Vec<i64>,
    frame_ms: i64,
}

impl PoolHistory {
    /// The history of the jobs in `store`; what is recent is counted in frames of
    /// `timeframe_len_s` seconds. Success is that of `label = next`: how a job ends in the end is
    /// known too late.
    pub fn new(store: &EventStore, timeframe_len_s: u32) -> PoolHistory {
        let (records, (clusters, submit_ms)) = rayon::join(
            || RecordHistory::new(store),
            || rayon::join(|| ClusterStates::new(store), || submit_times(store)),
        );
        PoolHistory {
            records,
            clusters,
            submit_ms,
            frame_ms: i64::from(timeframe_len_s) * 1000,
        }
    }

    /// What is known of one hold of `job` at its moment of asking.
    pub fn facts(&self, job: &StoredJob<'_>, asked: &AskedHold) -> KnownFacts {
        let AskedHold {
            cycle, asked_ms, ..
        } = asked;
        let recent = |lists| RecentCounts::when_asked(lists, *asked_ms, self.frame_ms);
        KnownFacts {
            hold_code: job.history.hold_code[cycle.hold],
            hold_subcode: job.history.hold_subcode[cycle.hold],
            earlier_holds: cycle.earlier_holds,
            since_submit_s: seconds_between(job.submit_ms, *asked_ms),
            held_for_s: seconds_between(job.history.time_ms[cycle.hold], *asked_ms),
            request: job.request,
            last_run: LastRun::before(job, cycle.hold),
            records: self.records.when_asked(job, asked),
            cluster: self.clusters.when_asked(job, *asked_ms),
            recent_in_pool: recent(self.records.of_pool()),
            recent_for_reason: recent(self.records.of_reason(job, cycle.hold)),
            recent_submissions: recent_moments(&self.submit_ms, *asked_ms, self.frame_ms),
        }
    }
}

/// When jobs were submitted whose submission is in the log.
fn submit_times(store: &EventStore) -> Vec<i64> {
    let mut times_ms = Vec::new();
    for job in store.jobs().iter() {
        if job.history.number.first() == Some(&SUBMIT) {
            times_ms.push(job.history.time_ms[0]);
        }
    }
    times_ms.par_sort_unstable();
    times_ms
}
