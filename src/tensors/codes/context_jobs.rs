//! Context jobs: selects the jobs that a sample shows beside the held one, and their order.

use std::collections::BTreeMap;

use rand::Rng;

use super::frames::SampleWindow;
use super::life_spans::LifeSpans;
use super::recent_activity::RecentActivity;
use super::related_jobs::{RelatedJobs, write_shared};
use crate::cycles::QueriedHold;
use poolcast_config as config;
use poolcast_events::{StoredJob, StoredJobs};

/// The method of choosing context jobs, with the index that it needs.
#[derive(Debug)]
pub(crate) enum ContextJobs {
    Uniform(LifeSpans),
    Recent(LifeSpans),
    SameOwnerFirst {
        all: LifeSpans,
        by_owner: BTreeMap<u64, LifeSpans>,
    },
    Related(RelatedJobs),
}

/// A hold, with the time range and the size of its sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SampledHold {
    pub(crate) hold: QueriedHold,
    pub(crate) window: SampleWindow,
    /// Jobs of the sample, the held one included.
    pub(crate) count: usize,
}

impl ContextJobs {
    pub(crate) fn new(choice: config::ContextChoice, jobs: &StoredJobs<'_>) -> ContextJobs {
        let all = || LifeSpans::from_all_jobs(jobs);
        match choice {
            config::ContextChoice::Uniform => ContextJobs::Uniform(all()),
            config::ContextChoice::Recent => ContextJobs::Recent(all()),
            config::ContextChoice::Related => ContextJobs::Related(RelatedJobs::new(jobs)),
            config::ContextChoice::SameOwnerFirst => ContextJobs::SameOwnerFirst {
                all: all(),
                by_owner: LifeSpans::by_owner(jobs),
            },
        }
    }

    /// Looks up the recent activity that samples with these windows share. Each sample has up to
    /// `count` jobs.
    pub(crate) fn activity(
        &self,
        jobs: &StoredJobs<'_>,
        windows: impl Iterator<Item = SampleWindow>,
        count: usize,
    ) -> RecentActivity {
        match self {
            ContextJobs::Recent(spans) => {
                RecentActivity::new(jobs, spans, &windows.collect::<Vec<_>>(), count)
            }
            ContextJobs::Uniform(_)
            | ContextJobs::SameOwnerFirst { .. }
            | ContextJobs::Related(_) => RecentActivity::default(),
        }
    }

    /// Adds jobs that exist in `window` until `chosen` has as many jobs as the sample, or no more exist. Related
    /// jobs may have ended before it. `chosen` must already hold the job of `hold`. Events after the
    /// window, and for related jobs after prediction time, have no influence.
    pub(crate) fn choose(
        &self,
        jobs: &StoredJobs<'_>,
        sampled: SampledHold,
        activity: &RecentActivity,
        generator: &mut impl Rng,
        chosen: &mut Vec<u32>,
    ) {
        let SampledHold {
            hold,
            window,
            count,
        } = sampled;
        match self {
            ContextJobs::Uniform(spans) => spans.draw(window, count, generator, chosen),
            ContextJobs::Recent(_) => activity.add_latest(window, count, chosen),
            ContextJobs::SameOwnerFirst { all, by_owner } => {
                if let Some(own) = by_owner.get(&jobs.get(hold.job as usize).owner) {
                    own.draw(window, count, generator, chosen);
                }
                all.draw(window, count, generator, chosen);
            }
            ContextJobs::Related(related) => related.add_closest(jobs, &hold, count, chosen),
        }
    }

    /// Writes what each of the `chosen` jobs shares with the job of `hold`, `[j]`, if related jobs are
    /// chosen.
    pub(crate) fn write_shared(
        &self,
        jobs: &StoredJobs<'_>,
        hold: &QueriedHold,
        chosen: &[u32],
        shared: &mut [u8],
    ) {
        if let ContextJobs::Related(_) = self {
            write_shared(jobs, hold, chosen, shared);
        }
    }
}

