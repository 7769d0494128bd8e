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
    /// Time, job, and whether it has ended then; in order.
    events: Vec<(i64, u32, bool)>,
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
                events.extend((at >= first).then_some((history.time_ms[at], job, has_ended)));
            }
        }
        events.sort_unstable();
        Activity { events }
    }

    /// Adds the jobs that were active last, latest first, until `chosen` has `count`.
    fn latest(&self, (from_ms, to_ms): Stretch, count: usize, chosen: &mut Vec<u32>) {
        let known = self.events.partition_point(|event| event.0 <= to_ms);
        let mut gone = Vec::new();
        for &(time_ms, job, has_ended) in self.events[..known].iter().rev() {
            if chosen.len() >= count {
                break;
            }
            if !chosen.contains(&job) && !gone.contains(&job) {
                let jobs = if has_ended && time_ms < from_ms { &mut gone } else { &mut *chosen };
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
