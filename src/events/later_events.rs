//! Leaves out of a history what other logs have of the same jobs.

use std::collections::HashMap;

use super::access_points::AccessPoints;
use super::job_row::{StoredId, changes_state};
use htcondor_eventlog::{EventBatch, JobEvent};

/// Maximum difference between the times of one event in a log and in a history, in ms.
const CLOCK_SLACK_MS: i64 = 2000;

/// The last event of each job in some logs that changed its state.
#[derive(Debug, Default)]
pub(super) struct LastEvents {
    access_points: AccessPoints,
    by_job: HashMap<StoredId, LastEvent>,
}

/// The time and the number of an event.
#[derive(Debug, Clone, Copy, Default)]
struct LastEvent {
    time_ms: i64,
    number: u16,
}

impl LastEvents {
    /// Adds the next events of a log.
    pub(super) fn add(&mut self, batch: &EventBatch<'_>) {
        let ap = self.access_points.index(batch.ap);
        for event in batch.events {
            let JobEvent {
                time_ms, number, ..
            } = *event;
            let last = self.by_job.entry(id(ap, event)).or_default();
            if changes_state(number) && time_ms >= last.time_ms {
                *last = LastEvent { time_ms, number };
            }
        }
    }

    /// Returns the events in `batch`, of a history, that are later than the last event of their job
    /// in the logs. Times in a history are estimates in part, so earlier events cannot be compared.
    pub(super) fn later_events(&mut self, batch: &EventBatch<'_>) -> Vec<JobEvent> {
        let ap = self.access_points.index(batch.ap);
        let is_later = |event: &JobEvent| {
            let Some(last) = self.by_job.get(&id(ap, event)) else {
                return true;
            };
            let is_same = event.number == last.number;
            let slack_ms = if is_same { CLOCK_SLACK_MS } else { 0 };
            event.time_ms - slack_ms > last.time_ms
        };
        batch.events.iter().copied().filter(is_later).collect()
    }
}

fn id(ap: u32, event: &JobEvent) -> StoredId {
    StoredId {
        ap,
        cluster: event.cluster,
        proc: event.proc,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_continues_what_logs_have() {
        let event = |(cluster, s, number): (i32, i64, u16)| JobEvent {
            cluster,
            time_ms: 1000 * s,
            number,
            ..JobEvent::default()
        };
        let logged = [(1, 10, 0), (1, 50, 12), (1, 20, 1), (1, 60, 6), (2, 10, 1)].map(event);
        let past = [(1, 49, 12), (1, 52, 12), (1, 52, 13), (1, 53, 12)].map(event);
        let other = [(2, 10, 13), (2, 11, 12), (3, 1, 0)].map(event);
        let batch = |ap, events| EventBatch {
            ap,
            events,
            ads: &[],
            texts: &[],
            stretch: 0,
        };
        let mut last = LastEvents::default();
        last.add(&batch("ap", &logged));
        assert_eq!(last.later_events(&batch("ap", &past)), past[2..]);
        assert_eq!(last.later_events(&batch("ap", &other)), other[1..]);
        assert_eq!(last.later_events(&batch("other", &past)), past);
    }
}