/// Returns the random generator for the context of one sample. It depends on the seed, the job and
/// the number of earlier holds.
pub(crate) fn context_generator(
    seed: u64,
    job: &StoredJob<'_>,
    earlier_holds: u32,
) -> impl Rng + use<> {
    let parts = [
        i64::from(job.ap),
        i64::from(job.cluster),
        i64::from(job.proc),
        job.history.time_ms[0],
        i64::from(earlier_holds),
    ];
    poolcast_base::seed::generator(seed, "context", &parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cycles::{HoldCycle, HoldOutcome};
    use htcondor_eventlog::JobEvent;
    use poolcast_events::EventStore;
    use proptest::prelude::*;
    use test_stores::store_of;

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
        /// An activity that was looked up for many windows gives each of them the same jobs as a
        /// lookup for that window alone.
        #[test]
        fn shared_activity_gives_the_jobs_of_single_lookups(
            events in proptest::collection::vec((0..30i32, 0..400i64, 0..14u16), 1..300),
            windows in proptest::collection::vec((0..400_000i64, 0..100_000i64), 1..9),
            count in 1..9usize,
        ) {
            let store = store(&events);
            let jobs = store.jobs();
            let context = ContextJobs::new(config::ContextChoice::Recent, &jobs);
            let windows: Vec<SampleWindow> = windows.iter().map(|&(from_ms, length_ms)| SampleWindow { from_ms, to_ms: from_ms + length_ms }).collect();
            let together = context.activity(&jobs, windows.iter().copied(), count);
            for window in windows {
                let (mut shared, mut alone) = (vec![0], vec![0]);
                together.add_latest(window, count, &mut shared);
                context.activity(&jobs, std::iter::once(window), count).add_latest(window, count, &mut alone);
                prop_assert_eq!(shared, alone);
            }
        }
    }

    fn chosen(
        choice: config::ContextChoice,
        events: &[(i32, i64, u16)],
        (from_ms, to_ms): (i64, i64),
        count: usize,
    ) -> Vec<u32> {
        let store = store(events);
        let jobs = store.jobs();
        let context = ContextJobs::new(choice, &jobs);
        let window = SampleWindow { from_ms, to_ms };
        let shifted = |by_ms| SampleWindow {
            from_ms: from_ms + by_ms,
            to_ms: to_ms + by_ms,
        };
        let windows = [-50_000, 0, 50_000].map(shifted);
        let activity = context.activity(&jobs, windows.into_iter(), count + 1);
        let mut generator = context_generator(1, &jobs.get(0), 0);
        let mut chosen = vec![0];
        let hold = QueriedHold {
            job: 0,
            cycle: HoldCycle {
                hold: 0,
                earlier_holds: 0,
                earlier_starts: 0,
                queued: None,
                end: None,
                outcome: HoldOutcome::Label(false),
                decided: 0,
            },
            asked_ms: to_ms,
        };
        let sampled = SampledHold {
            hold,
            window,
            count: count + 1,
        };
        context.choose(&jobs, sampled, &activity, &mut generator, &mut chosen);
        chosen.split_off(1)
    }

    #[test]
    fn job_ended_between_windows_is_replaced_in_the_later_one() {
        let created = [1, 2, 3, 4].map(|cluster| (cluster, 0, 0));
        let events = [&created[..], &[(0, 1, 0), (3, 302, 5)]].concat();
        let store = store(&events);
        let jobs = store.jobs();
        let context = ContextJobs::new(config::ContextChoice::Recent, &jobs);
        let windows = [(0, 1_000), (302_001, 302_001)]
            .map(|(from_ms, to_ms)| SampleWindow { from_ms, to_ms });
        let activity = context.activity(&jobs, windows.into_iter(), 3);

        let mut chosen = vec![0];
        activity.add_latest(windows[1], 3, &mut chosen);
        assert_eq!(chosen, [0, 4, 2]);
    }

    #[test]
    fn recent_jobs_are_sorted_by_last_event() {
        // Job 0 is the primary one. Job 1 is active at 70 and 100, and job 2 at 90. Job 3 ended at
        // 40, and job 4 at 95. Job 5 is active only later.
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
    fn no_choice_adds_the_primary_or_nonexistent_jobs() {
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
