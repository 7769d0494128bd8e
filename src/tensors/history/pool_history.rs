//! The history of a whole store, for lookups of the facts known about a hold at prediction time.

use super::cluster_states::ClusterStates;
use super::hold_records::{PredictionRecords, RecordHistory};
use super::known_facts::KnownFacts;
use super::last_run::{LastRun, seconds_between};
use super::recent_events::count_in_windows;
use crate::cycles::QueriedHold;
use htcondor_eventlog::SUBMIT;
use poolcast_events::{EventStore, StoredJob};

/// The events of all jobs of a store, indexed by time. Its memory grows with the holds, the jobs,
/// and the state changes of clusters that have a hold.
#[derive(Debug)]
pub struct PoolHistory {
    records: RecordHistory,
    clusters: ClusterStates,
    /// Submission times in epoch ms, sorted.
    submit_ms: Vec<i64>,
    frame_ms: i64,
}

impl PoolHistory {
    /// Indexes the jobs in `store`. Recent events are counted in frames of `timeframe_len_s`
    /// seconds.
    ///
    /// Success is always the success of `label = next`: the final end of a job is known too late.
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

    /// Returns the facts known about one hold of `job` at its prediction time.
    pub fn facts(&self, job: &StoredJob<'_>, asked: &QueriedHold) -> KnownFacts {
        self.facts_with_previous(job, asked, &mut None)
    }

    /// Like [`PoolHistory::facts`], but reuses the records of the previous hold in `last`. Replaces
    /// them by the records of this hold.
    pub(crate) fn facts_with_previous(
        &self,
        job: &StoredJob<'_>,
        asked: &QueriedHold,
        last: &mut Option<PredictionRecords>,
    ) -> KnownFacts {
        let QueriedHold {
            cycle, asked_ms, ..
        } = asked;
        let frame_ms = self.frame_ms;
        let known = (self.records).at_prediction_time(job, asked, frame_ms, last.as_ref());
        let submitted = (self.submit_ms).partition_point(|&submit_ms| submit_ms <= *asked_ms);
        let facts = KnownFacts {
            hold_code: job.history.hold_code[cycle.hold],
            hold_subcode: job.history.hold_subcode[cycle.hold],
            earlier_holds: cycle.earlier_holds,
            since_submit_s: seconds_between(job.submit_ms, *asked_ms),
            held_for_s: seconds_between(job.history.time_ms[cycle.hold], *asked_ms),
            request: job.request,
            last_run: LastRun::before(job, cycle),
            records: known.records,
            cluster: self.clusters.at_prediction_time(job, *asked_ms),
            recent_in_pool: known.recent_in_pool,
            recent_for_reason: known.recent_for_reason,
            recent_submissions: count_in_windows(&self.submit_ms[..submitted], *asked_ms, frame_ms),
        };
        *last = Some(known);
        facts
    }
}

/// Returns the sorted submission times of the jobs whose submission is in the log.
fn submit_times(store: &EventStore) -> Vec<i64> {
    let jobs = store.jobs();
    let mut times_ms = Vec::with_capacity(jobs.len());
    for index in 0..jobs.len() {
        if jobs.numbers(index).first() == Some(&SUBMIT) {
            times_ms.push(jobs.history(index).time_ms[0]);
        }
    }
    // The times of each access point are nearly sorted, which makes this sort fast.
    times_ms.sort();
    times_ms
}

#[cfg(test)]
mod tests {
    use super::super::static_features::tests::facts_of;
    use super::*;
    use crate::cycles::hold_cycles;
    use htcondor_eventlog::{EXECUTE, HELD, JobEvent, RELEASED, TERMINATED};
    use poolcast_config::{LabelKind, WindowPosition};
    use test_stores::store_of;

    /// The jobs belong to two clusters, are held for one of two reasons, and some of them are
    /// released in the same second.
    #[test]
    fn reused_records_equal_recomputed_ones() {
        let mut events = Vec::new();
        for job in 0..24 {
            let second = i64::from(job / 6);
            let life = [
                (0, SUBMIT),
                (1 + i64::from(job), EXECUTE),
                (40 + i64::from(job), HELD),
                (70 + second, RELEASED),
                (71 + second, if job % 5 == 0 { HELD } else { TERMINATED }),
            ];
            events.extend(life.map(|(s, number)| JobEvent {
                cluster: 1 + job % 2,
                proc: job,
                time_ms: s * 1000,
                number,
                normal: u8::from(job % 3 > 0),
                hold_code: i32::from(number == HELD) * 13,
                facts: facts_of(number, 1 + job.cast_unsigned() % 4 / 2),
                ..JobEvent::default()
            }));
        }
        let store = store_of(&events);
        let (jobs, history) = (store.jobs(), PoolHistory::new(&store, 10));

        let mut asked = Vec::new();
        for (index, job) in jobs.iter().enumerate() {
            let cycle = hold_cycles(job.history, LabelKind::Next, &[])[0];
            let release = WindowPosition::Release;
            asked.push(QueriedHold::new(
                index as u32,
                &job.history,
                cycle,
                release,
                0,
            ));
        }
        asked.sort_by_key(|asked| (asked.asked_ms, asked.job));

        let mut last = None;
        for asked in &asked {
            let job = jobs.get(asked.job as usize);
            let after_last = history.facts_with_previous(&job, asked, &mut last);
            assert_eq!(after_last, history.facts(&job, asked), "{}", job.id());
        }
        let decided = |at: usize| {
            let facts = history.facts(&jobs.get(asked[at].job as usize), &asked[at]);
            facts
                .records
                .holds(super::super::HoldRecordKind::Pool)
                .outcomes
                .decided()
        };
        assert_eq!((decided(0), decided(5), decided(23)), (0, 0, 12));
    }
}
