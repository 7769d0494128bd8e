//! The history of a whole store, from which what is known of a hold at its moment of asking is
//! looked up.

use super::asked_hold::AskedHold;
use super::cluster_states::ClusterStates;
use super::hold_records::{HoldRecordKind, RecordHistory};
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
        let known = self.records.known(job, asked);
        let recent = |kind| RecentCounts::new(known.of_holds(kind), *asked_ms, self.frame_ms);
        let submitted = (self.submit_ms).partition_point(|&submit_ms| submit_ms <= *asked_ms);
        KnownFacts {
            hold_code: job.history.hold_code[cycle.hold],
            hold_subcode: job.history.hold_subcode[cycle.hold],
            earlier_holds: cycle.earlier_holds,
            since_submit_s: seconds_between(job.submit_ms, *asked_ms),
            held_for_s: seconds_between(job.history.time_ms[cycle.hold], *asked_ms),
            request: job.request,
            last_run: LastRun::before(job, cycle.hold),
            records: known.records(),
            cluster: self.clusters.when_asked(job, *asked_ms),
            recent_in_pool: recent(HoldRecordKind::Pool),
            recent_for_reason: recent(HoldRecordKind::Reason),
            recent_submissions: recent_moments(
                &self.submit_ms[..submitted],
                *asked_ms,
                self.frame_ms,
            ),
        }
    }
}

/// When jobs were submitted whose submission is in the log.
fn submit_times(store: &EventStore) -> Vec<i64> {
    let jobs = store.jobs();
    let mut times_ms = Vec::with_capacity(jobs.len());
    for index in 0..jobs.len() {
        if jobs.numbers(index).first() == Some(&SUBMIT) {
            times_ms.push(jobs.history(index).time_ms[0]);
        }
    }
    // Those of an access point are nearly in order, which this sort makes use of.
    times_ms.sort();
    times_ms
}
