//! Context jobs: which of the jobs that exist in a sample's window stand beside the held one, and in which order.

use std::collections::BTreeMap;

use rand::Rng;
use rayon::prelude::*;

use super::spans::{Spans, Stretch, ended};
use crate::config;
use crate::events::{JobHistory, StoredJob, StoredJobs};

/// How context jobs are chosen, with the index that takes.
#[derive(Debug)]
pub(super) enum Context {
    Uniform(Spans),
    Recent(Spans),
    SameOwnerFirst(Spans, BTreeMap<u64, Spans>),
}

impl Context {
    pub(super) fn new(choice: config::ContextChoice, jobs: &StoredJobs<'_>) -> Context {
        let spans = Spans::of(jobs);
        match choice {
            config::ContextChoice::Uniform => Context::Uniform(spans),
            config::ContextChoice::Recent => Context::Recent(spans),
            config::ContextChoice::SameOwnerFirst => {
                Context::SameOwnerFirst(spans, Spans::by_owner(jobs))
            }
        }
    }

    /// What samples with these windows, of up to `count` jobs each, need to know of them all.
    pub(super) fn activity(
        &self,
        jobs: &StoredJobs<'_>,
        windows: impl Iterator<Item = Stretch>,
        count: usize,
    ) -> Activity {
        match self {
            Context::Recent(spans) => {
                Activity::of(jobs, spans, &windows.collect::<Vec<_>>(), count)
            }
            _ => Activity::default(),
        }
    }

    /// Adds jobs that exist in `window` until `chosen`, which holds the primary job, of owner `owner`, has `count` or there
    /// are no more. What happens after the window has no influence.
    pub(super) fn choose(
        &self,
        owner: u64,
        window: Stretch,
        count: usize,
        activity: &Activity,
        generator: &mut impl Rng,
        chosen: &mut Vec<u32>,
    ) {
        match self {
            Context::Uniform(spans) => spans.draw(window, count, generator, chosen),
            Context::Recent(_) => activity.latest(window, count, chosen),
            Context::SameOwnerFirst(spans, by_owner) => {
                if let Some(own) = by_owner.get(&owner) {
                    own.draw(window, count, generator, chosen);
                }
                spans.draw(window, count, generator, chosen);
            }
        }
    }
}

/// Which jobs were active when: their events from the end of the first window to that of the last, and what had happened last
/// before, as far back as any window needs.
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

/// The events of a job, in order, the last of each moment; not those that are written about it once it has ended, and leave
/// it so.
fn moments(job: u32, history: JobHistory<'_>) -> impl Iterator<Item = Moment> {
    let (mut has_ended, mut is_active) = (false, false);
    history
        .number
        .iter()
        .enumerate()
        .filter_map(move |(at, &number)| {
            let had_ended = has_ended;
            has_ended = ended(had_ended, number);
            is_active |= !(had_ended && has_ended);
            let is_last = history.time_ms.get(at + 1) != Some(&history.time_ms[at]);
            (is_last && std::mem::take(&mut is_active))
                .then(|| Moment::new(history.time_ms[at], job, has_ended))
        })
}

impl Activity {
    fn of(jobs: &StoredJobs<'_>, spans: &Spans, windows: &[Stretch], count: usize) -> Activity {
        let from_ms = windows.iter().map(|window| window.0).min().unwrap_or(0);
        let first_ms = windows.iter().map(|window| window.1).min().unwrap_or(0);
        let to_ms = windows.iter().map(|window| window.1).max().unwrap_or(0);
        let existing: Vec<u32> = spans.all((from_ms, to_ms)).collect();
        let parts = existing.par_chunks(1 << 12).map(|part| {
            let (mut before, mut events) = (Vec::new(), Vec::new());
            for &job in part {
                let mut moments = moments(job, jobs.history(job as usize)).peekable();
                let until_first =
                    std::iter::from_fn(|| moments.next_if(|moment| moment.time_ms() <= first_ms));
                let last_before = until_first.last();
                let later = events.len();
                events.extend(moments.take_while(|moment| moment.time_ms() <= to_ms));
                let ends_later = events[later..].iter().any(|moment| moment.has_ended());
                before.extend(last_before.map(|moment| (moment, ends_later)));
            }
            (before, events)
        });
        let (before, events): (Vec<_>, Vec<_>) = parts.unzip();
        let (mut before, mut events) = (before.concat(), events.concat());
        before.par_sort_unstable_by(|a, b| b.cmp(a));

        // A sample may pass over a job that ends before its window, and takes each other one that
        // it comes to. So only jobs that no window can miss count as found.
        let mut missing = count;
        for (moment, ends_later) in before {
            if missing == 0 {
                break;
            }
            if !moment.has_ended() && !ends_later {
                missing -= 1;
            }
            events.push(moment);
        }
        events.par_sort_unstable();
        Activity { events }
    }

