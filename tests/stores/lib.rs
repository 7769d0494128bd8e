//! Stores of few events, for the unit tests of the crates that read stores.

mod test_log;

pub use test_log::{TestLog, log_with_outages};

use htcondor_eventlog::{EventBatch, JobAd, JobEvent, LogSummary};
use poolcast_events::{EventStore, EventStoreBuilder};

/// Returns a store in memory of 60 jobs, submitted 100 seconds apart. Each is held once and
/// released. Two of three then succeed; the others are held again. `start_s` returns the start
/// of a job, in seconds after its submission.
pub fn store_of_held_jobs(start_s: impl Fn(i32) -> i64) -> EventStore {
    let mut all = Vec::new();
    for cluster in 1..=60 {
        let last = if cluster % 3 == 0 { 12 } else { 5 };
        let life = [
            (0, 0),
            (start_s(cluster), 1),
            (20, 12),
            (30, 13),
            (40, last),
        ];
        for (s, number) in life {
            all.push(JobEvent {
                cluster,
                time_ms: 1000 * (100 * i64::from(cluster) + s),
                number,
                normal: u8::from(number == 5),
                hold_code: if number == 12 { 13 } else { 0 },
                ..JobEvent::default()
            });
        }
    }
    store_of(&all)
}

/// Returns a store in memory of `events`, all from one log.
pub fn store_of(events: &[JobEvent]) -> EventStore {
    store_with_ads(events, &[])
}

/// Returns a store in memory of `events` and `ads`, all from one log.
pub fn store_with_ads(events: &[JobEvent], ads: &[JobAd]) -> EventStore {
    let mut builder = EventStoreBuilder::new("", "", None);
    let mut in_time = events.to_vec();
    in_time.sort_by_key(|event| event.time_ms);
    builder
        .add_batch(&EventBatch {
            ap: "ap",
            events: &in_time,
            ads,
            texts: &[],
            stretch: 0,
        })
        .expect("added");
    let times = || events.iter().map(|event| event.time_ms);
    let log = LogSummary {
        begin_ms: times().min(),
        end_ms: times().max(),
        ..LogSummary::default()
    };
    builder.end_log("log", "", log, None);
    builder.into_store().expect("built")
}
