//! Small logs for tests: jobs that use a file on a server, which fails and comes back.

use std::ops::RangeBounds;

use htcondor_eventlog::{
    ABORTED, DecidedBy, EXECUTE, EventFacts, FILE_TRANSFER, HELD, HoldFacts, InputFile, JobAd,
    JobEvent, RELEASED, ReasonKind, ResourceRequest, SUBMIT, SubmissionNames, TERMINATED,
};
use poolcast_events::EventStore;

use crate::store_with_ads;

/// An event of a job: second, number, and the hash of the file that a hold names.
type Event = (i64, u16, u32);

/// A log of jobs under construction.
#[derive(Debug, Default)]
pub struct TestLog {
    events: Vec<JobEvent>,
    ads: Vec<JobAd>,
    jobs: i32,
}

impl TestLog {
    /// Adds a job of a cluster of its own, with these events.
    pub fn add(&mut self, events: &[Event]) -> i32 {
        self.jobs += 1;
        let cluster = self.jobs;
        self.events
            .extend(events.iter().map(|&(s, number, file)| JobEvent {
                cluster,
                time_ms: s * 1000,
                number,
                normal: u8::from(number == TERMINATED),
                value: if number == RELEASED {
                    DecidedBy::Policy as i32
                } else {
                    0
                },
                hold_code: if number == HELD { 13 } else { 0 },
                hold_subcode: if number == HELD { 256 } else { 0 },
                facts: match number {
                    HELD => EventFacts::from_hold(HoldFacts {
                        reason: file,
                        file,
                        origin: file,
                        ..HoldFacts::default()
                    }),
                    _ => EventFacts::default(),
                },
                ..JobEvent::default()
            }));
        cluster
    }

    /// Adds a job that is held at `held_s` for `file`, is released at `released_s`, and then
    /// succeeds or is held again and removed.
    pub fn add_released(&mut self, file: u32, held_s: i64, released_s: i64, succeeds: bool) -> i32 {
        let begun = [
            (held_s - 9, SUBMIT, 0),
            (held_s - 2, EXECUTE, 0),
            (held_s, HELD, file),
        ];
        let then = [(released_s, RELEASED, 0), (released_s + 1, EXECUTE, 0)];
        let end: &[Event] = if succeeds {
            &[(released_s + 9, TERMINATED, 0)]
        } else {
            &[(released_s + 3, HELD, file), (released_s + 60, ABORTED, 0)]
        };
        self.add(&[&begun[..], &then, end].concat())
    }

    /// Makes a person, and not a policy, release the job that was added last.
    pub fn release_last_job_by_hand(&mut self) {
        let last = self.jobs;
        for event in self.events.iter_mut().filter(|event| event.cluster == last) {
            if event.number == RELEASED {
                event.value = DecidedBy::Person as i32;
            }
        }
    }

    /// Adds a job that is held at `held_s` for `file` and stays so.
    pub fn add_held(&mut self, file: u32, held_s: i64) -> i32 {
        self.add(&[
            (held_s - 9, SUBMIT, 0),
            (held_s - 2, EXECUTE, 0),
            (held_s, HELD, file),
        ])
    }

    /// Adds a job of `owner` that is held at `held_s` because a plug-in failed to read `input`, and stays so.
    /// Without a name, its owner is unknown.
    pub fn add_failed_read(&mut self, input: InputFile, held_s: i64, owner: &str) {
        let cluster = self.add_held(input.file, held_s);
        if let Some(held) = self.events.last_mut() {
            held.facts = EventFacts::from_hold(HoldFacts {
                reason: input.file,
                file: input.file,
                origin: input.origin,
                ..HoldFacts::default()
            });
        }
        self.add_ad(cluster, vec![input]);
        if let Some(ad) = self.ads.last_mut() {
            ad.owner = Some(owner.to_owned()).filter(|owner| !owner.is_empty());
        }
    }

    /// Makes the reasons of all holds so far of these `clusters` state `kind`.
    pub fn state(&mut self, clusters: impl RangeBounds<i32>, kind: ReasonKind) {
        let is_hold = |event: &JobEvent| event.number == HELD && clusters.contains(&event.cluster);
        for event in self.events.iter_mut().filter(|event| is_hold(event)) {
            let facts = event.facts.hold(HELD);
            event.facts = EventFacts::from_hold(HoldFacts { kind, ..facts });
        }
    }

    /// Adds a job that is never held. It gets `input` from `read_s` on, begins two seconds later, and
    /// succeeds.
    pub fn add_reader(&mut self, input: InputFile, read_s: i64) {
        let cluster = self.add(&[
            (read_s - 9, SUBMIT, 0),
            (read_s, FILE_TRANSFER, 0),
            (read_s + 2, EXECUTE, 0),
            (read_s + 20, TERMINATED, 0),
        ]);
        self.add_ad(cluster, vec![input]);
    }

    /// Adds the ad of the job of `cluster`, which reads `inputs`.
    pub fn add_ad(&mut self, cluster: i32, inputs: Vec<InputFile>) {
        self.ads.push(JobAd {
            cluster,
            proc: 0,
            schedd: None,
            submit_s: 0,
            owner: Some("ada".to_owned()),
            request: ResourceRequest::default(),
            names: SubmissionNames::default(),
            inputs,
        });
    }

    /// Makes the job that was added last, which has no ad, a further job of `cluster`.
    pub fn move_last_job_to(&mut self, cluster: i32) {
        let last = self.jobs;
        for event in self.events.iter_mut().filter(|event| event.cluster == last) {
            event.cluster = cluster;
            event.proc = last;
        }
    }

    /// Returns the store of the log.
    pub fn store(&self) -> EventStore {
        store_with_ads(&self.events, &self.ads)
    }
}

/// Returns the log of a server whose file 7 fails in every second stretch of 1,000 s, and of a file
/// 9 that is never there. Jobs are held and released all the time.
pub fn log_with_outages(stretches: i64) -> TestLog {
    let mut log = TestLog::default();
    for stretch in 0..stretches {
        let begin_s = 10_000 + 1_000 * stretch;
        let is_up = stretch % 2 == 1;
        for at in 0..12 {
            let held_s = begin_s + 80 * at;
            log.add_released(7, held_s, held_s + 60 + at, is_up);
            log.add_released(9, held_s + 20, held_s + 90 + at, false);
        }
    }
    log
}