    /// Adds the jobs that were active last, latest first, until `chosen` has `count`.
    fn latest(&self, (from_ms, to_ms): Stretch, count: usize, chosen: &mut Vec<u32>) {
        let known = self
            .events
            .partition_point(|event| event.time_ms() <= to_ms);
        let mut gone = Vec::new();
        for event in self.events[..known].iter().rev() {
            if chosen.len() >= count {
                break;
            }
            let job = event.job();
            if !chosen.contains(&job) && !gone.contains(&job) {
                let jobs = if event.has_ended() && event.time_ms() < from_ms {
                    &mut gone
                } else {
                    &mut *chosen
                };
                jobs.push(job);
            }
        }
    }
}

/// The generator for the context of one sample: it depends on the seed and on which hold of which job it is.
pub(super) fn generator(seed: u64, job: &StoredJob<'_>, earlier_holds: u32) -> impl Rng + use<> {
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
    use crate::eventlog::JobEvent;
    use crate::events::{EventStore, store_of};
    use proptest::prelude::*;

    fn store(events: &[(i32, i64, u16)]) -> EventStore {
        let event = |&(cluster, s, number): &(i32, i64, u16)| JobEvent {
            cluster,
            time_ms: s * 1000,
            number,
            ..JobEvent::default()
        };
        store_of(&events.iter().map(event).collect::<Vec<_>>())
    }

    proptest! {
        /// What is looked up for many windows serves each of them as what is looked up for it alone.
        #[test]
        fn many_windows_share_what_is_known_of_activity(
            events in proptest::collection::vec((0..30i32, 0..400i64, 0..14u16), 1..300),
            windows in proptest::collection::vec((0..400_000i64, 0..100_000i64), 1..9),
            count in 1..9usize,
        ) {
            let store = store(&events);
            let jobs = store.jobs();
            let context = Context::new(config::ContextChoice::Recent, &jobs);
            let windows: Vec<Stretch> = windows.iter().map(|&(from_ms, length_ms)| (from_ms, from_ms + length_ms)).collect();
            let together = context.activity(&jobs, windows.iter().copied(), count);
            for window in windows {
                let (mut shared, mut alone) = (vec![0], vec![0]);
                together.latest(window, count, &mut shared);
                context.activity(&jobs, std::iter::once(window), count).latest(window, count, &mut alone);
                prop_assert_eq!(shared, alone);
            }
        }
    }

    fn chosen(
        choice: config::ContextChoice,
        events: &[(i32, i64, u16)],
        window: Stretch,
        count: usize,
    ) -> Vec<u32> {
        let store = store(events);
        let jobs = store.jobs();
        let context = Context::new(choice, &jobs);
        let others = [
            (window.0 - 50_000, window.1 - 50_000),
            window,
            (window.0 + 50_000, window.1 + 50_000),
        ];
        let activity = context.activity(&jobs, others.into_iter(), count + 1);
        let mut generator = generator(1, &jobs.get(0), 0);
        let mut chosen = vec![0];
        context.choose(0, window, count + 1, &activity, &mut generator, &mut chosen);
        chosen.split_off(1)
    }

    #[test]
    fn a_job_that_ends_between_two_windows_leaves_no_gap_in_the_later_one() {
        let created = [1, 2, 3, 4].map(|cluster| (cluster, 0, 0));
        let events = [&created[..], &[(0, 1, 0), (3, 302, 5)]].concat();
        let store = store(&events);
        let jobs = store.jobs();
        let context = Context::new(config::ContextChoice::Recent, &jobs);
        let windows = [(0, 1_000), (302_001, 302_001)];
        let activity = context.activity(&jobs, windows.into_iter(), 3);

        let mut chosen = vec![0];
        activity.latest(windows[1], 3, &mut chosen);
        assert_eq!(chosen, [0, 4, 2]);
    }

    #[test]
    fn recent_jobs_come_in_the_order_of_their_last_events() {
        // Jobs 0 to 5: the primary; active at 70 and 100; at 90; ended at 40; ended at 95; active only later.
        let events = [
            (0, 0, 0),
            (0, 100, 12),
            (1, 0, 0),
            (1, 70, 1),
            (1, 100, 4),
            (2, 0, 0),
            (2, 90, 1),
            (3, 0, 0),
        ];
        let more = [
            (3, 40, 5),
            (4, 0, 0),
            (4, 95, 5),
            (5, 101, 0),
            (6, 0, 0),
            (2, 110, 12),
        ];
        let events = [&events[..], &more].concat();
        let recent = |count| {
            chosen(
                config::ContextChoice::Recent,
                &events,
                (50_000, 100_000),
                count,
            )
        };
        assert_eq!(recent(9), [1, 4, 2, 6]);
        assert_eq!(recent(2), [1, 4]);
    }

    #[test]
    fn all_choices_leave_out_the_primary_and_those_that_do_not_exist() {
        let events = [
            (0, 0, 0),
            (1, 0, 0),
            (2, 0, 0),
            (2, 10, 9),
            (3, 60, 0),
            (4, 200, 0),
        ];
        for choice in [
            config::ContextChoice::Uniform,
            config::ContextChoice::Recent,
            config::ContextChoice::SameOwnerFirst,
        ] {
            let mut found = chosen(choice, &events, (50_000, 100_000), 9);
            found.sort_unstable();
            assert_eq!(found, [1, 3], "{choice}");
        }
    }
}
