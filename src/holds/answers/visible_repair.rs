//! Repairs of a job that its log shows.

use htcondor_eventlog::ATTRIBUTE_UPDATE;
use poolcast_events::StoredJob;
use poolcast_tensors::{HoldCycle, last_start};

/// Returns true if the log shows that `job` was changed between the hold of `cycle` and its
/// success: it has an attribute update, or the successful run got beyond the limit for which the job
/// was held. That limit is the request for memory or disk when it was submitted, or the duration of the
/// run that was held.
pub fn is_visibly_repaired(job: &StoredJob<'_>, cycle: &HoldCycle) -> bool {
    let history = &job.history;
    if history.number[cycle.hold..cycle.decided].contains(&ATTRIBUTE_UPDATE) {
        return true;
    }
    let used = job.run_usage(cycle.decided);
    let exceeds = |used: Option<u32>, requested: u32| {
        requested > 0 && used.is_some_and(|used| used > requested)
    };
    match (
        history.hold_code[cycle.hold],
        history.hold_subcode[cycle.hold],
    ) {
        (21 | 26 | 34, 102) => exceeds(used.memory_mb, job.request.memory_mb),
        (21 | 26 | 34, 104) => exceeds(
            used.disk_kib.map(|disk_kib| disk_kib / 1024),
            job.request.disk_mb,
        ),
        (46 | 47, _) => {
            let runs = run_ms(job, cycle.hold).zip(run_ms(job, cycle.decided));
            runs.is_some_and(|(held_ms, succeeded_ms)| succeeded_ms > held_ms)
        }
        _ => false,
    }
}

/// Returns the duration of the run that event `end` ends, ms; `None` if the log does not show its start.
fn run_ms(job: &StoredJob<'_>, end: usize) -> Option<i64> {
    let history = &job.history;
    let begun = last_start(history, end)?;
    Some(history.time_ms[end] - history.time_ms[begun])
}

#[cfg(test)]
mod tests {
    use super::*;
    use htcondor_eventlog::{
        EXECUTE, EventFacts, HELD, JobEvent, RELEASED, RunUsage, SUBMIT, TERMINATED,
    };
    use poolcast_config::LabelKind;
    use poolcast_tensors::{HoldOutcome, hold_cycles};
    use test_stores::store_of;

    /// A job that is held for a limit, released, and then succeeds.
    #[derive(Default)]
    struct HeldForLimit {
        code: i32,
        subcode: i32,
        /// Memory that the successful run used, MB. The job requested 128.
        memory_mb: u32,
        /// Duration of the successful run, s. The run that was held lasted 21 s.
        run_s: i64,
        is_edited: bool,
    }

    impl HeldForLimit {
        fn is_repaired(&self) -> bool {
            let mut life = vec![(0, SUBMIT), (1, EXECUTE), (22, HELD)];
            life.extend(self.is_edited.then_some((30, ATTRIBUTE_UPDATE)));
            life.extend([(40, RELEASED), (50, EXECUTE), (50 + self.run_s, TERMINATED)]);
            let events: Vec<JobEvent> = life
                .into_iter()
                .map(|(s, number)| self.event(s, number))
                .collect();
            let store = store_of(&events);
            let mut job = store.jobs().get(0);
            job.request.memory_mb = 128;
            let cycle = hold_cycles(job.history, LabelKind::Next, &[])[0];
            assert_eq!(cycle.outcome, HoldOutcome::Label(true));
            is_visibly_repaired(&job, &cycle)
        }

        fn event(&self, s: i64, number: u16) -> JobEvent {
            let usage = RunUsage {
                memory_mb: Some(self.memory_mb),
                ..RunUsage::default()
            };
            JobEvent {
                cluster: 1,
                time_ms: s * 1000,
                number,
                normal: u8::from(number == TERMINATED),
                hold_code: if number == HELD { self.code } else { 0 },
                hold_subcode: if number == HELD { self.subcode } else { 0 },
                facts: match number {
                    TERMINATED => EventFacts::from_run(usage),
                    _ => EventFacts::default(),
                },
                ..JobEvent::default()
            }
        }
    }

    #[test]
    fn use_of_more_memory_than_requested_and_edits_are_repairs() {
        let used = |code, memory_mb, is_edited| {
            let job = HeldForLimit {
                code,
                subcode: 102,
                memory_mb,
                is_edited,
                ..HeldForLimit::default()
            };
            job.is_repaired()
        };
        assert!(used(34, 200, false));
        assert!(used(26, 200, false), "the policy of an access point");
        assert!(!used(34, 100, false));
        assert!(!used(13, 200, false), "was not held for its use");
        assert!(used(13, 100, true), "edited");
    }

    /// Of a real pool: jobs were held after 21 s for an allowed duration of 20 s, which does not show in
    /// their logs after an edit; they then ran for 43 s.
    #[test]
    fn run_that_is_longer_than_allowed_before_is_a_repair() {
        let ran = |code, run_s| {
            let job = HeldForLimit {
                code,
                run_s,
                ..HeldForLimit::default()
            };
            job.is_repaired()
        };
        assert!(ran(46, 43) && ran(47, 43));
        assert!(!ran(46, 19), "it was faster this time");
        assert!(!ran(13, 43), "was not held for its duration");
    }
}
