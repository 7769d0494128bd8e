//! Context jobs: which of the jobs that exist in a sample's window stand beside the held one, and in which order.

use std::collections::BTreeMap;

use rand::Rng;

use super::spans::{Spans, Stretch, ended};
use crate::config;
use crate::events::{Job, Jobs};

/// How context jobs are chosen, with the index that takes.
#[derive(Debug)]
pub(super) enum Context {
    Uniform(Spans),
    Recent(Spans),
    SameOwnerFirst(Spans, BTreeMap<u64, Spans>),
}

impl Context {
    pub(super) fn new(choice: config::Context, jobs: &Jobs<'_>) -> Context {
        let spans = Spans::of(jobs);
        match choice {
            config::Context::Uniform => Context::Uniform(spans),
            config::Context::Recent => Context::Recent(spans),
            config::Context::SameOwnerFirst => Context::SameOwnerFirst(spans, Spans::by_owner(jobs)),
        }
    }

    /// So many samples, which are near in time, are best made together: few, so that all threads have some, unless they all
    /// look at one [`Activity`].
    pub(super) fn batch_len(&self) -> usize {
        match self {
            Context::Recent(_) => 1 << 13,
            _ => 1 << 10,
        }
    }

    /// What samples whose windows lie in `stretch` need to know of it all.
    pub(super) fn activity(&self, jobs: &Jobs<'_>, stretch: Stretch) -> Activity {
        match self {
            Context::Recent(spans) => Activity::of(jobs, spans, stretch),
            _ => Activity::default(),
        }
    }

    /// Up to `count` jobs other than `primary` that exist in `window`. What happens after it has no influence.
    pub(super) fn choose(
        &self,
        (primary, owner): (u32, u64),
        window: Stretch,
        count: usize,
        activity: &Activity,
        generator: &mut impl Rng,
    ) -> Vec<u32> {
        // The primary job stands for itself, so that it is not drawn, and leaves at the end.
        let mut chosen = Vec::with_capacity(count + 1);
        chosen.push(primary);
        match self {
            Context::Uniform(spans) => spans.draw(window, count + 1, generator, &mut chosen),
            Context::Recent(_) => activity.latest(window, count + 1, &mut chosen),
            Context::SameOwnerFirst(spans, by_owner) => {
                if let Some(own) = by_owner.get(&owner) {
                    own.draw(window, count + 1, generator, &mut chosen);
                }
                spans.draw(window, count + 1, generator, &mut chosen);
            }
        }
        chosen.remove(0);
        chosen
    }
}

/// Which jobs were active when, over a stretch of time: their events in it, and the last one before it.
#[derive(Debug, Default)]
pub(super) struct Activity {
    events: Vec<Moment>,
}

/// An event of a job: its time, the job, and whether it has ended then, as a number in this order, which sorts fast.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Moment(u128);

impl Moment {
    fn new(time_ms: i64, job: u32, has_ended: bool) -> Moment {
        // The earliest time is the lowest number.
        let time = time_ms.cast_unsigned() ^ 1 << 63;
        Moment(u128::from(time) << 64 | u128::from(job) << 1 | u128::from(has_ended))
    }

    fn time_ms(self) -> i64 {
        ((self.0 >> 64) as u64 ^ 1 << 63).cast_signed()
    }

    fn job(self) -> u32 {
        (self.0 >> 1) as u32
    }

    fn has_ended(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Activity {
    fn of(jobs: &Jobs<'_>, spans: &Spans, stretch: Stretch) -> Activity {
        let mut events = Vec::new();
        for job in spans.all(stretch) {
            let history = jobs.history(job as usize);
            let known = history.time_ms.partition_point(|&time_ms| time_ms <= stretch.1);
            let first = history.time_ms.partition_point(|&time_ms| time_ms <= stretch.0).saturating_sub(1);
            let mut has_ended = false;
            for at in 0..known {
                has_ended = ended(has_ended, history.number[at]);
                events.extend((at >= first).then(|| Moment::new(history.time_ms[at], job, has_ended)));
            }
        }
        events.sort_unstable();
        Activity { events }
    }

    /// Adds the jobs that were active last, latest first, until `chosen` has `count`.
    fn latest(&self, (from_ms, to_ms): Stretch, count: usize, chosen: &mut Vec<u32>) {
        let known = self.events.partition_point(|event| event.time_ms() <= to_ms);
        let mut gone = Vec::new();
        for event in self.events[..known].iter().rev() {
            if chosen.len() >= count {
                break;
            }
            let job = event.job();
            if !chosen.contains(&job) && !gone.contains(&job) {
                let jobs = if event.has_ended() && event.time_ms() < from_ms { &mut gone } else { &mut *chosen };
                jobs.push(job);
            }
        }
    }
}

/// The generator for the context of one sample: it depends on the seed and on which hold of which job it is.
pub(super) fn generator(seed: u64, job: &Job<'_>, earlier_holds: u32) -> impl Rng + use<> {
    let parts = [
        i64::from(job.ap),
        i64::from(job.cluster),
        i64::from(job.proc),
        job.history.time_ms[0],
        i64::from(earlier_holds),
    ];
    crate::seed::generator(seed, "context", &parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eventlog::Event;
    use crate::events::store_of;

    fn chosen(choice: config::Context, events: &[(i32, i64, u16)], window: Stretch, count: usize) -> Vec<u32> {
        let event =
            |&(cluster, s, number): &(i32, i64, u16)| Event { cluster, time_ms: s * 1000, number, ..Event::default() };
        let store = store_of(&events.iter().map(event).collect::<Vec<_>>());
        let jobs = store.jobs();
        let context = Context::new(choice, &jobs);
        let activity = context.activity(&jobs, (window.0 - 50_000, window.1 + 50_000));
        let mut generator = generator(1, &jobs.get(0), 0);
        context.choose((0, 0), window, count, &activity, &mut generator)
    }

    #[test]
    fn recent_jobs_come_in_the_order_of_their_last_events() {
        // Jobs 0 to 5: the primary; active at 70 and 100; at 90; ended at 40; ended at 95; active only later.
        let events = [(0, 0, 0), (0, 100, 12), (1, 0, 0), (1, 70, 1), (1, 100, 4), (2, 0, 0), (2, 90, 1), (3, 0, 0)];
        let more = [(3, 40, 5), (4, 0, 0), (4, 95, 5), (5, 101, 0), (6, 0, 0), (2, 110, 12)];
        let events = [&events[..], &more].concat();
        let recent = |count| chosen(config::Context::Recent, &events, (50_000, 100_000), count);
        assert_eq!(recent(9), [1, 4, 2, 6]);
        assert_eq!(recent(2), [1, 4]);
    }

    #[test]
    fn all_choices_leave_out_the_primary_and_those_that_do_not_exist() {
        let events = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (2, 10, 9), (3, 60, 0), (4, 200, 0)];
        for choice in [config::Context::Uniform, config::Context::Recent, config::Context::SameOwnerFirst] {
            let mut found = chosen(choice, &events, (50_000, 100_000), 9);
            found.sort_unstable();
            assert_eq!(found, [1, 3], "{choice}");
        }
    }
}
