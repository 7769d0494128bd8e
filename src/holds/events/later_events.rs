//! Leaves out of a history what other logs have of the same jobs.

use std::collections::HashMap;

use super::access_points::AccessPoints;
use super::job_row::JobId;
use htcondor_eventlog::{EventBatch, JobEvent};

/// Maximum difference between the times of one event in a log and in a history, in ms.
const CLOCK_SLACK_MS: i64 = 2000;

/// The time of the last event of each job in some logs, epoch ms.
#[derive(Debug, Default)]
pub(super) struct LastEvents {
    access_points: AccessPoints,
    times_ms: HashMap<JobId, i64>,
}

impl LastEvents {
    /// Adds the next events of a log.
    pub(super) fn add(&mut self, batch: &EventBatch<'_>) {
        let ap = self.access_points.index(batch.ap);
        for event in batch.events {
            let last_ms = self.times_ms.entry(id(ap, event)).or_insert(i64::MIN);
            *last_ms = event.time_ms.max(*last_ms);
        }
    }

    /// Returns the events in `batch`, of a history, that are later than the last event of their job
    /// in the logs. Times in a history are estimates in part, so earlier events cannot be compared.
    pub(super) fn later_events(&mut self, batch: &EventBatch<'_>) -> Vec<JobEvent> {
        let ap = self.access_points.index(batch.ap);
        let is_later = |event: &JobEvent| {
            let last_ms = self.times_ms.get(&id(ap, event));
            last_ms.is_none_or(|last_ms| event.time_ms - CLOCK_SLACK_MS > *last_ms)
        };
        batch.events.iter().copied().filter(is_later).collect()
    }
}

fn id(ap: u32, event: &JobEvent) -> JobId {
    JobId {
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
        let event = |(cluster, s): (i32, i64)| JobEvent {
            cluster,
            time_ms: 1000 * s,
            ..JobEvent::default()
        };
        let logged = [(1, 10), (1, 50), (1, 20), (2, 10)].map(event);
        let past = [(1, 49), (1, 52), (1, 53), (2, 30), (3, 1)].map(event);
        let batch = |ap, events| EventBatch {
            ap,
            events,
            ads: &[],
            hold_texts: &[],
            stretch: 0,
        };
        let mut last = LastEvents::default();
        last.add(&batch("ap", &logged));
        let later = last.later_events(&batch("ap", &past));
        assert_eq!(later, [(1, 53), (2, 30), (3, 1)].map(event));
        assert_eq!(last.later_events(&batch("other", &past)), past);
    }
}
